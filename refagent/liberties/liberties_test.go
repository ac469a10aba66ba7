package liberties_test

import (
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/refagent/liberties"
)

// Every liberty is allowed by a requirement, and changes the agent.
func TestTables(t *testing.T) {
	requirements, err := os.ReadFile("../../protocol/acp/invariants/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for protocol, least := range map[string]int{"acp-v1": 100, "acp-v2": 35, "ag-ui": 35, "network": 25} {
		all := liberties.All(protocol)
		if len(all) < least {
			t.Errorf("%s has %d liberties", protocol, len(all))
		}
		for _, l := range all {
			if !regexp.MustCompile(`^[a-z0-9.]+(-[a-z0-9.]+)*$`).MatchString(l.Name) || l.Summary == "" ||
				l.Allows == "" {
				t.Errorf("%s: %+v is not whole", protocol, l)
			}
			// Rules of other protocols are looked up where they are.
			for id := range strings.FieldsSeq(l.Allows) {
				if strings.Contains("acp-v1 network", protocol) &&
					!strings.Contains(string(requirements), "\n"+id+" agent ") {
					t.Errorf("the liberty %s rests on %s, which does not exist", l.Name, id)
				}
			}
			var changes any
			if protocol == "ag-ui" {
				changes = liberties.Web([]liberties.Liberty{l})
			} else {
				changes = liberties.Habits([]liberties.Liberty{l})
			}
			if reflect.ValueOf(changes).IsZero() &&
				protocol != "network" { // TestLibertiesOfTheNetwork sees what those do
				t.Errorf("the liberty %s of %s changes nothing: it has no habits, rules or code", l.Name, protocol)
			}
		}
	}
	if taken, unknown := liberties.Find("acp-v1", "no-load", "nobody"); taken != nil || unknown != "nobody" {
		t.Errorf("got %v and %q, want no liberty nobody", taken, unknown)
	}
}

// Of each topic an agent that is drawn has at most one liberty, and at most one that is slow.
func TestDraw(t *testing.T) {
	drawn := 0
	for _, set := range liberties.Draw(rand.New(rand.NewPCG(1, 2)), true) {
		topics, slow := map[string]bool{}, 0
		for _, l := range set {
			if l.Topic != "" && topics[l.Topic] {
				t.Errorf("two of %s are in one set", l.Topic)
			}
			topics[l.Topic] = true
			if l.Slow {
				slow++
			}
		}
		if slow > 1 {
			t.Errorf("%d slow liberties are in one set", slow)
		}
		drawn += len(set)
	}
	if drawn != len(liberties.All("acp-v1")) {
		t.Errorf("%d liberties are drawn", drawn)
	}
}

// A name from before finds the liberty too.
func TestAlias(t *testing.T) {
	taken, unknown := liberties.Find("acp-v2", "first-only", "v2-only")
	if unknown != "" || taken[0].Name != "v1-only" || taken[1].Name != "v2-only" {
		t.Errorf("got %v, unknown %q", taken, unknown)
	}
}
