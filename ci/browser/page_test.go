// Package browser holds the tests of report.html and of acp-test ui in a browser;
// ci/browser/run makes a run for them.
package browser

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// page is the report in a browser, and what its console said.
type page struct {
	context.Context
	t       testing.TB
	address string
	mu      sync.Mutex
	console []string
}

func open(t testing.TB) *page {
	t.Helper()
	return at(t, (&url.URL{Scheme: "file", Path: given(t, "ACP_TEST_PAGE")}).String())
}

// given is what ci/browser/run made.
func given(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatal("ci/browser/run makes a run and starts this test")
	}
	return value
}

func at(t testing.TB, address string) *page {
	t.Helper()
	program := given(t, "ACP_TEST_CHROMIUM")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(2*time.Minute))
	all, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	p := &page{Context: ctx, t: t, address: address}
	chromedp.ListenTarget(ctx, func(e any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			p.console = append(p.console, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			p.console = append(p.console, string(e.Type))
		case *log.EventEntryAdded:
			p.console = append(p.console, e.Entry.Text)
		}
	})
	return p
}

func (p *page) do(what string, actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// text is what a user reads in an element.
func (p *page) text(selector string) string {
	p.t.Helper()
	var s string
	p.do("reading "+selector, chromedp.Text(selector, &s, chromedp.ByQuery))
	return s
}

func (p *page) eval(script string) (v any) {
	p.t.Helper()
	p.do(script, chromedp.Evaluate(script, &v))
	return v
}

// awaited is for a script whose value is promised.
func awaited(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// until waits for something to become true in the page.
func (p *page) until(condition string) {
	p.t.Helper()
	p.do("waiting for "+condition, chromedp.Poll(condition, nil, chromedp.WithPollingTimeout(time.Minute)))
}

func (p *page) want(what string, got, want any) {
	p.t.Helper()
	if got != want {
		p.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// quiet says that the browser complained of nothing.
func (p *page) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.console) > 0 {
		p.t.Errorf("the console says: %s", strings.Join(p.console, "\n"))
	}
}

// visit opens the page anew at an address within it.
func (p *page) visit(hash, until string) {
	p.t.Helper()
	p.do("opening "+hash, chromedp.Navigate("about:blank"), chromedp.Navigate(p.address+hash),
		chromedp.WaitVisible(until, chromedp.ByQuery))
}

// acpTest runs acp-test in a folder. It fails unless the exit status is the one given.
func acpTest(t testing.TB, dir string, status int, words ...string) string {
	t.Helper()
	c := exec.Command(given(t, "ACP_TEST_PROGRAM"), words...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != status {
		t.Fatalf("acp-test %v: %v\n%s", words, err, out)
	}
	return string(out)
}

// write puts a file into a folder.
func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

const shownRows = `document.querySelectorAll("#scenarios .case").length`

func TestPage(t *testing.T) {
	p := open(t)
	p.do("opening the page", chromedp.Navigate(p.address), chromedp.WaitVisible("#search", chromedp.ByQuery))

	p.want("rows", p.eval(shownRows), 3.0)
	if got := p.text("h1"); !strings.Contains(got, "fail") {
		t.Errorf("the heading says %q, want the verdict", got)
	}
	if got := p.text("#causes"); !strings.Contains(got, "wrong#greets") {
		t.Errorf("the causes are %q, want the check that missed", got)
	}
	if got := p.text("#scenarios"); !strings.Contains(got, "A greeting <b>in bold</b>.") {
		t.Errorf("the index says %q, want the sentence of each scenario", got)
	}

	// Search and filter, which the address keeps.
	p.do("searching", chromedp.SendKeys("#search", "wrong", chromedp.ByQuery))
	p.want("rows that match", p.eval(shownRows), 1.0)
	p.want("the address of a search", p.eval("location.hash"), "#/?search=wrong")
	p.do("clearing the search", chromedp.SendKeys("#search", strings.Repeat(kb.Backspace, len("wrong")),
		chromedp.ByQuery))
	p.want("rows after clearing", p.eval(shownRows), 3.0)
	p.do("showing what failed", chromedp.Click("button.fail", chromedp.ByQuery))
	p.want("rows that failed", p.eval(shownRows), 1.0)

	// A click opens a scenario at the frame that matters, another one another frame.
	p.do("opening a scenario", chromedp.Click("#scenarios .case a", chromedp.ByQuery),
		chromedp.WaitVisible(".row.at", chromedp.ByQuery))
	if got := p.eval("location.hash").(string); !strings.HasPrefix(got, "#/s/wrong/frames/") {
		t.Errorf("the address is %s", got)
	}
	if got := p.text("#problems .problem"); !strings.Contains(got, "turn refusal") ||
		!strings.Contains(got, "end_turn") {
		t.Errorf("the failure says %q, want what was expected and what came", got)
	}
	p.do("opening a frame", chromedp.Click(".row.agent", chromedp.ByQuery),
		chromedp.WaitVisible(".detail .json .leaf", chromedp.ByQuery))
	p.do("all of it opened", chromedp.Click("nav.tabs a:nth-child(3)", chromedp.ByQuery),
		chromedp.WaitVisible(".card", chromedp.ByQuery))

	// What a hostile agent sent is text.
	if got, _ := p.eval(`document.getElementById("app").textContent`).(string); !strings.Contains(got,
		"Say <script>window.hostile =") {
		t.Error("the prompt is not shown as it was")
	}
	p.want("scripts that ran", p.eval("typeof window.hostile"), "undefined")
	p.want("elements made of what an agent sent",
		p.eval(`document.querySelectorAll("#app script, #app img, #app b b").length`), 0.0)

	// Keys: to the overview, to the next failure.
	p.do("going up", chromedp.KeyEvent("u"))
	p.until(`location.hash === "#/"`)
	p.do("going to the next failure", chromedp.KeyEvent("n"))
	p.until(`location.hash.startsWith("#/s/wrong")`)

	// A deep link leads to a frame, in a page that was just opened.
	p.visit("#/s/one/frames/4", "#f4.at")
	p.visit("#/s/nothing", "nav")
	if got := p.text("body"); !strings.Contains(got, "There is no scenario nothing") {
		t.Errorf("a link to nothing shows %q", got)
	}
	p.quiet()
}

// Each view has an address of its own, in the page that holds its data and in the one that
// a server gives, and says what it is for.
func TestViews(t *testing.T) {
	for name, address := range map[string]string{
		"report.html": (&url.URL{Scheme: "file", Path: given(t, "ACP_TEST_PAGE")}).String(),
		"ui":          given(t, "ACP_TEST_UI"),
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, address)
			for _, v := range []struct{ hash, wait, in, want string }{
				{"#/s/one/frames?filter=from:agent+-kind:response", ".row.agent", ".view [role=status]", " of "},
				{"#/s/one/frames?filter=text~hostile", ".row", ".t-window", "window.hostile"},
				{"#/s/one/frames?filter=colour:red", "[role=alert]", "[role=alert]", "there is no colour:"},
				{"#/s/one/timeline", ".timeline.tall canvas", ".timeline .bar", "in view"},
				{"#/s/one/conversation", ".card.agent", ".card.agent",
					"</script><script>window.hostile = 'text'</script>"},
				{"#/s/one/state/12", ".state-view .block", ".state-view", "Open requests"},
				{"#/s/one/compare?with=two", ".beside", ".compare .lead", "They say the same."},
				{"#/s/one/compare?with=wrong", ".beside", ".compare .lead", "differ"},
				{"#/s/one/files", ".files pre", ".files", "window.hostile = \"stderr\""},
			} {
				p.visit(v.hash, v.wait)
				// Some of it is drawn when the rest is there.
				p.until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", v.in, v.want))
			}
			p.want("scripts that ran", p.eval("typeof window.hostile"), "undefined")
			// The tree of a frame, and the arrow keys.
			p.visit("#/s/one/frames/4", ".detail .json .leaf")
			p.do("the next frame", chromedp.Focus(".t-scroll", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowDown),
				chromedp.WaitVisible("#f5.at", chromedp.ByQuery))
			p.want("the address", p.eval("location.hash"), "#/s/one/frames/5")
			p.quiet()
		})
	}
}

