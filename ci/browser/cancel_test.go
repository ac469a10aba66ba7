package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// From a frame of a finished run comes a scenario that cancels there, which the correct agent passes and one that ends
// a cancelled turn as any other does not.
func TestCancelHere(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	acpTest(t, dir, 0, "run", "-q", "--run", "^permission/allow-once-edit$")
	p := at(t, serving(t, program, filepath.Join(dir, "acp-test-out")))
	for _, filter := range []string{"what:session/request_permission from:agent", "what:agent_message_chunk"} {
		p.visit("#/s/permission%2Fallow-once-edit/frames?filter="+strings.ReplaceAll(filter, " ", "+"), ".row")
		p.until(`document.querySelector(".row:not(.waits)")`)
		p.do("the frame", chromedp.Click(".row", chromedp.ByQuery))
		p.until(`document.querySelector(".detail h2")`)
		p.press("cancel here")
		p.do("the scenario", chromedp.WaitVisible("dialog pre", chromedp.ByQuery))
		made := p.text("dialog pre")
		if !strings.Contains(made, "check CANCEL-001") || !strings.Contains(made, "await turn cancelled") {
			t.Errorf("%s: made\n%s", filter, made)
		}
		write(t, dir, "made.txtar", made)
		acpTest(t, dir, 0, "run", "-q", "made.txtar", "--out", "green")
		if out := acpTest(t, dir, 1, "run", "-q", "made.txtar", "--out", "red", "--fault",
			"cancel-end-turn"); !strings.Contains(out, "1 fail") {
			t.Errorf("%s: an agent with a fault: %s", filter, out)
		}
	}
	// Before a turn and at its end there is nothing to cancel.
	for _, filter := range []string{"method:initialize", "method:session/prompt+kind:response"} {
		p.visit("#/s/permission%2Fallow-once-edit/frames?filter="+filter, ".row")
		p.until(`document.querySelector(".row:not(.waits)")`)
		p.do("the frame", chromedp.Click(".row", chromedp.ByQuery),
			chromedp.WaitVisible(".detail .json .leaf", chromedp.ByQuery))
		p.want("a button at "+filter, p.eval(`document.querySelector(".detail").innerText.includes("cancel here")`),
			false)
	}
	p.quiet()
}
