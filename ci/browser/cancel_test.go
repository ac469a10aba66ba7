package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// From a frame of a finished run comes a scenario that cancels there, which the correct agent passes and one that ends
// a cancelled turn as any other does not.
func TestCancelHere(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	run := func(words ...string) (string, error) {
		t.Helper()
		c := exec.Command(program, append([]string{"run", "-q"}, words...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("--run", "^permission/allow-once-edit$"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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
		if err := os.WriteFile(filepath.Join(dir, "made.txtar"), []byte(made), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run("made.txtar", "--out", "green"); err != nil {
			t.Errorf("%s: the correct agent: %s", filter, out)
		}
		if out, err := run("made.txtar", "--out", "red", "--fault", "cancel-end-turn"); err == nil || !strings.Contains(out, "1 fail") {
			t.Errorf("%s: an agent with a fault: %v %s", filter, err, out)
		}
	}
	// Before a turn and at its end there is nothing to cancel.
	for _, filter := range []string{"method:initialize", "method:session/prompt+kind:response"} {
		p.visit("#/s/permission%2Fallow-once-edit/frames?filter="+filter, ".row")
		p.until(`document.querySelector(".row:not(.waits)")`)
		p.do("the frame", chromedp.Click(".row", chromedp.ByQuery), chromedp.WaitVisible(".detail .json .leaf", chromedp.ByQuery))
		p.want("a button at "+filter, p.eval(`document.querySelector(".detail").innerText.includes("cancel here")`), false)
	}
	p.quiet()
}
