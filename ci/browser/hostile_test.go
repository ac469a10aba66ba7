//go:build linux

package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// attacks are the modes of ci/hostile that put a text into all that an agent can say.
var attacks = strings.Fields("escape c1 bidi line-break github gitlab azure teamcity html markdown zero-width tap long")

// acts counts what is in the page only if a text of the agent is taken for more than text.
const acts = `document.querySelectorAll("#app img, #app iframe, #app [onerror], #app a[href^='javascript:'], ` +
	`#app a[href*='192.0.2.1']").length + [...document.scripts].filter(s => s.text.startsWith("alert")).length`

// unseen counts the texts of the page with characters that turn the direction of what is
// read, move the cursor or have no width.
const unseen = `[...document.body.innerText.matchAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u` +
	`202a-\u202e` +
	`\u2060-\u2069\ufeff]/g)].length`

// Nothing that an agent says acts in acp-test ui, while it is said and when the run is over.
func TestHostile(t *testing.T) {
	program, agent := given(t, "ACP_TEST_PROGRAM"), given(t, "ACP_TEST_HOSTILE")
	for _, attack := range attacks {
		t.Run(attack, func(t *testing.T) {
			dir := t.TempDir()
			scenario := "# A greeting.\nprompt 'Say hello.'\nawait turn end_turn\n-- llm.yaml --\nreplies:\n" +
				"  - - text: Hello.\n"
			if err := os.WriteFile(filepath.Join(dir, "greets.txtar"), []byte(scenario), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
				t.Fatal(err)
			}
			p := at(t, serving(t, program, filepath.Join(dir, "out")))
			chromedp.ListenTarget(p.Context, func(e any) {
				if dialog, ok := e.(*cdppage.EventJavascriptDialogOpening); ok {
					t.Errorf("a script ran: %s", dialog.Message)
					go func() { _ = chromedp.Run(p, cdppage.HandleJavaScriptDialog(true)) }()
				}
			})
			p.visit("#/", "nav, main")
			run := exec.Command(program, "run", "greets.txtar", "-q", "--out", "out", "--", agent, "inject-"+attack)
			run.Dir = dir
			out, err := run.CombinedOutput()
			if run.ProcessState == nil || run.ProcessState.ExitCode() == 2 {
				t.Fatalf("%v: %s", err, out)
			}
			for _, view := range []string{"#/", "#/s/greets/frames", "#/s/greets/frames/6", "#/s/greets/timeline",
				"#/s/greets/conversation", "#/s/greets/state/12", "#/s/greets/files"} {
				if view == "#/" {
					p.until(`document.body.innerText.includes("greets")`) // it came while the page was open
				} else {
					p.visit(view, "nav.tabs")
				}
				p.want("what acts in "+view, p.eval(acts), 0.0)
				p.want("characters nobody sees in "+view, p.eval(unseen), 0.0)
			}
			p.quiet()
		})
	}
}

// serving starts acp-test ui and returns its address.
func serving(t testing.TB, program, dir string) string {
	t.Helper()
	return servingIn(t, "", program, "ui", dir)
}

// servingIn starts a command in a folder, which prints the address that it serves.
func servingIn(t testing.TB, dir, program string, words ...string) string {
	t.Helper()
	c := exec.Command(program, words...)
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}
