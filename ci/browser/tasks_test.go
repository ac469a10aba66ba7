package browser

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// newcomer does what a person does who has the page before them, and counts the clicks.
type newcomer struct {
	*page
	clicks int
}

func (n *newcomer) click(selector, until string) {
	n.t.Helper()
	n.clicks++
	n.do("clicking "+selector, chromedp.Click(selector, chromedp.ByQuery), chromedp.WaitVisible(until, chromedp.ByQuery))
}

func (n *newcomer) push(text, until string) {
	n.t.Helper()
	n.clicks++
	n.press(text)
	n.do("waiting for "+until, chromedp.WaitVisible(until, chromedp.ByQuery))
}

// What a newcomer wants to know of a run in which cancels failed takes at most three clicks from
// the page as it opens. docs/inspector.md has the numbers beside those of other tools.
func TestTasks(t *testing.T) {
	large := filepath.Join(given(t, "ACP_TEST_LARGE"), "page")
	for _, task := range []struct {
		what  string
		do    func(n *newcomer)
		in    string
		wants []string
	}{
		{"why did this cancel fail", func(n *newcomer) { n.click("#causes a", ".row.at") }, "#problems",
			[]string{`After session/cancel the turn ended with "end_turn" instead of cancelled`, `held at gate "mid"`}},
		{"which frame was wrong, or came too late", func(n *newcomer) { n.click("#causes a", ".row.at") }, ".row.at",
			[]string{"end_turn", "▲"}},
		{"what did the model say then", func(n *newcomer) {
			n.click("#causes a", ".row.at")
			n.click("nav.tabs a:nth-child(3)", ".card.agent")
		}, ".conversation", []string{"word word word"}},
		{"make this a scenario", func(n *newcomer) {
			n.click("#causes a", ".row.at")
			n.push("make a scenario", "dialog pre")
		}, "dialog", []string{"'Tell story", "await gate", "cancel"}},
		{"is it the same defect as in s300", func(n *newcomer) {
			n.click("#causes a", ".row.at")
			n.click("a.same", "#scenarios")
		}, "#scenarios tbody", []string{"s030", "s300"}},
	} {
		t.Run(task.what, func(t *testing.T) {
			n := &newcomer{page: at(t, serving(t, given(t, "ACP_TEST_PROGRAM"), large))}
			n.visit("", "#causes")
			task.do(n)
			for _, want := range task.wants { // a row is there before its text
				n.until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", task.in, want))
			}
			if t.Logf("%d clicks", n.clicks); n.clicks > 3 {
				t.Errorf("it takes %d clicks", n.clicks)
			}
			n.quiet()
		})
	}
}

// With an agent, a scenario runs again from its page.
func TestRunAgain(t *testing.T) {
	n := &newcomer{page: at(t, given(t, "ACP_TEST_UI"))}
	n.visit("", "#causes")
	n.click("#causes a", ".row.at")
	n.push("run again", "dialog pre")
	if got := n.text("dialog"); !strings.Contains(got, "1 fail") {
		t.Errorf("the page says %q", got)
	}
	n.quiet()
}
