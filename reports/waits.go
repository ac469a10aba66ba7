package reports

import (
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
)

// wait is one thing that was waited for.
type wait struct {
	what string
	took time.Duration
}

func waitsOf(w results.Waits) []wait {
	return []wait{{"starting", w.Start}, {"at deadlines", w.Deadline}, {"lingering", w.Linger}, {"at the exit", w.Exit}}
}

// mostlyWaited says for what a scenario waited that did little else; "" if it did not.
func mostlyWaited(r results.Result) string {
	for _, w := range waitsOf(r.Waits) {
		if 2*w.took > r.Duration {
			return fmt.Sprintf(" (%s %s)", short(w.took), w.what)
		}
	}
	return ""
}

// waited is a line that says how much of the time of all scenarios was waited.
func waited(outcomes []results.Result) string {
	var all results.Waits
	var took time.Duration
	for _, r := range outcomes {
		all.Add(r.Waits)
		took += r.Duration
	}
	var parts []string
	for _, w := range waitsOf(all) {
		parts = append(parts, short(w.took)+" "+w.what)
	}
	return fmt.Sprintf("waited: %s; all scenarios took %s\n", strings.Join(parts, ", "), short(took))
}
