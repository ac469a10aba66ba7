//go:build linux

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// Each schedule of a sweep that is over has its verdict in the index, those without a finding too, and a page of its
// own.
func TestSweep(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	write(t, dir, "greets.txtar", greets)
	acpTest(t, dir, 0, "sweep", "greets.txtar", "--max", "6", "--confirm", "1", "-q")
	p := at(t, serving(t, program, filepath.Join(dir, "acp-test-out")))
	p.visit("#/", "#scenarios .case")
	p.want("transcripts in the index", p.eval(shownRows+" >= 7"), true) // six schedules, and the scenario as it is
	p.want("those without a verdict", p.eval(`document.querySelectorAll("#scenarios .v.unjudged").length`), 0.0)
	p.do("showing what passed", chromedp.Click("button.pass", chromedp.ByQuery))
	p.do("a schedule", chromedp.Click(`//*[@id="scenarios"]//a[contains(., "greets: ")]`, chromedp.BySearch),
		chromedp.WaitVisible(".row", chromedp.ByQuery))
	p.until(`document.querySelector("h1 .v").textContent === "pass"`)
	p.everywhere("sweep", "#/sweep", ".pairs .option")
	p.quiet()
}

// The page shows what explore did as a map: a row for each state, with the acts that it tried there
// and those that it did not.
func TestExplored(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	acpTest(t, dir, 0, "explore", "--agent", "reference", "--sessions", "2", "--confirm", "1", "-q")
	p := at(t, serving(t, program, filepath.Join(dir, "acp-test-out")))
	p.visit("#/sweep", ".pairs .option")
	p.until(`/2 conversations, \d inconclusive; \d+ of \d+ pairs are covered/.test(document.querySelector(".whole")` +
		`.innerText)`)
	p.want("rows with what was not covered",
		p.eval(`[...document.querySelectorAll(".pairs td:last-child")].some(e => e.innerText.includes("cancel"))`),
		true)
	p.everywhere("explored", "#/sweep", ".pairs .option")
	p.quiet()
}

// The page shows the requirements of a conformance run. The matrix of agents is a page of its own.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	acpTest(t, dir, 1, "conformance", "--run", "^(cancel/mid-|prompt-turn/)", "--fault", "cancel-end-turn", "-q",
		"--no-smoke")
	p := at(t, "file://"+filepath.Join(dir, "acp-test-out", "report.html"))
	p.visit("#/requirements", "tbody tr")
	p.until(`document.querySelector("tbody").innerText.includes("CANCEL-001")`)
	p.everywhere("requirements", "#/requirements", "tbody tr")
	p.quiet()

	acpTest(t, dir, 1, "matrix", "reference", "--fault", "cancel-end-turn", "--run",
		"^(cancel/mid-stream-at-gate|prompt-turn/text)$")
	m := at(t, "file://"+filepath.Join(dir, "acp-test-matrix", "matrix.html"))
	m.everywhere("matrix", "", "#matrix")
	m.want("heads in one line", m.eval(`[...document.querySelectorAll(".grid th")].every(e => `+
		`e.getClientRects().length === 1 && e.scrollHeight < 40)`), true)
	m.quiet()
}

// What was said of editors that were served stands beside their transcripts, also if one scenario was served twice.
func TestServed(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	write(t, dir, "greets.txtar", "# It greets.\nrole agent\non prompt {\n\ttext 'Hello.'\n\tend end_turn\n}\n"+
		"check PROMPT-001 prompted-once\nsent session/prompt count=1\n")
	if err := os.Mkdir(filepath.Join(dir, "acp-test-out"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := at(t, servingIn(t, dir, program, "ui", "acp-test-out"))
	p.visit("#/", "nav")
	for _, prompts := range []int{1, 2} {
		e := editing(t, dir, program, "serve", "greets.txtar")
		e.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`,
			`"id":0`)
		e.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"`+dir+`","mcpServers":[]}}`, `"id":1`)
		for range prompts {
			e.say(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"session-1",`+
				`"prompt":[{"type":"text","text":"hi"}]}}`, `"stopReason"`)
		}
		e.end()
	}
	p.until(`document.querySelectorAll("#scenarios .v.pass").length === 1 && document.querySelectorAll("#scenarios ` +
		`.v.fail").length === 1`)
	p.until(`document.querySelector("#causes")?.innerText.includes("PROMPT-001")`)
	p.do("what is wrong", chromedp.Click("#causes .seen a", chromedp.ByQuery),
		chromedp.WaitVisible(".row", chromedp.ByQuery))
	p.until(`document.querySelector("h1 .v").textContent === "fail" && document.querySelector("#problems").innerText.` +
		`includes("prompted-once")`)
	p.quiet()
}
