package agui_test

import (
	"os"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/refagent/faults"
)

// Each public report that an endpoint can break is found by name: a fault copies it, and the proof finds that.
func TestPublicReports(t *testing.T) {
	text, err := os.ReadFile("testdata/reports.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range faults.All(faults.AGUI) {
		found[f.Name] = len(f.Reddens) > 0
	}
	reports, copied := 0, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 3 || words[2] == "-" && len(words) < 5 {
			t.Errorf("no fault and no reason: %s", line)
			continue
		}
		reports++
		for _, name := range words[2:] {
			if name == "-" {
				break
			}
			if copied[words[0]+"#"+words[1]] = true; !found[name] {
				t.Errorf("%s: no fault %s is found", line, name)
			}
		}
	}
	if reports < 70 {
		t.Errorf("there are %d reports", reports)
	}
	for _, f := range faults.All(faults.AGUI) {
		if f.Copies != "" && !copied[f.Copies] {
			t.Errorf("the fault %s copies %s, which is no report of the table", f.Name, f.Copies)
		}
	}
}
