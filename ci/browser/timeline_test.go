package browser

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// spying records the texts of the time line's last picture, the widths of its curves, and where the playhead is.
const spying = `(() => { const c = CanvasRenderingContext2D.prototype;
	for (const [name, what] of [["clearRect", () => { window.texts = []; window.curves = [] }], ["fillText", (c, ` +
	`text) => texts.push(text)],
		["bezierCurveTo", c => curves.push(c.lineWidth)], ["fillRect", (c, x, y, w, h) => { if (w === 2 && h > 50) ` +
	`window.head = x + 1 }]]) {
		const own = c[name];
		c[name] = function (...args) { what(this, ...args); return own.apply(this, args) };
	} })()`

// pointer has the time line get an event of the pointer, at a part of its width and so many pixels from its top or,
// below zero, its bottom.
func (p *page) pointer(kind string, x, y float64) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`void (c => { const b = c.getBoundingClientRect(), y = %g; c.setPointerCapture = () => {};
		c.dispatchEvent(new PointerEvent(%q, {pointerId: 1, clientX: b.left + 80 + %g * (b.width - 88), clientY: (y `+
		`< 0 ? b.bottom : b.top) + y})) })
		(document.querySelector(".timeline canvas"))`, y, kind, x))
}

// The time line opens at the turn of the failure. Its spans have names, requests are joined with their answers under
// the pointer,
// the axis moves the playhead, which state and conversation follow, and the small picture moves what is in view.
func TestTimeLine(t *testing.T) {
	p := at(t, "file://"+filepath.Join(given(t, "ACP_TEST_LARGE"), "page", "report.html"))
	p.spy()
	p.visit("#/", "#causes")
	p.do("the failure", chromedp.Click(toFailure, chromedp.ByQuery), chromedp.WaitVisible(".row.at", chromedp.ByQuery))
	for _, name := range []string{"editor", "agent", "model", "process", "turn", "cancel window", "model request",
		"gate mid"} {
		p.until(fmt.Sprintf("texts.includes(%q)", name))
	}
	const inView = `document.querySelector(".timeline .bar .dim").textContent`
	turn := p.eval(inView)
	p.press("all")
	p.until(fmt.Sprintf("%s !== %q", inView, turn))

	// The pointer on the answer of the turn.
	p.want("thick curves", p.eval("curves.includes(3)"), false)
	joined := 0.0
	for x := 1.0; x > 0 && joined == 0; x -= .004 {
		p.pointer("pointermove", x, 40)
		p.do("drawing", chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
			done(curves.filter(width => width === 3).length))))`, &joined, awaited))
	}
	p.want("curves from the request to the answer under the pointer", joined, 1.0)

	// The playhead from the prompt to another place and back.
	p.do("the prompt", chromedp.Click("#problems .proof a", chromedp.ByQuery))
	p.until(`document.querySelector(".row.at")?.innerText.includes("session/prompt")`)
	prompt, _ := p.eval(`document.querySelector(".row.at").id.slice(1)`).(string)
	var back float64
	p.do("drawing", chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
		.then(() => (head - 80) / (document.querySelector(".timeline canvas").clientWidth - 88))`, &back, awaited))
	move := func(x float64, until string) {
		p.pointer("pointerdown", x, 4)
		p.pointer("pointerup", x, 4)
		p.until(until)
	}
	const user = `document.querySelector(".card.user").classList.contains("at-it")`
	p.do("the state", chromedp.Click("nav.tabs a:nth-child(4)", chromedp.ByQuery),
		chromedp.WaitVisible(".state-view .block", chromedp.ByQuery))
	lead := `document.querySelector(".state-view .lead").textContent.startsWith("After #` + prompt + `,")`
	move(.95, "!"+lead)
	move(back, lead)
	p.do("the conversation", chromedp.Click("nav.tabs a:nth-child(3)", chromedp.ByQuery),
		chromedp.WaitVisible(".card.user", chromedp.ByQuery))
	move(.95, "!"+user)
	move(back, user)

	// The small picture.
	p.press("all")
	p.do("closer", chromedp.Focus(".timeline canvas", chromedp.ByQuery), chromedp.KeyEvent("+++"))
	p.until(`location.hash.includes("zoom=")`)
	here := p.eval("location.hash")
	p.pointer("pointerdown", .9, -6)
	p.pointer("pointerup", .9, -6)
	p.until(fmt.Sprintf(`location.hash !== %q && location.hash.includes("zoom=")`, here))
	p.quiet()
}

// A pause is folded to a mark that says how long it was.
func TestIdle(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "pause.txtar", strings.Replace(greets, "await turn end_turn\n", "await turn end_turn\npause 500ms\n",
		1))
	acpTest(t, dir, 0, "run", "pause.txtar", "-q")
	p := at(t, "file://"+filepath.Join(dir, "acp-test-out", "report.html"))
	p.spy()
	p.visit("#/s/pause/timeline", ".timeline canvas")
	const idle = `texts.some(text => /^idle (\d{3} ms|\d\.\d+ s)$/.test(text))`
	p.until(idle)
	p.press("idle folded")
	p.until("!" + idle)
	p.press("idle folded")
	p.until(idle)
	p.quiet()
}

// spy records each thing that the time line draws.
func (p *page) spy() {
	p.t.Helper()
	p.do("spying", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(spying).Do(ctx)
		return err
	}), chromedp.EmulateViewport(1440, 900))
}

// What a span is and whether it has an end is seen without colours.
func TestShapes(t *testing.T) {
	p := at(t, "about:blank")
	p.do("a page", chromedp.Navigate("about:blank"))
	p.want("shapes that differ", p.eval(`(() => {`+module(t, "dom")+module(t, "spans")+module(t, "plot")+`
		const plot = new Plot(), picture = (kind, open) => {
			const c = new OffscreenCanvas(120, 30).getContext("2d");
			plot.shape(c, kind, 5, 5, 100, 20, open);
			return c.getImageData(0, 0, 120, 30).data.join();
		};
		return new Set(["turn", "permission", "request", "gate", "cancel", "process"].map(kind => picture(kind, `+
		`false)).concat(picture("turn", true))).size;
	})()`), 7.0)
}
