package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const greets = "# A greeting.\ncheck ends\nprompt 'Say hello.'\nawait turn end_turn\n-- llm.yaml --\nreplies:\n" +
	"  - - text: Hello.\n"

// What is edited runs again, and the page shows the new run beside the last, wherever one is.
func TestWatch(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	write(t, dir, "greets.txtar", greets)
	write(t, dir, "other.txtar", strings.Replace(greets, "A greeting", "Another", 1))
	write(t, dir, "agent", "#!/bin/sh\nexec "+program+" refagent\n")
	p := at(t, servingIn(t, dir, program, "ui", "--watch", "greets.txtar", "other.txtar", "--", "./agent"))
	p.visit("#/", "nav")
	p.until(`document.querySelectorAll("#scenarios .v.pass").length === 2`)

	// The scenario, while one looks at it.
	p.visit("#/s/greets/conversation", ".card.agent")
	write(t, dir, "greets.txtar", strings.Replace(greets, "end_turn", "refusal", 1))
	p.until(`document.querySelector("h1 .v")?.textContent === "fail"`)
	p.until(`document.querySelector("header.head")?.innerText.includes("before: pass")`)
	p.until(`document.querySelector("#problems")?.innerText.includes("turn refusal")`)
	p.visit("#/s/greets/compare", ".compare .lead")
	p.until(`document.querySelector(".compare select").value === "last/greets"`)
	p.visit("#/", "#changes")
	p.until(`document.querySelector("#changes")?.innerText.includes("pass → fail")`)
	p.want("scenarios", p.eval(shownRows), 2.0)

	// The agent: everything runs again.
	write(t, dir, "greets.txtar", greets)
	p.until(`document.querySelector("#changes")?.innerText.includes("fail → pass")`)
	write(t, dir, "agent", "#!/bin/sh\nexec "+program+" refagent --fault prompt-answered-twice\n")
	p.until(`document.querySelectorAll("#scenarios .v.fail").length === 2`)
	write(t, dir, "greets.txtar", "promt\n")
	p.until(`document.querySelector("pre.error")?.innerText.includes('did you mean "prompt"')`)
	p.quiet()
}

// A report of a run with --against shows what a scenario said before.
func TestAgainst(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "greets.txtar", greets)
	acpTest(t, dir, 0, "run", "greets.txtar", "-q", "--out", "first")
	write(t, dir, "greets.txtar", strings.Replace(greets, "Hello.\n", "Good day.\n", 1))
	acpTest(t, dir, 0, "run", "greets.txtar", "-q", "--out", "second", "--against", "first")
	p := at(t, "file://"+filepath.Join(dir, "second", "report.html"))
	p.visit("#/", "#changes")
	p.until(`document.querySelector("#changes")?.innerText.includes("says something else")`)
	p.do("to the scenario", chromedp.Click("#changes a", chromedp.ByQuery))
	p.until(`document.querySelector(".beside .del")?.innerText.includes("Hello.") && document.querySelector(".beside ` +
		`.add").innerText.includes("Good day.")`)
	p.until(`document.querySelector(".beside b")?.innerText.startsWith("before: reference")`)
	p.quiet()
}
