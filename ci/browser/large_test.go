package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// seen is what stands in a part of a view.
type seen struct{ hash, wait, in, want string }

// shows opens each view and waits for what it has to say.
func (p *page) shows(views []seen) {
	p.t.Helper()
	for _, v := range views {
		p.visit(v.hash, v.wait)
		p.until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", v.in, v.want))
	}
}

// drawn counts the colours in the time line: what is drawn, is in several.
const drawn = `(c => { const copy = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true});
	copy.drawImage(c, 0, 0);
	const d = copy.getImageData(0, 0, c.width, c.height).data, all = new Set();
	for (let i = 0; i < d.length; i += 4 * 7) all.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return all.size ` +
	`})(document.querySelector(".timeline canvas"))`

// 300 scenarios with 200,000 entries, in the page that holds them and from acp-test ui.
func TestLargeRun(t *testing.T) {
	dir := filepath.Join(given(t, "ACP_TEST_LARGE"), "page")
	if info, err := os.Stat(filepath.Join(dir, "report.html")); err != nil || info.Size() > 6e6 {
		t.Errorf("the page of 300 scenarios: %v, %v; want at most 6 MB", info, err)
	}
	for name, address := range map[string]string{"report.html": "file://" + filepath.Join(dir, "report.html"),
		"ui": serving(t, given(t, "ACP_TEST_PROGRAM"), dir)} {
		t.Run(name, func(t *testing.T) {
			p := at(t, address)
			p.shows([]seen{
				{"", "#causes", ".list [role=status]", "300 of 300"},
				{"", "#causes", "#causes .seen", "10 scenarios"},
				{"#/?search=number+150", "#scenarios .case", "#scenarios",
					"Number 150 is cancelled while the model speaks."},
				{"#/s/s150/frames", ".row", ".view [role=status]", " entries"},
				{"#/s/s150/frames?filter=method:session/cancel", ".row", ".t-window", "session/cancel"},
				{"#/s/s150/frames?filter=is:finding", ".row", ".t-window", "CANCEL-REASON"},
				{"#/s/s150/frames?filter=text~%22there+was+an+end%22", ".row", ".t-window", "there was an end"},
				{"#/s/s001/frames/600", "#f600.at", ".detail h2", "#600"},
				{"#/s/s001/timeline", ".timeline.tall canvas", ".timeline .bar", "in view"},
				{"#/s/s001/conversation", ".card.agent", ".conversation", "Written, 1. word word"},
				{"#/s/s001/conversation", ".card.tool", ".card.tool", "file-1.txt"},
				{"#/s/s150/conversation", ".card.agent", ".conversation", "the user cancels"},
				{"#/s/s001/state/600", ".state-view .block", ".state-view", "in a turn"},
				{"#/s/s001/state/600", ".state-view .block", ".state-view", "file-1.txt"},
				{"#/s/s001/compare?with=s002", ".beside", ".compare .lead", "differ"},
				{"#/s/s001/files", ".files pre", ".files", "file-1.txt"},
			})
			p.visit("#/s/s150/timeline", ".timeline.tall canvas")
			p.until(drawn + " > 8")
			p.quiet()
		})
	}
}

// One transcript of a million entries.
func TestMillion(t *testing.T) {
	p := at(t, serving(t, given(t, "ACP_TEST_PROGRAM"), filepath.Join(given(t, "ACP_TEST_LARGE"), "million.jsonl")))
	const here = "#/s/million.jsonl/"
	p.shows([]seen{
		{here + "frames", ".row", ".view [role=status]", "1,000,0"},
		{here + "frames/999990", "#f999990.at", ".detail h2", "#999990"},
		{here + "frames?filter=method:session/request_permission", ".row", ".view [role=status]", "40,8"},
		{here + "frames?filter=text~%22Question+12345+about%22", ".row", ".t-window",
			"Question 12345 about the code in main.go"},
		{here + "frames?filter=seq:700000..700003", ".row", ".view [role=status]", "4 of 1,000,0"},
		{here + "timeline/500000", ".timeline.tall canvas", ".timeline .bar", "in view"},
		{here + "conversation/500000", ".at-it", ".at-it", "end_turn"},
		{here + "conversation/500000", ".card.tool", ".card.tool", "Edit main.go"},
		{here + "state/499990", ".state-view .block", ".state-view", "1 session"},
		{here + "state/499990", ".state-view .block", ".state-view", "in a turn"},
		{here + "compare?with=nothing", ".compare", ".compare", "There is no transcript nothing."},
		{here + "files", ".files", ".files", "no more than the transcript"},
	})
	p.visit(here+"timeline", ".timeline.tall canvas")
	p.until(drawn + " > 8")
	all := p.text(".timeline .bar")
	p.do("looking closer", chromedp.Focus(".timeline canvas", chromedp.ByQuery), chromedp.KeyEvent("+++++++"))
	p.until(fmt.Sprintf("document.querySelector('.timeline .bar').innerText !== %q && %s > 8", all, drawn))
	// From its beginning to its end by keys.
	p.visit(here+"frames/1", "#f1.at")
	p.until(`document.querySelector(".view [role=status]").textContent.endsWith(" entries")`)
	p.do("to the end", chromedp.Focus(".t-scroll", chromedp.ByQuery), chromedp.KeyEvent(kb.End),
		chromedp.WaitVisible(".row.at", chromedp.ByQuery))
	p.until(`Number(document.querySelector(".row.at")?.id.slice(1)) > 1000000`)
	p.quiet()
}
