package faults_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/acp-test/acp-test/refagent/faults"
)

// Every fault of every protocol is whole, and the file of its proof names it and no other.
func TestTables(t *testing.T) {
	for protocol, least := range map[string]int{faults.ACPv1: 250, faults.ACPv2: 70, faults.AGUI: 100} {
		all := faults.All(protocol)
		if len(all) < least {
			t.Errorf("%s has %d faults", protocol, len(all))
		}
		file := "reddens-" + protocol + ".txt"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		measured := faults.ReadEffects(string(text))
		for _, f := range all {
			acts := !f.Mutation.Empty() || f.Code()
			if !acts {
				t.Errorf("%s of %s does nothing: its block has no rules, and no code is under its name", f.Name, protocol)
			}
			if _, ok := measured[f.Name]; !ok {
				t.Errorf("%s has no entry for %s: measure it, see the head of the file", file, f.Name)
			}
			delete(measured, f.Name)
		}
		for name := range measured {
			t.Errorf("%s has an entry for %s, which %s.txt has not: take it out", file, name, protocol)
		}
		for _, name := range faults.Coded(protocol) {
			if _, ok := faults.Find(protocol, name); !ok {
				t.Errorf("there is code for %s, which %s.txt has not", name, protocol)
			}
		}
	}
	if f, ok := faults.Find(faults.ACPv1, "none"); ok || !reflect.ValueOf(f).IsZero() {
		t.Errorf("there is a fault none: %+v", f)
	}
}
