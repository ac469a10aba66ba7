package browser

import (
	"path/filepath"
	"strings"
	"testing"
)

// first waits for a difference that is in sight, as that with which a comparison begins.
const first = `(b => b && b.top >= 0 && b.bottom <= innerHeight)(document.querySelector(".beside ` +
	`.first")?.getBoundingClientRect())`

// Compare begins with the partner that makes sense: the same scenario in another run, or the golden that differs.
func TestPartners(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	write(t, dir, "greets.txtar", greets)
	acpTest(t, dir, 0, "run", "greets.txtar", "-q", "--update")
	write(t, dir, "greets.txtar", strings.Replace(greets, "Hello.\n", "Good day.\n", 1))
	acpTest(t, dir, 1, "run", "greets.txtar", "-q")
	golden := at(t, "file://"+filepath.Join(dir, "acp-test-out", "report.html"))
	golden.visit("#/s/greets/compare", ".compare")
	golden.until(`document.querySelector(".compare select").value === "golden" && document.querySelector(".compare ` +
		`.diff .del")?.innerText.includes("Hello.")`)
	golden.quiet()

	some := []string{"run", "--run", "^cancel/mid-stream-at-gate$", "-q", "--out"}
	acpTest(t, dir, 0, append(some, "one")...)
	acpTest(t, dir, 1, append(some, "two", "--fault", "cancel-end-turn")...)
	p := at(t, servingIn(t, dir, program, "ui", "one", "two"))
	p.visit("#/s/two%2Fcancel%2Fmid-stream-at-gate/compare", ".compare")
	p.until(`document.querySelector(".compare select").value === "one/cancel/mid-stream-at-gate"`)
	p.until(first)
	p.quiet()
}
