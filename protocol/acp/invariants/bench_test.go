package invariants_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// conversation writes a long, ordinary conversation: turns of text, thoughts,
// tool calls with permissions and file requests, plans and usage.
type conversation struct{ id, turn int }

// write appends at least n frames, in whole turns, and returns how many.
func (c *conversation) write(t *transcript.Transcript, n int) int {
	frames := 0
	send := func(from transcript.Source, format string, args ...any) {
		t.AppendFrame(0, from, fmt.Appendf(nil, format, args...), 0)
		frames++
	}
	editor := func(format string, args ...any) { send(transcript.Editor, format, args...) }
	agent := func(format string, args ...any) { send(transcript.Agent, format, args...) }
	update := func(format string, args ...any) {
		agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1","update":`+format+`}}`,
			args...)
	}
	if c.turn == 0 {
		editor(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":%s}}`,
			allOfClient)
		agent(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":%s,"authMethods":[]}}`,
			allOfAgent)
		editor(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
		agent(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"sess-1"}}`)
		c.id = 1
	}
	for frames < n {
		c.turn++
		c.id++
		id, turn := c.id, c.turn
		editor(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"sess-1",`+
			`"prompt":[{"type":"text","text":"Question %d about the code in main.go"}]}}`, id, turn)
		for i := range 10 {
			update(`{"sessionUpdate":"agent_thought_chunk","messageId":"th-%d","content":{"type":"text",`+
				`"text":"thinking `+
				`about step %d "}}`, turn, i)
		}
		for i := range 3 {
			call := fmt.Sprintf("call-%d-%d", turn, i)
			update(`{"sessionUpdate":"tool_call","toolCallId":%q,"title":"Edit `+
				`main.go","kind":"edit","status":"pending",`+
				`"locations":[{"path":"/w/main.go","line":3}]}`, call)
			agent(`{"jsonrpc":"2.0","id":"p-%s","method":"session/request_permission","params":{"sessionId":"sess-1",`+
				`"toolCall":{"toolCallId":%q},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},`+
				`{"optionId":"r",`+
				`"name":"Reject","kind":"reject_once"}]}}`, call, call)
			editor(`{"jsonrpc":"2.0","id":"p-%s","result":{"outcome":{"outcome":"selected","optionId":"a"}}}`, call)
			update(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"in_progress"}`, call)
			agent(`{"jsonrpc":"2.0","id":"w-%s","method":"fs/write_text_file","params":{"sessionId":"sess-1",`+
				`"path":"/w/main.go","content":"package main\n"}}`, call)
			editor(`{"jsonrpc":"2.0","id":"w-%s","result":{}}`, call)
			update(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"completed",`+
				`"content":[{"type":"diff",`+
				`"path":"/w/main.go","oldText":"package main","newText":"package main\n"}]}`, call)
		}
		update(`{"sessionUpdate":"plan","entries":[{"content":"read","priority":"high","status":"completed"},` +
			`{"content":"write","priority":"low","status":"in_progress"}]}`)
		for i := range 30 {
			update(`{"sessionUpdate":"agent_message_chunk","messageId":"msg-%d","content":{"type":"text",`+
				`"text":"word %d of `+
				`the answer "}}`, turn, i)
		}
		update(`{"sessionUpdate":"usage_update","used":%d,"size":200000,"cost":{"amount":%d,"currency":"USD"}}`,
			turn%200000,
			turn)
		agent(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, id)
	}
	return frames
}

// BenchmarkObserve reports what the rules cost for a frame, its parsing, which
// the transcript does anyway, left out.
func BenchmarkObserve(b *testing.B) {
	b.ReportAllocs()
	best := math.Inf(1) // the least disturbed round tells most
	for b.Loop() {
		var spent time.Duration
		t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			b.Fatal(err)
		}
		c := invariants.V1().NewChecker(rules.Config{})
		t.Observe(func(e transcript.Entry) {
			start := time.Now()
			c.Observe(e)
			spent += time.Since(start)
		})
		frames := new(conversation).write(t, 20_000)
		if found := c.Finish(rules.End{Clean: true}); len(found) > 0 {
			b.Fatalf("%+v", found)
		}
		t.Close()
		best = min(best, float64(spent.Nanoseconds())/float64(frames))
	}
	b.ReportMetric(best, "ns/frame")
}

// The state of a checker does not grow with the length of the stream. By
// default the stream is short; ACP_TEST_FRAMES=1000000 is the real thing.
func TestMemoryIsBounded(t *testing.T) {
	frames := 200_000
	if n, err := strconv.Atoi(os.Getenv("ACP_TEST_FRAMES")); err == nil {
		frames = n
	}
	if testing.Short() {
		frames = 50_000
	}
	c := invariants.V1().NewChecker(rules.Config{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// Each part is a transcript of its own, so that only the checker lasts.
	var after []uint64
	var talk conversation
	for range 4 {
		tr, err := transcript.New(transcript.Header{},
			transcript.Options{Classifier: acpframe.Classifier{}, Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		tr.Observe(c.Observe)
		talk.write(tr, frames/4)
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		tr = nil
		after = append(after, heap())
	}
	const slack = 4 << 20
	if last, second := after[3], after[1]; last > second+slack {
		t.Errorf("the checker grew from %d to %d bytes between the second and the last quarter of %d frames", second,
			last,
			frames)
	}
	if found := c.Finish(rules.End{Clean: true}); len(found) > 0 {
		t.Errorf("an ordinary conversation has findings: %+v", found)
	}
}
