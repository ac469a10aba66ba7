package browser

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// views are the pages of a report, from its overview.
var views = map[string]string{"": "#search", "#/?cause=wrong%23greets": "#scenarios .case",
	"#/s/wrong/frames/9": ".detail", "#/s/wrong/timeline/9": ".timeline canvas", "#/s/wrong/conversation": ".card",
	"#/s/wrong/state/9": ".state-view", "#/s/wrong/compare?with=two": ".beside", "#/s/wrong/files": ".files"}

// accuse is what axe calls serious or critical in the page.
func (p *page) accuse() any {
	p.t.Helper()
	source, err := os.ReadFile(given(p.t, "ACP_TEST_AXE"))
	if err != nil {
		p.t.Fatal(err)
	}
	var found any
	p.do("looking with axe", chromedp.Evaluate(string(source)+";0", nil),
		chromedp.Evaluate(`axe.run().then(r => r.violations
		.filter(v => ["serious", "critical"].includes(v.impact))
		.map(v => v.id + " " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(" | ")).join("\n"))`, &found,
			awaited))
	return found
}

// widths are a phone, the narrowest screen with all panes, a laptop and a wide screen.
var widths = []int64{390, 800, 1440, 2560}

// broken finds wrong plurals on the page, and values of the program where words should stand.
const broken = `(document.querySelector("#app").innerText.match(/\b1 (entries|scenarios|findings|checks|sessions|` +
	`turns|processes|lines|conversations|schedules|pairs|places|rounds|times)\b|undefined|NaN|\[object/g) || ` +
	`[]).join(" | ")`

// squeezed finds columns of tables so narrow that words break letter by letter, and panes that scroll sideways.
const squeezed = `[...document.querySelectorAll("td, th")]
	.filter(e => e.checkVisibility() && e.innerText.trim().length > 8 && e.clientWidth < 50)
	.concat([...document.querySelectorAll(".pane, .view > section, .halves > div")]
		.filter(e => e.clientWidth > 40 && e.scrollWidth > e.clientWidth + 1))
	.map(e => e.className + " " + e.innerText.slice(0, 60)).join(" | ")`

// everywhere opens a view in both themes at all widths: axe finds nothing serious, no sentence is broken, the page
// is not wider than the screen, and -screens gets a picture. All that can be clicked is reached by keys.
func (p *page) everywhere(name, hash, wait string) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range widths {
			p.do("setting the screen", chromedp.EmulateViewport(width, 900), emulate(scheme))
			p.visit(hash, "#app")
			// On a phone another pane may be in sight.
			p.do("waiting for "+wait, chromedp.WaitReady(wait, chromedp.ByQuery))
			at := fmt.Sprintf("%s-%d-%s", name, width, scheme)
			p.screen(at)
			if found := p.accuse(); found != "" {
				p.t.Errorf("%s: %v", at, found)
			}
			p.want("broken sentences of "+at, p.eval(broken), "")
			p.want("what has no room in "+at, p.eval(squeezed), "")
			p.want("width of "+at, p.eval("document.documentElement.scrollWidth"), float64(width))
		}
	}
	p.do("setting the screen", chromedp.EmulateViewport(1440, 900))
	p.visit(hash, wait)
	p.want("what keys do not reach in "+name, p.tabbed(), "")
}

// Nothing serious keeps people out of the report, on any screen and without a mouse.
func TestAccess(t *testing.T) {
	for hash, wait := range views {
		name := strings.NewReplacer("/", "-", "#", "", "?", "-").Replace("view" + hash)
		t.Run(name, func(t *testing.T) { open(t).everywhere(name, hash, wait) })
	}
	large := at(t, "file://"+filepath.Join(given(t, "ACP_TEST_LARGE"), "page", "report.html"))
	large.everywhere("large", "", "#causes")
	large.everywhere("large-failure", "#/s/s150/frames/17", ".moment .said")
	p := open(t)
	p.visit("", views[""])
	// A picture without words, to see that it looks.
	p.eval(`void document.body.append(Object.assign(document.createElement("img"), {src: "data:,"}))`)
	if p.accuse() == "" {
		t.Error("a picture without words passes")
	}
}

// tabbed goes through a page by the Tab key, and names what can be clicked and was not
// reached, or does not show that it has the focus.
func (p *page) tabbed() any {
	p.t.Helper()
	p.eval(`window.tabbed = new Set(), window.unseen = new Set(), document.activeElement.blur(),
		window.reach = () => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, ` +
		`[tabindex='0']")]
			.filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}))`)
	n, _ := p.eval(`reach().length`).(float64)
	for range int(n) + 1 {
		p.do("pressing Tab", chromedp.KeyEvent(kb.Tab))
		p.eval(`(e => { tabbed.add(e); const s = getComputedStyle(e);
			if (e !== document.body && s.outlineStyle === "none" && s.boxShadow === "none") ` +
			`unseen.add(e.outerHTML.slice(0, 120)) })(document.activeElement)`)
	}
	return p.eval(`reach().filter(e => !tabbed.has(e)).map(e => e.outerHTML.slice(0, 120)).concat([...unseen].map(h ` +
		`=> "unseen: " + h)).join("\n")`)
}

// The pages of the guide, as a forge shows them.
func TestGuide(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(given(t, "ACP_TEST_DOCS"), "*.html"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("the guide has the pages %v (%v)", pages, err)
	}
	p := at(t, "about:blank")
	for _, file := range pages {
		address := (&url.URL{Scheme: "file", Path: file}).String()
		p.do("opening "+file, chromedp.EmulateViewport(390, 800), chromedp.Navigate(address),
			chromedp.WaitVisible("h1", chromedp.ByQuery))
		p.want("width of "+file, p.eval("document.documentElement.scrollWidth <= 390"), true)
		if found := p.accuse(); found != "" {
			t.Errorf("%s: %v", filepath.Base(file), found)
		}
	}
}