// What is in view of the time line is in the address, to scale and in causal order, and is there again where that
// is opened.
func TestZoom(t *testing.T) {
	p := open(t)
	p.visit("#/s/one/timeline", ".timeline.tall canvas")
	const inView = `document.querySelector(".timeline .bar .dim").textContent`
	for _, causal := range []bool{false, true} {
		if causal {
			p.press("causal order")
			p.until(inView + `.endsWith("entries in view")`)
		}
		p.do("looking closer", chromedp.Focus(".timeline canvas", chromedp.ByQuery), chromedp.KeyEvent("++"),
			chromedp.KeyEvent(kb.ArrowRight))
		p.until(fmt.Sprintf(`/zoom=[\d.]+(us)?\.\.[\d.]+(us)?$/.test(location.hash) && `+
			`location.hash.includes("us") !== %t`, causal))
		var is []any
		const both = `[location.hash, ` + inView + `]`
		p.do("looking", chromedp.Evaluate(both, &is))
		p.do("the frames", chromedp.Click("nav.tabs a", chromedp.ByQuery),
			chromedp.WaitVisible(".row", chromedp.ByQuery))
		if got, _ := p.eval(`location.hash`).(string); !strings.Contains(got, "zoom=") {
			t.Errorf("another view has the address %s", got)
		}
		p.visit(is[0].(string), ".timeline.tall canvas")
		p.until(inView + ` !== ""`)
		var again []any
		p.do("looking", chromedp.Evaluate(both, &again))
		p.want("the address", again[0], is[0])
		p.want("what is in view", again[1], is[1])
	}
	p.press("all")
	p.until(`location.hash.endsWith("zoom=order")`)
	p.press("causal order")
	p.do("all of it", chromedp.Focus(".timeline canvas", chromedp.ByQuery), chromedp.KeyEvent("0"))
	p.until(`location.hash === "#/s/one/timeline"`)
	p.quiet()
}

