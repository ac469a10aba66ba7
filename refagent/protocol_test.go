//go:build unix

package refagent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/acp-test/acp-test/refagent"
)

var _ = Describe("the connection", func() {
	It("negotiates the highest version at or below the one that is offered", func() {
		for offered, chosen := range map[int]float64{1: 1, 2: 2, 3: 2, 9999: 2} {
			e := start(launch{noSetup: true})
			r := e.ok(e.request("initialize",
				object{"protocolVersion": offered, "clientCapabilities": nil, "futureKey": 1,
					"info": object{"name": "test", "version": "1"}}))
			Expect(r["protocolVersion"]).To(Equal(chosen))
			Expect(r["authMethods"]).To(Equal([]any{}))
		}
		e := start(launch{noSetup: true})
		Expect(e.code(e.request("initialize", object{"protocolVersion": 0}))).To(Equal(-32022))
		e.ok(e.request("initialize", object{"protocolVersion": 1}))
	})

	It("refuses sessions before initialize, and stays usable", func() {
		e := start(launch{noSetup: true})
		Expect(e.code(e.request("session/new", object{"cwd": "/", "mcpServers": []any{}}))).To(Equal(-32600))
		e.ok(e.request("initialize", object{"protocolVersion": 1}))
		e.newSession("/")
	})

	DescribeTable("answers what it cannot read and goes on",
		func(sent string, code float64, id any) {
			e := start(launch{})
			from := len(e.all())
			e.write(sent + "\n")
			_, f := e.await("error", from, func(frame) bool { return true })
			Expect(f.at("error", "code")).To(Equal(code), f.raw)
			if id == nil {
				Expect(f.msg).To(HaveKeyWithValue("id", BeNil()))
			} else {
				Expect(f.msg).To(HaveKeyWithValue("id", id))
			}
			e.newSession("/")
		},
		Entry("no JSON", `{"jsonrpc"`, -32700.0, nil),
		Entry("invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", -32700.0, nil),
		Entry("a batch", `[{"jsonrpc":"2.0","id":1,"method":"session/list"}]`, -32600.0, nil),
		Entry("a string", `"hello"`, -32600.0, nil),
		Entry("null", `null`, -32600.0, nil),
		Entry("no version", `{"id":7,"method":"session/list"}`, -32600.0, 7.0),
		Entry("a fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"session/list"}`, -32600.0, nil),
		Entry("an empty object", `{"jsonrpc":"2.0"}`, -32600.0, nil),
		Entry("an unknown method", `{"jsonrpc":"2.0","id":"x","method":"session/fly"}`, -32601.0, "x"),
		Entry("an extension request", `{"jsonrpc":"2.0","id":"x","method":"_vendor/x","params":{}}`, -32601.0, "x"),
		Entry("positional params", `{"jsonrpc":"2.0","id":3,"method":"session/list","params":[]}`, -32602.0, 3.0),
		Entry("a relative cwd", `{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"x","mcpServers":[]}}`,
			-32602.0, 3.0),
		Entry("no mcpServers", `{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/"}}`, -32602.0, 3.0),
		Entry("a relative root", `{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/","mcpServers":[],`+
			`"additionalDirectories":["x"]}}`, -32602.0, 3.0),
		Entry("a wrong type", `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":5}}`, -32602.0,
			3.0),
		Entry("no authentication here",
			`{"jsonrpc":"2.0","id":3,"method":"authenticate","params":{"methodId":"agent"}}`, -32601.0, 3.0),
	)

	It("echoes ids of any kind exactly", func() {
		e := start(launch{})
		for _, id := range []string{"0", "-5", "9007199254740991", `"9007199254740991"`, `"\u0041\n"`, "null"} {
			from := len(e.all())
			e.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/list"}` + "\n")
			_, f := e.await("answer", from, func(f frame) bool { return f.method() == "" })
			Expect(f.raw).To(ContainSubstring(`"id":` + id + `,`))
		}
	})

	It("ignores unknown notifications, stray answers and empty lines", func() {
		e := start(launch{})
		from := len(e.all())
		e.write("\n\r\n" + `{"jsonrpc":"2.0","method":"_vendor/x"}` + "\n" + `{"jsonrpc":"2.0","id":99,"result":{}}` +
			"\n" +
			`{"jsonrpc":"2.0","id":"s","error":{"code":1,"message":"x"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"session/cancel","params":[]}` + "\n")
		e.newSession("/")
		Expect(e.all()[from].method()).To(BeEmpty())
	})

	It("reads lines of any length and input in pieces", func() {
		m := newModelServer(answer("Long."))
		e := start(launch{model: m})
		s := e.newSession("/")
		e.write(`{"jsonrpc":"2.0","id":"long","method":"session/list","params":{"_meta":{"x":"` +
			strings.Repeat("x", 65<<20) + `"}}}` + "\n")
		e.await("answer", 0, func(f frame) bool { return f.msg["id"] == "long" && f.msg["result"] != nil })
		_, p := e.make("session/prompt", promptParams(s, strings.Repeat("x", 1<<20)))
		whole := line(p)
		e.write(whole[:1])
		e.write(whole[1:100])
		e.write(whole[100:])
		Expect(e.stopReason(e.nextID)).To(Equal("end_turn"))
	})

	DescribeTable("accepts every kind of content it advertises",
		func(block object, canary string) {
			m := newModelServer(answer("Seen."))
			e := start(launch{model: m})
			s := e.newSession("/")
			block["annotations"] = object{"priority": 1}
			id := e.request("session/prompt",
				object{"sessionId": s, "prompt": []any{object{"type": "text", "text": "Look"}, block}})
			Expect(e.stopReason(id)).To(Equal("end_turn"))
			Expect(m.messages(0)[0]).To(ContainSubstring(canary))
		},
		Entry("a link", object{"type": "resource_link", "uri": "file:///canary", "name": "c"}, "file:///canary"),
		Entry("embedded text", object{"type": "resource", "resource": object{"uri": "file:///x", "text": "canary"}},
			"canary"),
		Entry("an embedded blob", object{"type": "resource",
			"resource": object{"uri": "file:///x", "blob": base64.StdEncoding.EncodeToString([]byte("canary"))}},
			"canary"),
		Entry("an image", object{"type": "image", "mimeType": "image/png", "data": "Y2FuYXJ5"},
			"data:image/png;base64,Y2FuYXJ5"),
		Entry("audio", object{"type": "audio", "mimeType": "audio/mp3", "data": "Y2FuYXJ5"}, "Y2FuYXJ5"),
	)

	DescribeTable("refuses malformed prompts",
		func(prompt any) {
			e := start(launch{})
			s := e.newSession("/")
			Expect(e.code(e.request("session/prompt", object{"sessionId": s, "prompt": prompt}))).To(Equal(-32602))
		},
		Entry("none", nil), Entry("empty", []any{}), Entry("a string", "x"),
		Entry("an unknown type", []any{object{"type": "video"}}),
		Entry("no text", []any{object{"type": "text"}}),
		Entry("bad base64", []any{object{"type": "image", "mimeType": "image/png", "data": "!"}}),
	)
})

var _ = Describe("the model", func() {
	ask := func(replies ...[]step) (*editor, *modelServer, int) {
		m := newModelServer(replies...)
		e := start(launch{model: m})
		return e, m, e.prompt(e.newSession("/"), "Hello")
	}

	DescribeTable("decides the stop reason",
		func(finished, want string) {
			e, _, id := ask(reply(say("x"), finish(finished)))
			Expect(e.stopReason(id)).To(Equal(want))
		},
		Entry(nil, "stop", "end_turn"), Entry(nil, "length", "max_tokens"), Entry(nil, "content_filter", "refusal"),
	)

	DescribeTable("failing is an error and never an end_turn",
		func(steps ...step) {
			e, m, id := ask(steps)
			Expect(e.code(id)).To(Equal(-32050))
			Expect(m.count()).To(Equal(1))
		},
		Entry("500", status(500)), Entry("502", status(502)), Entry("401", status(401)), Entry("400", status(400)),
		Entry("no finish reason", say("half")), Entry("the line is cut", say("half"), hangUp()),
	)

	It("failing in the middle of a reply is an error that says what the provider said", func() {
		e, m, id := ask([]step{say("half"), func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
			sse(w, `{"error":{"message":"overloaded"}}`)
			return false
		}})
		Expect(e.code(id)).To(Equal(-32050))
		Expect(e.response(id).at("error", "data", "detail")).To(ContainSubstring("overloaded"))
		Expect(m.count()).To(Equal(1))
	})

	It("is asked again after a 429, within reason", func() {
		e, m, id := ask(reply(status(429, "Retry-After-Ms", "1")), answer("Hi."))
		Expect(e.stopReason(id)).To(Equal("end_turn"))
		Expect(m.count()).To(Equal(2))
		e, m, id = ask(reply(status(429, "Retry-After-Ms", "1")), reply(status(429, "Retry-After-Ms", "1")),
			reply(status(429, "Retry-After-Ms", "1")), answer("Hi."))
		Expect(e.code(id)).To(Equal(-32050))
		Expect(m.count()).To(Equal(3))
	})

	It("is asked at most twenty times in a turn", func() {
		var replies [][]step
		for range 25 {
			replies = append(replies, reply(callTool("c", "think", object{"thought": "hm"}), finish("tool_calls")))
		}
		e, m, id := ask(replies...)
		Expect(e.stopReason(id)).To(Equal("max_turn_requests"))
		Expect(m.count()).To(Equal(20))
	})

	It("does not see a refused prompt again", func() {
		m := newModelServer(reply(say("No."), finish("content_filter")), answer("Yes."))
		e := start(launch{model: m})
		s := e.newSession("/")
		Expect(e.stopReason(e.prompt(s, "Bad"))).To(Equal("refusal"))
		e.stopReason(e.prompt(s, "Good"))
		Expect(m.messages(1)).To(Equal([]string{"user: Good"}))
	})

	It("is not needed for the agent's own commands", func() {
		e := start(launch{})
		s := e.newSession("/")
		Expect(e.stopReason(e.prompt(s, "/status"))).To(Equal("end_turn"))
		Expect(e.stopReason(e.prompt(s, "/tools"))).To(Equal("end_turn"))
		Expect(e.story(0)).To(HaveLen(2))
		Expect(e.code(e.prompt(s, "Hello"))).To(Equal(-32050), "no base URL")
	})
})

