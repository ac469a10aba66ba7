package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// conversation is a short session; > is the editor.
const conversation = `> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
	`"clientCapabilities":{"fs":{"readTextFile":true}}}}
< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"}}}
> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/me/w","mcpServers":[]}}
< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}
> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"hi"}]}}
< {"jsonrpc":"2.0","id":2,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/home/me/w/a.txt"}}
> {"jsonrpc":"2.0","id":2,"result":{"content":"x"}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chun` +
	`k","content":{"type":"text","text":"hello"}}}}
< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`

func eachFrame(f func(i int, editor bool, raw string)) {
	for i, line := range strings.Split(conversation, "\n") {
		f(i, line[0] == '>', line[2:])
	}
}

func ours() *transcript.Transcript {
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	eachFrame(func(_ int, editor bool, raw string) {
		from := transcript.Agent
		if editor {
			from = transcript.Editor
		}
		t.AppendFrame(0, from, []byte(raw), 0)
	})
	return t
}

// importable is the conversation in the forms of others.
func importable() map[string]string {
	var plain, directed, wrapped strings.Builder
	var messages []any
	eachFrame(func(i int, editor bool, raw string) {
		plain.WriteString(raw + "\n")
		dir, flow, long := "a2c", "inbound", "agent-to-editor"
		if editor {
			dir, flow, long = "c2a", "outbound", "editor-to-agent"
		}
		fmt.Fprintf(&directed, "{\"t\":%d.5,\"proc\":1,\"dir\":%q,\"frame\":%s}\n", i, dir, raw)
		fmt.Fprintf(&wrapped, "{\"seq\":%d,\"at\":\"2026-01-02T03:04:%02d.000Z\",\"direction\":%q,\"message\":%s}\n", i,
			i, flow, raw)
		messages = append(messages, map[string]any{"seq": i + 1, "timestamp": 1781278066196 + i, "direction": long,
			"kind": "request", "raw": raw, "payload": nil})
	})
	export, err := json.MarshalIndent(map[string]any{"version": 1, "exportedAt": 1,
		"tool": map[string]any{"name": "acp-devtools", "version": "0.3.0"},
		"session": map[string]any{"id": 1, "name": nil, "agentCommand": "a", "clientName": nil, "startedAt": 1,
			"endedAt": nil}, "messages": messages}, "", "    ")
	Expect(err).NotTo(HaveOccurred())
	return map[string]string{"frames alone": plain.String(), "frames with directions": directed.String(),
		"acpx flow": wrapped.String(), "acp-devtools": string(export)}
}

var _ = Describe("reading recordings of others", func() {
	for _, form := range []string{"frames alone", "frames with directions", "acpx flow", "acp-devtools"} {
		It("takes "+form, func() {
			t, err := replay.Read(recordings.V1(), strings.NewReader(importable()[form]), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(judge.Canonical(t)).To(Equal(judge.Canonical(ours())))
		})
	}

	It("takes our own", func() {
		var b bytes.Buffer
		Expect(ours().Save(&b)).To(Succeed())
		t, err := replay.Read(recordings.V1(), &b, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(t.Len()).To(Equal(9))
	})

	It("says what is wrong with a file", func() {
		t, err := replay.Read(recordings.V1(),
			strings.NewReader("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"meth\nhello\n"), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(t.Len()).To(Equal(1))
		Expect(t.Skipped()).To(HaveLen(1))
		Expect(t.Skipped()[0].Line).To(Equal(2))
		_, err = replay.Read(recordings.V1(), strings.NewReader("{\"a\":1}\n"), nil)
		Expect(err).To(MatchError(ContainSubstring("not a recording")))
	})

	It("judges both sides", func() {
		res := judge.Check("x", ours())
		Expect(res.Verdict).To(Equal(results.Pass))
		broken := strings.Replace(importable()["frames with directions"], `"optionId"`, `"x"`, 1)
		broken = strings.Replace(broken, `{"sessionId":"s1","prompt"`, `{"sessionId":"other","prompt"`, 1)
		t, err := replay.Read(recordings.V1(), strings.NewReader(broken), nil)
		Expect(err).NotTo(HaveOccurred())
		res = judge.Check("x", t)
		Expect(res.Verdict).To(Equal(results.Fail))
		Expect(res.Findings[0].Message).To(HavePrefix("The editor:"))
	})
})

var _ = Describe("Zed's log of ACP messages", func() {
	It("has frames, with errors, ids of any type and nothing carried, and lines of its own", func() {
		log, err := replay.Read(recordings.V1(), strings.NewReader(`[
  {"_direction": "outgoing", "_type": "request", "id": "a", "method": "authenticate", "params": {
    "methodId": "m"}},
  {"_direction": "incoming", "_type": "response", "id": "a", "method": "authenticate",
   "params": {"code": -32000, "message": "no", "data": null}},
  {"_direction": "outgoing", "_type": "request", "id": 2, "method": "logout", "params": null},
  {"_direction": "incoming", "_type": "stderr", "id": null, "method": "x", "params": "y"},
  {"_direction": "incoming", "_type": "response", "id": 2, "method": "logout", "params": null},
  {"_direction": "outgoing", "_type": "notification", "id": null, "method": "session/cancel", "params": `+
			`{"sessionId": "s"}}
]`), nil)
		Expect(err).NotTo(HaveOccurred())
		var got []string
		for e := range log.All() {
			got = append(got, string(e.Source)+" "+string(e.Raw))
		}
		Expect(got).To(Equal([]string{
			`editor {"jsonrpc":"2.0","id":"a","method":"authenticate","params":{"methodId":"m"}}`,
			`agent {"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"no","data":null}}`,
			`editor {"jsonrpc":"2.0","id":2,"method":"logout"}`,
			`agent {"jsonrpc":"2.0","id":2,"result":null}`,
			`editor {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`,
		}))
	})
})