// press clicks the button with a text.
func (p *page) press(text string) {
	p.t.Helper()
	p.do("pressing "+text, chromedp.Click(`//button[text()="`+text+`"]`, chromedp.BySearch))
}

// long finds texts to read, not code or tables of frames, with a line of more characters than one follows with the
// eyes.
const long = `[...document.querySelectorAll("p, .words, blockquote, li, dd, .sentence, .dim")].filter(e => {
	const s = getComputedStyle(e);
	if (!e.checkVisibility() || /mono/i.test(s.fontFamily)) return false;
	const range = document.createRange(), rows = new Map();
	range.selectNodeContents(e);
	for (const r of range.getClientRects()) rows.set(Math.round(r.top), [Math.min(r.left, ` +
	`(rows.get(Math.round(r.top)) || [r.left])[0]), Math.max(r.right, (rows.get(Math.round(r.top)) || [0, ` +
	`r.right])[1])]);
	return [...rows.values()].some(([a, b]) => b - a > 120 * parseFloat(s.fontSize) / 2);
}).map(e => e.outerHTML.slice(0, 160)).join("\n")`

// On a wide screen nothing is wider than that, and no line longer than one reads, also where an agent says much.
func TestWide(t *testing.T) {
	p := at(t, "file://"+filepath.Join(given(t, "ACP_TEST_LARGE"), "page", "report.html"))
	for _, scheme := range []string{"light", "dark"} {
		for hash, wait := range map[string]string{"": "#causes", "#/s/s150/frames/600": ".detail",
			"#/s/s150/timeline/600": ".timeline canvas",
			"#/s/s150/conversation": ".card.agent", "#/s/s150/state/600": ".state-view .block",
			"#/s/s150/compare?with=s120": ".beside", "#/s/s001/files": ".files pre"} {
			p.do("setting the screen", chromedp.EmulateViewport(2560, 1440), emulate(scheme))
			p.visit(hash, wait)
			p.want("width of "+hash, p.eval("document.documentElement.scrollWidth <= 2560"), true)
			p.want("long lines of "+hash, p.eval(long), "")
		}
	}
	// A long line, to see that it looks.
	p.eval(`void app.append(Object.assign(document.createElement("p"), {textContent: "word ".repeat(60), style: ` +
		`"max-width: none"}))`)
	if p.eval(long) == "" {
		t.Error("a line of 300 characters passes")
	}
}

// A coarse look: the page is neither empty nor wider than a phone, in both
// colour schemes.
func TestLooks(t *testing.T) {
	p := open(t)
	light := map[string]uint32{}
	for _, scheme := range []string{"light", "dark"} {
		var shot []byte
		p.do("opening the page on a phone", chromedp.EmulateViewport(390, 800), emulate(scheme),
			chromedp.Navigate(p.address),
			chromedp.WaitVisible("#search", chromedp.ByQuery), chromedp.CaptureScreenshot(&shot))
		p.want("width of the page", p.eval("document.documentElement.scrollWidth <= 390"), true)
		for _, view := range []string{"frames/9", "timeline/9", "conversation", "state/9", "compare?with=two",
			"files"} {
			p.visit("#/s/wrong/"+view, "nav.below") // a pane at a time, so not the same thing in each
			p.want("width of "+view, p.eval("document.documentElement.scrollWidth <= 390"), true)
		}
		img, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		colours := map[uint32]int{}
		for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y += 4 {
			for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x += 4 {
				r, g, b, _ := img.At(x, y).RGBA()
				colours[(r+g+b)/3>>12]++ // sixteen shades
			}
		}
		if len(colours) < 3 {
			t.Errorf("%s: the page has %d shades, it shows nothing", scheme, len(colours))
		}
		for shade, n := range colours {
			if n > colours[light[scheme]] {
				light[scheme] = shade
			}
		}
	}
	if light["light"] <= light["dark"] {
		t.Errorf("most of the page has shade %d in light and %d in dark", light["light"], light["dark"])
	}
}
