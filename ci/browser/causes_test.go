package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// linking is causes.js as a function of the lines of a transcript, which gives "1 > 2 why".
func linking(t *testing.T, lines string) string {
	t.Helper()
	src, err := os.ReadFile("../../inspector/page/causes.js")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^import [^;]*;\n|^export `).ReplaceAllString(string(src), "")
	quoted, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	return `(() => {
		const parsed = text => { try { return JSON.parse(text); } catch { return undefined; } };
		` + text + `
		return links(` + string(quoted) + `.trim().split("\n").map((line, i) => {
			const [source, kind, session, ref, method, raw] = line.trim().split(/ (?=\S)/).reduce((all, w) => ` +
		`(all.length < 6 ? all.push(w) : all[5] += " " + w, all), []);
			const message = parsed(raw), label = ((message.params || {}).update || {}).sessionUpdate || method;
			return { i, source, kind, method, label, session: session === "-" ? "" : session, ref: ref - 1, origin: ` +
		`0, raw, message };
		})).map(l => (l.from + 1) + " > " + (l.to + 1) + " " + l.why).join("\n");
	})()`
}

// What follows from what, of small transcripts; and where the log leaves it open, nothing.
func TestCauses(t *testing.T) {
	p := at(t, "about:blank")
	p.do("a page", chromedp.Navigate("about:blank"))
	const call = `agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"tool_call",` +
		`"toolCallId":"%s","rawInput":%s}}}` + "\n"
	const prompt = "editor request s 0 session/prompt {}\nmodel model-request s 0 - {\"n\":1}\n"
	for name, c := range map[string]struct{ lines, want, never string }{
		"text in the same place": {prompt +
			`model model-chunk s 0 - {"n":1,"says":"text","data":"ab"}
			model model-chunk s 0 - {"n":1,"says":"text","data":"cd"}
			agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"text":"abc"}}}}
			agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"text":"d"}}}}`,
			"3 > 5 the same text\n4 > 5 the same text\n4 > 6 the same text", "3 > 6"},
		"another text": {prompt +
			`model model-chunk s 0 - {"n":1,"says":"text","data":"ab"}
			agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"text":"b"}}}}`,
			"2 > 3 a piece of the reply", "3 > 4"},
		"two replies that say the same": {prompt + `model model-request s 0 - {"n":2}
			model model-chunk s 0 - {"n":1,"says":"text","data":"ab"}
			model model-chunk s 0 - {"n":2,"says":"text","data":"ab"}
			agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"text":"ab"}}}}`,
			"3 > 5 a piece of the reply", "the same text"},
		"calls by their arguments": {prompt + `model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":1,\"b\":2}"}
			model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":2}"}
			` + fmt.Sprintf(call, "x", `{"a":2}`) + fmt.Sprintf(call, "y", `{"b":2,"a":1}`),
			"4 > 5 the same arguments\n3 > 6 the same arguments", "only"},
		"chunks that left together": {prompt + `model model-chunk s 0 - {"n":1,"says":"text","data":["a","b"]}
			model model-chunk s 0 - {"n":1,"says":"tool","data":["{\"a\":","1}","{\"a\":2}"]}
			agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"text":"ab"}}}}
			` + fmt.Sprintf(call, "x", `{"a":2}`) + fmt.Sprintf(call, "y", `{"a":1}`),
			"3 > 5 the same text\n4 > 6 the same arguments\n4 > 7 the same arguments", "only"},
		"calls that could be either": {prompt + `model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":1}"}
			model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":1}"}
			` + fmt.Sprintf(call, "x", `{"a":1}`), "2 > 4 a piece of the reply", "> 5"},
		"a call that was not asked for": {prompt + `model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":1}"}
			` + fmt.Sprintf(call, "x", `{"a":3}`), "2 > 3 a piece of the reply", "> 4"},
		"a file of one of two calls": {prompt + fmt.Sprintf(call, "x", `{"path":"/x"}`) + fmt.Sprintf(call, "y",
			`{"path":"/y"}`) +
			`agent request s 0 fs/read_text_file {"params":{"path":"/y"}}
			agent request s 0 fs/read_text_file {"params":{"path":"/z"}}`, "4 > 5 the call of the same path", "> 6"},
		"a permission, its answer and the call": {prompt + fmt.Sprintf(call, "x", `{}`) +
			`agent request s 0 session/request_permission {"id":9,"params":{"toolCall":{"toolCallId":"x"}}}
			editor response s 4 session/request_permission {"id":9,"result":{}}
			agent notification s 0 session/update {"params":{"update":{"sessionUpdate":"tool_call_update",` +
			`"toolCallId":"x","status":"completed"}}}
			model model-request s 0 - {"n":2,"results":["ok"]}`,
			"3 > 4 the same tool call\n4 > 5 request and answer\n4 > 6 the same tool call\n5 > 6 the call goes on\n" +
				"6 > 7 the result that the model is given", "1 > 7"},
		"a cancel": {prompt +
			`agent request s 0 session/request_permission {"id":9,"params":{}}
			agent request z 0 session/request_permission {"id":10,"params":{}}
			editor notification s 0 session/cancel {}
			editor response s 3 session/request_permission {"id":9,"result":{"outcome":{"outcome":"cancelled"}}}
			editor response z 4 session/request_permission {"id":10,"result":{"outcome":{"outcome":"cancelled"}}}
			model model-aborted s 0 - {"n":1}
			agent response s 1 session/prompt {"id":1,"result":{"stopReason":"cancelled"}}`,
			"5 > 6 asked in the turn that was cancelled\n2 > 8 the end of the reply\n5 > 8 aborted after the cancel\n" +
				"1 > 9 request and answer\n5 > 9 the cancelled turn ends", "5 > 7"},
		"an end in spite of a cancel": {prompt + `editor notification s 0 session/cancel {}
			agent response s 1 session/prompt {"id":1,"result":{"stopReason":"end_turn"}}`, "1 > 4 request and answer",
			"3 > 4"},
		"a gate": {prompt + `model gate s 0 - {"n":1,"gate":"mid"}
			model gate-released - 0 - {"n":1,"gate":"mid"}
			model model-chunk s 0 - {"n":1,"says":"text","data":"ab"}
			model model-chunk s 0 - {"n":1,"says":"text","data":"cd"}`,
			"2 > 3 a gate in the reply\n3 > 4 the gate that is released\n2 > 5 a piece of the reply\n4 > 5 let go on",
			"4 > 6"},
		"terminals": {prompt + fmt.Sprintf(call, "x", `{}`) + `agent request s 0 terminal/create {"id":1,"params":{}}
			terminal term-started s 0 - {"terminal":"T"}
			editor response s 4 terminal/create {"id":1,"result":{"terminalId":"T"}}
			agent request s 0 terminal/wait_for_exit {"id":2,"params":{"terminalId":"T"}}
			terminal term-exit s 0 - {"terminal":"T"}
			editor response s 7 terminal/wait_for_exit {"id":2,"result":{}}`,
			"3 > 4 the only call that runs\n4 > 5 the terminal that it starts\n4 > 6 request and answer\n" +
				"5 > 6 the terminal that it names\n6 > 7 the same terminal\n5 > 8 the same terminal\n" +
				"7 > 9 request and answer\n8 > 9 the exit that it waits for", "1 > 4"},
		"another session": {prompt + `model model-chunk s 0 - {"n":1,"says":"text","data":"ab"}
			agent notification z 0 session/update {"params":{"update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"text":"ab"}}}}`, "2 > 3 a piece of the reply", "> 4"},
		"a run of AG-UI": {`editor request s 0 run {}
			agent notification s 1 RUN_STARTED {}
			model model-request s 0 - {"n":1}
			model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":1}"}
			model model-chunk s 0 - {"n":1,"says":"tool","data":"{\"a\":2}"}
			agent notification s 1 TOOL_CALL_START {"toolCallId":"x"}
			agent notification s 1 TOOL_CALL_ARGS {"toolCallId":"x","delta":"{\"a\""}
			agent notification s 1 TOOL_CALL_ARGS {"toolCallId":"x","delta":":2}"}
			agent notification s 1 RUN_FINISHED {}
			agent ended s 1 run {"end":"closed"}`,
			"5 > 8 the same arguments\n1 > 9 the turn ends\n1 > 10 request and the end of its answer\n" +
				"9 > 10 the last event of the run", "> 6"},
		"a request that is cancelled by its id": {`editor request s 0 session/prompt {"id":3}
			editor request s 0 session/prompt {"id":4}
			editor notification - 0 $/cancel_request {"params":{"requestId":3}}
			agent response s 2 session/prompt {"id":4,"result":{}}
			agent response s 1 session/prompt {"id":3,"result":{}}`, "3 > 5 the request that was cancelled", "3 > 4"},
	} {
		got, _ := p.eval(linking(t, c.lines)).(string)
		for want := range strings.SplitSeq(c.want, "\n") {
			if !strings.Contains("\n"+got+"\n", "\n"+want+"\n") || strings.Contains(got, c.never) {
				t.Errorf("%s: got\n%s\nwant\n%s\nand not %q", name, got, want, c.never)
			}
		}
	}
}

