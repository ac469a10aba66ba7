package faults_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/acp-test/acp-test/refagent/faults"
)

// Every fault of every protocol is whole, and the file of its proof names it and no other.
func TestTables(t *testing.T) {
	for protocol, least := range map[string]int{faults.ACPv1: 250, faults.ACPv2: 70, faults.AGUI: 100,
		faults.Network: 50} {
		all := faults.All(protocol)
		if len(all) < least {
			t.Errorf("%s.txt has %d faults, want at least %d", protocol, len(all), least)
		}
		file := "reddens-" + protocol + ".txt"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		measured := faults.ReadEffects(string(text))
		for _, f := range all {
			acts := !f.Mutation.Empty() || f.Code() || protocol == faults.Network // its proof is that it shows
			if !acts {
				t.Errorf("%s in %s.txt does nothing: give its block rules, or add a function of its name to "+
					"acp.go or agui.go",
					f.Name, protocol)
			}
			if _, ok := measured[f.Name]; !ok {
				t.Errorf("%s has no entry for %s: measure it with the command at the head of the file", file, f.Name)
			}
			delete(measured, f.Name)
		}
		for name := range measured {
			t.Errorf("%s has an entry for %s, which %s.txt does not have: delete the entry", file, name, protocol)
		}
		for _, name := range faults.Coded(protocol) {
			if _, ok := faults.Find(protocol, name); !ok {
				t.Errorf("acp.go or agui.go has code for %s: add its block to %s.txt, or delete the code", name,
					protocol)
			}
		}
	}
	if f, ok := faults.Find(faults.ACPv1, "none"); ok || !reflect.ValueOf(f).IsZero() {
		t.Errorf("there is a fault none: %+v", f)
	}
}
