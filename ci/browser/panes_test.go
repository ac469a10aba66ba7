package browser

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// seenPanes are the panes that have room on the screen.
const seenPanes = `[...document.querySelectorAll(".bench > .pane")].filter(e => ` +
	`e.checkVisibility({visibilityProperty: true})).length`

// Nothing scrolls but panes, at no width; a phone shows one of them, and the tab that is chosen is in sight.
func TestPanes(t *testing.T) {
	p := open(t)
	for _, width := range widths {
		p.do("setting the screen", chromedp.EmulateViewport(width, 800))
		for hash, wait := range views {
			p.visit(hash, wait)
			p.want(fmt.Sprintf("the page of %s at %d fits", hash, width),
				p.eval(`document.documentElement.scrollHeight <= innerHeight &&
				document.documentElement.scrollWidth <= innerWidth && document.querySelector("#app").scrollHeight <= `+
					`innerHeight`), true)
			if width == 390 {
				p.want("panes of "+hash, p.eval(seenPanes), 1.0)
			}
		}
		p.visit("#/s/wrong/files", ".files")
		p.want(fmt.Sprintf("the tab in sight at %d", width), p.eval(`(b => b.left >= 0 && b.right <= innerWidth)(
			document.querySelector(".tabs [aria-current]").getBoundingClientRect())`), true)
	}
	// A bar chooses between them.
	p.do("setting the screen", chromedp.EmulateViewport(390, 800))
	p.visit("#/s/wrong/frames/9", ".detail")
	p.press("transcript")
	p.do("its time line", chromedp.WaitVisible(".timeline canvas", chromedp.ByQuery))
	p.press("scenarios")
	p.do("the list", chromedp.WaitVisible("#search", chromedp.ByQuery))
	p.quiet()
}

// Panes have the size that somebody gave them, and are folded as somebody left them, also in a page that is opened
// anew.
func TestSizes(t *testing.T) {
	for name, address := range map[string]string{"report.html": "", "ui": given(t, "ACP_TEST_UI")} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			if address != "" {
				p.address = address
			}
			p.do("setting the screen", chromedp.EmulateViewport(1440, 900))
			p.visit("#/s/wrong/frames/9", ".detail")
			const size = `Math.round(document.querySelector(%q).getBoundingClientRect().%s)`
			for edge, of := range map[string][3]string{"[aria-label^='width of the list']": {".list", "width",
				kb.ArrowRight},
				"[aria-label^='width of the pane']":       {".side", "width", kb.ArrowLeft},
				"[aria-label^='height of the time line']": {".plot", "height", kb.ArrowDown}} {
				look := fmt.Sprintf(size, of[0], of[1])
				was, _ := p.eval(look).(float64)
				p.do("sizing", chromedp.Focus(edge, chromedp.ByQuery), chromedp.KeyEvent(of[2]+of[2]))
				p.want("size of "+of[0], p.eval(look), was+48)
				p.visit("#/s/wrong/frames/9", ".detail")
				p.want("size of "+of[0]+" when opened again", p.eval(look), was+48)
			}
			p.do("folding", chromedp.Focus("[aria-label^='width of the list']", chromedp.ByQuery),
				chromedp.KeyEvent("\r"))
			p.want("panes", p.eval(seenPanes), 2.0)
			p.visit("#/s/wrong/frames/9", ".detail")
			p.want("panes when opened again", p.eval(seenPanes), 2.0)
			p.do("unfolding", chromedp.KeyEvent("["))
			p.want("panes", p.eval(seenPanes), 3.0)
			p.quiet()
		})
	}
}

