package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// The editor and the model are played from the page: a prompt, a hold, a permission, a
// message that is edited as JSON, a cancel; and nobody is kept out of it.
func TestScratch(t *testing.T) {
	p := at(t, servingIn(t, t.TempDir(), given(t, "ACP_TEST_PROGRAM"), "ui", "--scratch", "--agent", "reference"))
	const status = "document.querySelector('#now').innerText"
	p.visit("", "#say")
	p.until(`document.querySelector(".t-window")?.innerText.includes("session/new")`)
	// It is judged, but nothing says pass before anything ran.
	p.until(`performance.getEntriesByType("resource").some(e => e.name.includes("/judged?"))`)
	p.want("the verdict before a prompt", p.text("h1 .v"), "unjudged")
	p.do("a prompt", chromedp.SendKeys("#say", "Write it.", chromedp.ByQuery),
		chromedp.SetValue("#model", "- - tool: write_file\n    args: {path: $WORK/a.txt, content: one}\n"+
			"- - text: Written.\n", chromedp.ByQuery),
		chromedp.Click("#hold", chromedp.ByQuery), chromedp.Click("button.main", chromedp.ByQuery))
	p.until(status + `.includes("go on: step-1")`)
	p.press("go on: step-1")
	p.until(status + `.includes("go on: step-2")`)
	p.press("go on: step-2")
	p.until(status + `.includes("Write a.txt")`)
	p.everywhere("scratch", "", ".asks button")
	p.do("the prompt again", chromedp.SendKeys("#say", "Write it.", chromedp.ByQuery))
	p.until(status + `.includes("Write a.txt")`)
	p.press("Allow")
	p.until(status + `.includes("go on: step-3")`)
	p.press("cancel the turn")
	p.until(status + `.includes("waits for a prompt")`)

	p.do("the next message", chromedp.Click(".scratch summary", chromedp.ByQuery))
	p.press("take the prompt")
	p.want("what is edited", p.eval(`JSON.parse(document.querySelector("#raw").value).params.prompt[0].text`),
		"Write it.")
	p.eval(`document.querySelector("#raw").value = document.querySelector("#raw").value.replace("Write it.", ` +
		`"Edited by hand.")`)
	p.press("send it")
	p.do("the conversation", chromedp.Click("nav.tabs a:nth-child(3)", chromedp.ByQuery))
	p.until(`document.querySelector(".conversation")?.innerText.includes("Edited by hand.")`)
	// A request is composed of its schema.
	p.until(`document.querySelector(".compose select")?.options.length > 5`)
	p.eval(`void (s => { s.value = "session/new"; s.dispatchEvent(new Event("change")) ` +
		`})(document.querySelector(".compose select"))`)
	p.want("what it must have", p.eval(`(p => typeof p.cwd + " " + Array.isArray(p.mcpServers))(JSON.parse(document.q`+
		`uerySelector("#raw").value).params)`), "string true")
	p.do("looking at one", chromedp.Focus(".compose .parts button", chromedp.ByQuery))
	p.until(`document.querySelector(".compose .field-about")?.innerText.includes("NewSessionRequest")`)
	p.screen("composed")
	const members = `Object.keys(JSON.parse(document.querySelector("#raw").value).params).length`
	least, _ := p.eval(members).(float64)
	p.do("one more member", chromedp.Click(".compose .parts button", chromedp.ByQuery))
	p.want("members", p.eval(members), least+1)
	p.press("make a scenario")
	p.do("the scenario", chromedp.WaitVisible("dialog pre", chromedp.ByQuery))
	p.until(`document.querySelector("dialog")?.innerText.includes("await turn cancelled")`)
	p.screen("made")
	p.quiet()
}
