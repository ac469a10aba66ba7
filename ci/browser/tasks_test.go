package browser

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// newcomer does what a person does who has the page before them, and counts the clicks.
type newcomer struct {
	*page
	clicks int
}

func (n *newcomer) click(selector, until string) {
	n.t.Helper()
	n.clicks++
	n.do("clicking "+selector, chromedp.Click(selector, chromedp.ByQuery),
		chromedp.WaitVisible(until, chromedp.ByQuery))
}

func (n *newcomer) push(text, until string) {
	n.t.Helper()
	n.clicks++
	n.press(text)
	n.do("waiting for "+until, chromedp.WaitVisible(until, chromedp.ByQuery))
}

// enter goes to an element by the Tab key and presses Enter; there are no clicks.
func (n *newcomer) enter(selector, until string) {
	n.t.Helper()
	for range 300 {
		n.do("pressing Tab", chromedp.KeyEvent(kb.Tab))
		if n.eval(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == true {
			n.do("pressing Enter", chromedp.KeyEvent("\r"), chromedp.WaitVisible(until, chromedp.ByQuery))
			return
		}
	}
	n.t.Fatalf("Tab does not reach %s", selector)
}

// task is what somebody wants to know of a run in which cancels failed, with the clicks that it may take from the page
// as
// it opens, and the same by keys.
type task struct {
	what   string
	clicks int
	click  func(n *newcomer)
	keys   func(n *newcomer)
	in     string
	wants  []string
}

const toFailure = "#scenarios .case a"

var tasks = []task{
	{"why did this fail", 1,
		func(n *newcomer) { n.click(toFailure, "#problems .proof a") },
		func(n *newcomer) { n.hit("n", "#problems .proof a") }, "#problems",
		[]string{`After session/cancel the turn ended with "end_turn" instead of cancelled`, `held at gate "mid"`,
			"The editor sends session/prompt at #", "held at gate mid since #", "the editor sends session/cancel at #",
			"the agent answers session/prompt with end_turn at #",
			"expected\nturn cancelled", "known\nno", "MUST respond", "acp-test run"}},
	{"which entry was wrong, or came too late", 1,
		func(n *newcomer) { n.click("#causes .seen a", ".row.at") },
		func(n *newcomer) { n.hit("n", ".row.at") }, ".row.at", []string{"end_turn", "▲"}},
	{"what did the model say then", 1,
		func(n *newcomer) { n.click(toFailure, ".moment .said") },
		func(n *newcomer) { n.hit("n", ".moment .said") }, ".moment", []string{"word word word"}},
	{"which process was alive at that time", 2,
		func(n *newcomer) { n.click(toFailure, ".moment dd") },
		func(n *newcomer) { n.hit("n", ".moment dd") }, ".moment", []string{"agent process 0 since #"}},
	{"the same defect elsewhere", 1,
		func(n *newcomer) { n.click("#causes .seen a:last-child", ".same-cause b") },
		func(n *newcomer) { n.enter("#causes .seen a:last-child", ".same-cause b") }, "#scenarios",
		[]string{"s030", "s300"}},
	{"the same defect elsewhere, from one", 2,
		func(n *newcomer) { n.click(toFailure, "a.same"); n.click("a.same", ".same-cause b") },
		func(n *newcomer) { n.hit("n", "a.same"); n.enter("a.same", ".same-cause b") }, "#scenarios",
		[]string{"s030", "s300"}},
	{"a scenario from this", 2,
		func(n *newcomer) { n.click(toFailure, ".row.at"); n.push("make a scenario", "dialog pre") },
		func(n *newcomer) {
			n.hit("n", ".row.at")
			n.enter("[title='of the turns that the time line shows']", "dialog pre")
		},
		"dialog", []string{"'Tell story", "await gate", "cancel"}},
}

// hit presses a key.
func (n *newcomer) hit(key, until string) {
	n.t.Helper()
	n.do("pressing "+key, chromedp.KeyEvent(key), chromedp.WaitVisible(until, chromedp.ByQuery))
}

// What somebody wants to know of a run takes few clicks from the page as it opens, or none: keys do all of it.
// docs/inspector.md has the numbers beside those of other tools.
func TestTasks(t *testing.T) {
	address := serving(t, given(t, "ACP_TEST_PROGRAM"), filepath.Join(given(t, "ACP_TEST_LARGE"), "page"))
	for _, task := range tasks {
		for by, do := range map[string]func(*newcomer){"clicks": task.click, "keys": task.keys} {
			t.Run(task.what+" by "+by, func(t *testing.T) {
				n := &newcomer{page: at(t, address)}
				n.do("setting the screen", chromedp.EmulateViewport(1440, 900))
				n.visit("", "#causes")
				do(n)
				for _, want := range task.wants { // a row is there before its text
					n.until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", task.in, want))
				}
				if t.Logf("%d clicks", n.clicks); n.clicks > task.clicks {
					t.Errorf("it takes %d clicks, not %d", n.clicks, task.clicks)
				}
				n.quiet()
			})
		}
	}
}

// What changed since the last pass takes two clicks, and begins at the first difference.
func TestWhatChanged(t *testing.T) {
	dir := t.TempDir()
	some := []string{"run", "--run", "^cancel/(mid-|late-)", "-q", "--out"}
	acpTest(t, dir, 0, append(some, "first")...)
	acpTest(t, dir, 1, append(some, "second", "--against", "first", "--fault", "cancel-end-turn")...)
	address := "file://" + filepath.Join(dir, "second", "report.html")
	for by, do := range map[string]func(*newcomer){
		"clicks": func(n *newcomer) {
			n.click(toFailure, "nav.tabs a")
			n.click("nav.tabs a:nth-child(5)", ".beside .first")
		},
		"keys": func(n *newcomer) { n.hit("n", "nav.tabs a"); n.hit("5", ".beside .first") },
	} {
		t.Run(by, func(t *testing.T) {
			n := &newcomer{page: at(t, address)}
			n.do("setting the screen", chromedp.EmulateViewport(1440, 900))
			n.visit("", "#changes")
			do(n)
			n.until(`document.querySelector(".beside b")?.innerText.startsWith("before: reference")`)
			n.until(first)
			if n.clicks > 2 {
				t.Errorf("it takes %d clicks, not 2", n.clicks)
			}
			n.quiet()
		})
	}
	p := at(t, address)
	p.everywhere("changed", "", "#changes")
	p.everywhere("compared", "#/s/cancel%2Fmid-stream-at-gate/compare", ".beside .first")
}

// With an agent, a scenario runs again from its page.
func TestRunAgain(t *testing.T) {
	n := &newcomer{page: at(t, given(t, "ACP_TEST_UI"))}
	n.visit("", "#causes")
	n.click("#causes .seen a", ".row.at")
	n.push("run again", "dialog pre")
	if got := n.text("dialog"); !strings.Contains(got, "1 fail") {
		t.Errorf("the page says %q", got)
	}
	n.quiet()
}
