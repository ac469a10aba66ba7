package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const greets = "# A greeting.\ncheck ends\nprompt 'Say hello.'\nawait turn end_turn\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n"

// What is edited runs again, and the page shows the new run beside the last, wherever one is.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	program := given(t, "ACP_TEST_PROGRAM")
	write("greets.txtar", greets, 0o600)
	write("other.txtar", strings.Replace(greets, "A greeting", "Another", 1), 0o600)
	write("agent", "#!/bin/sh\nexec "+program+" refagent\n", 0o700)
	p := at(t, servingIn(t, dir, program, "ui", "--watch", "greets.txtar", "other.txtar", "--", "./agent"))
	p.visit("#/", "nav")
	p.until(`document.querySelectorAll("#scenarios .v.pass").length === 2`)

	// The scenario, while one looks at it.
	p.visit("#/s/greets/conversation", ".card.agent")
	write("greets.txtar", strings.Replace(greets, "end_turn", "refusal", 1), 0o600)
	p.until(`document.querySelector("h1 .v")?.textContent === "fail"`)
	p.until(`document.querySelector("header.head")?.innerText.includes("before: pass")`)
	p.until(`document.querySelector("#problems")?.innerText.includes("turn refusal")`)
	p.visit("#/s/greets/compare", ".compare .lead")
	p.until(`document.querySelector(".compare select").value === "last/greets"`)
	p.visit("#/", "#changes")
	p.until(`document.querySelector("#changes")?.innerText.includes("pass → fail")`)
	p.want("scenarios", p.eval(shownRows), 2.0)

	// The agent: everything runs again.
	write("greets.txtar", greets, 0o600)
	p.until(`document.querySelector("#changes")?.innerText.includes("fail → pass")`)
	write("agent", "#!/bin/sh\nexec "+program+" refagent --fault prompt-answered-twice\n", 0o700)
	p.until(`document.querySelectorAll("#scenarios .v.fail").length === 2`)
	write("greets.txtar", "promt\n", 0o600)
	p.until(`document.querySelector("pre.error")?.innerText.includes('did you mean "prompt"')`)
	p.quiet()
}

// A report of a run with --against shows what a scenario said before.
func TestAgainst(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	run := func(text string, words ...string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "greets.txtar"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program, append([]string{"run", "greets.txtar", "-q"}, words...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run(greets, "--out", "first")
	run(strings.Replace(greets, "Hello.\n", "Good day.\n", 1), "--out", "second", "--against", "first")
	p := at(t, "file://"+filepath.Join(dir, "second", "report.html"))
	p.visit("#/", "#changes")
	p.until(`document.querySelector("#changes")?.innerText.includes("says something else")`)
	p.do("to the scenario", chromedp.Click("#changes a", chromedp.ByQuery))
	p.until(`document.querySelector(".beside .del")?.innerText.includes("Hello.") && document.querySelector(".beside .add").innerText.includes("Good day.")`)
	p.until(`document.querySelector(".beside b")?.innerText.startsWith("before: reference")`)
	p.quiet()
}