// blue counts the points of the time line, beside the line of the selected entry, that have its colour: arrows.
const blue = `(c => { const copy = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true});
	copy.drawImage(c, 0, 0);
	const d = copy.getImageData(0, 0, c.width, c.height).data, columns = new Set();
	for (let i = 0; i < d.length; i += 4) if (d[i] === 10 && d[i + 1] === 88 && d[i + 2] === 202) columns.add(i / 4 ` +
	`% c.width);
	return columns.size })(document.querySelector(".timeline canvas"))`

// The selected entry says what it follows from and what follows from it, in words that keys reach and as arrows.
func TestCausesOfAnEntry(t *testing.T) {
	dir := t.TempDir()
	acpTest(t, dir, 0, "run", "--run", "^cancel/permission-answered$", "-q")
	for name, address := range map[string]string{"report.html": "file://" +
		filepath.Join(dir, "acp-test-out", "report.html"),
		"ui": serving(t, given(t, "ACP_TEST_PROGRAM"), filepath.Join(dir, "acp-test-out"))} {
		t.Run(name, func(t *testing.T) {
			p := at(t, address)
			p.do("setting the screen", chromedp.EmulateViewport(1280, 800), emulate("light"))
			p.visit("#/s/cancel%2Fpermission-answered/frames?filter=method:session/cancel", ".row")
			p.until(`document.querySelector(".row:not(.waits)")`) // it is made anew when its text comes
			p.do("the cancel", chromedp.Click(".row", chromedp.ByQuery))
			p.until(`/led to[^]*session\/request_permission asked in the turn that was cancelled[^]*session\/prompt ` +
				`the cancelled turn ends/.test(document.querySelector(".causes")?.innerText || "")`)
			p.press("causal order")
			p.until(blue + " > 20")
			p.do("the end of the turn", chromedp.Focus(`//section[@class="causes"]//a[contains(., "session/prompt")]`,
				chromedp.BySearch), chromedp.KeyEvent("\r"))
			p.until(`/caused by[^]*session\/cancel the cancelled turn ends/.test(document.querySelector(".causes")?.i` +
				`nnerText || "")`)
			p.want("the method", p.eval(`document.querySelector(".detail h2").innerText.endsWith("session/prompt")`),
				true)
			// Beside each entry about a tool call, of whatever kind, stands that call.
			for _, filter := range []string{"what:tool_call", "what:session/request_permission+from:agent",
				"what:tool_call_update"} {
				p.visit("#/s/cancel%2Fpermission-answered/frames?filter="+filter, ".row")
				p.until(`document.querySelector(".row:not(.waits)")`)
				p.do("the entry", chromedp.Click(".row", chromedp.ByQuery))
				p.until(`document.querySelector(".moment .card.tool")?.innerText.includes("pending")`)
			}
			// What has no cause shows none.
			p.visit("#/s/cancel%2Fpermission-answered/frames/1", ".detail .json")
			p.until(`document.querySelector(".causes") && document.querySelector(".causes").innerText === ""`)
			p.want("arrows", p.eval(blue+" < 20"), true)
			p.quiet()
		})
	}
}