var _ = Describe("the end", func() {
	It("of input cancels, kills what runs and returns at once", func() {
		// The fifo is at its end when the last process that holds it is gone.
		m := newModelServer(reply(callTool("c1", "run_shell",
			object{"command": "exec >fifo; echo up; sleep 100 & sleep 100"}), finish("tool_calls")))
		e := start(launch{model: m})
		dir := GinkgoT().TempDir()
		Expect(syscall.Mkfifo(dir+"/fifo", 0o600)).To(Succeed())
		id := e.prompt(e.newSession(dir), "Run")
		fifo, err := os.Open(dir + "/fifo")
		Expect(err).NotTo(HaveOccurred())
		defer fifo.Close()
		Expect(io.ReadFull(fifo, make([]byte, 3))).To(Equal(3))
		e.in.Close()
		Eventually(e.ended).Should(Receive(BeNil()))
		e.ended <- nil
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Expect(io.ReadAll(fifo)).To(BeEmpty())
	})

	It("of input with a permission open returns at once", func() {
		m := newModelServer(reply(writeCall("c1", "x", "1"), finish("tool_calls")))
		e := start(launch{model: m, grace: time.Minute})
		e.onRequest(func(frame) any { return nil })
		e.prompt(e.newSession(GinkgoT().TempDir()), "Write")
		e.asked("session/request_permission")
		e.in.Close()
		Eventually(e.ended).Should(Receive(BeNil()))
		e.ended <- nil
	})

	It("of the output or the context is an error", func() {
		in, _ := io.Pipe()
		out, w := io.Pipe()
		out.Close()
		ctx, stop := context.WithCancel(context.Background())
		stop()
		Expect(refagent.Run(ctx, refagent.Options{In: in, Out: w, StateDir: GinkgoT().TempDir()})).
			To(MatchError(context.Canceled))
		broken := bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"method":"initialize",` +
			`"params":{"protocolVersion":1}}` + "\n")
		Expect(refagent.Run(context.Background(),
			refagent.Options{In: io.MultiReader(broken, blocked{make(chan struct{})}), Out: w,
				StateDir: GinkgoT().TempDir()})).To(MatchError(io.ErrClosedPipe))
		Expect(refagent.Run(context.Background(), refagent.Options{})).NotTo(Succeed())
		Expect(refagent.Run(context.Background(), refagent.Options{In: in, Out: w})).
			To(MatchError(ContainSubstring("HOME")))
	})

	It("leaves no goroutine behind", func() {
		before := gleak.Goroutines()
		m := newModelServer(reply(say("x"), callTool("c1", "think", object{"thought": "hm"}), finish("tool_calls")),
			reply(hold("g")))
		e := start(launch{model: m})
		e.prompt(e.newSession("/"), "Hello")
		<-m.gate("g").reached
		e.in.Close()
		Eventually(e.ended).Should(Receive(BeNil()))
		e.ended <- nil
		m.Close()
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
	})
})

// blocked is input that never comes.
type blocked struct{ never chan struct{} }

func (b blocked) Read([]byte) (int, error) { <-b.never; return 0, io.EOF }
