package browser

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// What the pointer is on is told by its type and by what the specification says of it, in AG-UI as in ACP, and in
// what lies within lists.
func TestFields(t *testing.T) {
	dir := t.TempDir()
	acpTest(t, dir, 0, "run", "--protocol", "ag-ui", "--run", "^text/around-a-call$", "-q")
	out := filepath.Join(dir, "acp-test-out")
	for name, address := range map[string]string{"report.html": "file://" + filepath.Join(out, "report.html"),
		"ui": serving(t, given(t, "ACP_TEST_PROGRAM"), out)} {
		t.Run(name, func(t *testing.T) {
			p := at(t, address)
			for _, f := range []struct{ filter, key, wants string }{
				{"what:RUN_FINISHED", "outcome",
					`["type: success interrupt cancelled", "in RunFinishedEvent", ` +
						`"@ag-ui/core/schemas#RunFinishedEvent: outcome", "AGUI-RUN-010 must: "]`},
				{"what:TEXT_MESSAGE_CONTENT", "delta",
					`["string · required · in TextMessageContentEvent", "AGUI-TXT-007"]`},
				{"method:run+kind:request", "content",
					`["Content · required · in UserMessage", "one of string ContentPart[]"]`},
				{"method:run+kind:request", "messages", `["Message[]", "AGUI-HIST-001"]`},
			} {
				p.visit("#/s/text%2Faround-a-call/frames?filter="+f.filter, ".row")
				p.until(`document.querySelector(".row:not(.waits)")`)
				p.do("the frame", chromedp.Click(".row", chromedp.ByQuery),
					chromedp.WaitVisible(".detail .json .leaf", chromedp.ByQuery))
				// The branches of a tree are made when it is opened.
				p.until(fmt.Sprintf(`(() => { for (const d of document.querySelectorAll(".json `+
					`details:not([open])")) d.open = true;
					return [...document.querySelectorAll(".json .key")].some(k => k.innerText.startsWith(%q)) })()`,
					f.key+":"))
				p.eval(fmt.Sprintf(`void [...document.querySelectorAll(".json .key")].find(k => `+
					`k.innerText.startsWith(%q)).parentElement.dispatchEvent(new MouseEvent("mouseenter"))`, f.key+":"))
				p.until(fmt.Sprintf(`(text => %s.every(w => text.includes(w)))(document.querySelector(".field-about")`+
					`?.innerText || "")`, f.wants))
			}
			p.quiet()
		})
	}
}