// What is wrong has one name: the groups of what did not pass are causes of the run, as the middle and the finding say
// them.
func TestOneName(t *testing.T) {
	dir := t.TempDir()
	acpTest(t, dir, 1, "run", "--run", "^(cancel/(mid-|late-)|subagents/(family|parent)-cancelled$)", "--fault",
		"cancel-end-turn", "-q")
	p := at(t, "file://"+filepath.Join(dir, "acp-test-out", "report.html"))
	p.do("setting the screen", chromedp.EmulateViewport(1440, 900))
	p.visit("#/", "#causes")
	p.want("groups that are no cause",
		p.eval(`(causes => [...document.querySelectorAll(".group-name")].map(e => e.textContent)
		.filter(name => !causes.includes(name) && name !== "Passed").join())([...document.querySelectorAll("#causes `+
			`.sentence")].map(e => e.textContent))`), "")
	p.want("groups", p.eval(`document.querySelectorAll(".group").length`), 2.0)
	for _, id := range []string{"subagents%2Ffamily-cancelled", "cancel%2Fmid-stream-at-gate"} {
		p.visit("#/s/"+id, "#problems h2")
		p.want("the verdict of "+id, p.eval(`document.querySelector("#problems h2 .v").textContent === `+
			`document.querySelector("h1 .v").textContent`), true)
		p.want("the finding of "+id, p.eval(`document.querySelector("#problems h2").innerText.includes("After `+
			`session/cancel the turn ended with")`), true)
	}
	p.want("what tags are for", p.eval(`document.querySelector(".facts [title*='--tag']").innerText.includes("tags: `+
		`matrix, cancel")`), true)
	p.want("the citation", p.eval(`document.querySelector("#problems a.cite").href.startsWith("https://github.com/age`+
		`ntclientprotocol/agent-client-protocol/blob/")`), true)
	p.quiet()
}

// A failure that is known says so, in the list and where it opens.
func TestKnown(t *testing.T) {
	dir := t.TempDir()
	some := []string{"run", "--run", "^cancel/mid-stream-at-gate$", "--fault", "cancel-end-turn", "-q"}
	acpTest(t, dir, 0, append(some, "--baseline-write", "known.yaml")...)
	acpTest(t, dir, 0, append(some, "--baseline", "known.yaml")...)
	p := at(t, "file://"+filepath.Join(dir, "acp-test-out", "report.html"))
	p.visit("#/", "#causes .known")
	p.want("the group", p.text(".group-name"), "Known failures")
	p.do("the failure", chromedp.Click(toFailure, chromedp.ByQuery), chromedp.WaitVisible(".row.at", chromedp.ByQuery))
	p.want("the verdict", p.text("h1 .v"), "known")
	p.until(`document.querySelector("#problems dl").innerText.includes("known\nyes, it is in the list of ` +
		`known failures")`)
	p.quiet()
}

// A failure opens at the entry that shows it, with the finding beside. Keys: n and p step through
// findings, j and k through entries.
func TestOpensAtTheFailure(t *testing.T) {
	p := open(t)
	p.do("setting the screen", chromedp.EmulateViewport(1440, 900))
	p.visit("#/", "#scenarios .case")
	p.do("the failure by a key", chromedp.KeyEvent("n"), chromedp.WaitVisible(".row.at", chromedp.ByQuery))
	here, _ := p.eval("location.hash").(string)
	p.until(`document.querySelector("#problems")?.innerText.includes("turn refusal")`)
	p.until(`document.querySelector("#problems .again code").textContent.startsWith("acp-test run")`)
	p.until(`document.querySelector(".case [aria-current]").textContent.includes("wrong")`)
	p.do("the next entry", chromedp.KeyEvent("j"))
	p.until(fmt.Sprintf("location.hash !== %q", here))
	p.do("and back", chromedp.KeyEvent("k"))
	p.until(fmt.Sprintf("location.hash === %q", here))
	p.do("away", chromedp.KeyEvent("kkk"))
	p.do("the finding", chromedp.KeyEvent("n"))
	p.until(fmt.Sprintf("location.hash === %q", here))
	// One defect has one name, and one verdict wherever it is told.
	p.want("findings", p.eval(`document.querySelectorAll("#problems .others li").length`), 0.0)
	p.quiet()
}
