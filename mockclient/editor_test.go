package mockclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

var _ = Describe("an editor", func() {
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
	})

	It("initializes, opens a session and prompts", func() {
		e := edit(mockclient.Options{}, func(p *peer) {
			p.handshake()
			m := p.until("session/prompt", "")
			p.update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}`)
			p.reply(m, `{"stopReason":"end_turn"}`)
		})
		s := open(e, GinkgoT().TempDir())
		turn := s.Prompt(within(), mockclient.Text("a < b"))
		Eventually(e.Transcript()).Should(turn.Ended("end_turn"))
		Expect(turn.Wait(within())).To(Equal("end_turn"))
		var sent []string
		for f := range e.Transcript().All() {
			if f.Source == transcript.Editor {
				sent = append(sent, string(f.Raw))
			}
		}
		Expect(sent[0]).To(Equal(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
			`"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},` +
			`"clientInfo":{"name":"acp-test","title":"acp-test","version":"1"},"protocolVersion":1}}`))
		Expect(sent[2]).To(Equal(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"prompt":[{"text":"a < ` +
			`b","type":"text"}],"sessionId":"s"}}`))
	})

	It("reports error answers, foreign answers and a second answer", func() {
		e := edit(mockclient.Options{}, func(p *peer) {
			m := p.until("a", "")
			p.send(`{"jsonrpc":"2.0","id":99,"result":{}}`)
			p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"log in","data":[1]}}`, m.id)
			p.reply(m, `{}`)
			p.send(`{"jsonrpc":"2.0","method":"end"}`)
		})
		c := e.Call("a", nil)
		resp, err := c.Wait(within())
		var rpc *mockclient.RPCError
		Expect(errors.As(err, &rpc)).To(BeTrue())
		Expect(*rpc).To(Equal(mockclient.RPCError{Code: -32000, Message: "log in", Data: "[1]"}))
		Expect(resp.Ref).To(Equal(c.Entry.Seq))
		await(e.Transcript(), named("end"))
		again, ok := c.Response()
		Expect(ok).To(BeTrue())
		Expect(again.Seq).To(Equal(resp.Seq))
	})

	It("answers what it does not know with -32601 and goes on", func() {
		var codes []string
		e := edit(mockclient.Options{Capabilities: mockclient.Capabilities{}}, func(p *peer) {
			for i, method := range []string{"nonsense", "_vendor/x", "fs/read_text_file", "fs/write_text_file",
				"terminal/create", "elicitation/create"} {
				codes = append(codes, p.ask(i, method, `{"sessionId":"s"}`).v.Path("error.code").Text())
			}
			p.send(`not json`)
			p.send(`{"jsonrpc":"2.0","method":"_vendor/note","params":[]}`)
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request"}`)
			p.send(`{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"unknown"}}`)
			codes = append(codes, p.ask(9, "x", `7`).v.Path("error.code").Text())
			p.send(`{"jsonrpc":"2.0","method":"end"}`)
		})
		await(e.Transcript(), named("end"))
		Expect(codes).To(HaveEach("-32601"))
		Expect(codes).To(HaveLen(7))
	})

	It("lets a library's user answer methods of their own", func() {
		got := make(chan string, 1)
		edit(mockclient.Options{Handlers: map[string]func(*mockclient.Request){
			"_vendor/x": func(r *mockclient.Request) {
				n, _ := r.Params.Get("n").Int()
				r.Reply(map[string]any{"n": n})
			},
		}}, func(p *peer) { got <- p.ask(1, "_vendor/x", `{"n":5}`).v.Path("result.n").Text() })
		Eventually(got).Should(Receive(Equal("5")))
	})

	It("ends open calls when the agent exits", func() {
		a := mockclient.InProcess(newTranscript(), 0, func(_ context.Context, in io.Reader, _ io.Writer) error {
			newPeer(in, io.Discard).until("x", "")
			return errors.New("crashed")
		})
		e := mockclient.NewEditor(a, mockclient.Options{})
		_, err := e.Call("x", nil).Wait(within())
		Expect(err).To(MatchError(mockclient.ErrExited))
		Expect(e.Close(within()).Exit).To(Equal(mockclient.Exit{Code: 1, Error: "crashed"}))
		_, err = e.Call("x", nil).Wait(within())
		Expect(err).To(MatchError(mockclient.ErrExited))
		_, err = e.Notify("x", nil)
		Expect(err).To(MatchError(mockclient.ErrExited))
	})

	It("survives an in-process agent that panics", func() {
		a := mockclient.InProcess(newTranscript(), 0, func(context.Context, io.Reader, io.Writer) error { panic("oh") })
		Expect(a.Stop(within()).Exit).To(Equal(mockclient.Exit{Code: 2, Error: "panic: oh"}))
	})

	It("stops waiting when the context ends, with its cause", func() {
		e := edit(mockclient.Options{}, func(*peer) {})
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("the step timeout"))
		_, err := e.Call("x", nil).Wait(ctx)
		Expect(err).To(MatchError("waiting for the answer to x: the step timeout"))
	})

	DescribeTable("uses ids of every kind and matches the answers", func(ids mockclient.IDs, want ...wire.ID) {
		e := edit(mockclient.Options{IDs: ids}, func(p *peer) {
			for {
				m, ok := p.read()
				if !ok {
					return
				}
				p.reply(m, `{}`)
			}
		})
		for _, id := range want {
			c := e.Call("x", nil)
			Expect(c.Entry.ID).To(Equal(id))
			_, err := c.Wait(within())
			Expect(err).NotTo(HaveOccurred())
		}
	},
		Entry("from zero", mockclient.CountingIDs(0), wire.ID("0"), wire.ID("1")),
		Entry("negative", mockclient.CountingIDs(-1), wire.ID("-1"), wire.ID("0")),
		Entry("the largest exact double", mockclient.CountingIDs(1<<53-1), wire.ID("9007199254740991")),
		Entry("strings", mockclient.StringIDs(`q"`), wire.ID(`"q\"1"`), wire.ID(`"q\"2"`)),
		Entry("a list", mockclient.ListedIDs(`"1"`, `1`, `null`), wire.ID(`"1"`), wire.ID(`1`), wire.ID(`null`),
			wire.ID("1000")),
	)

	It("takes the ids of what the agent asks and is not answered yet", func() {
		open := make(chan struct{})
		wait := map[string]func(*mockclient.Request){"_x/wait": func(*mockclient.Request) { close(open) }}
		e := edit(mockclient.Options{TheirIDs: true, Handlers: wait}, func(p *peer) {
			m, _ := p.read()
			p.send(`{"jsonrpc":"2.0","id":2,"method":"_x/wait"}`)
			p.reply(m, `{}`)
			m, _ = p.read()
			p.read() // both are open
			p.reply(m, `{}`)
		})
		own := e.Call("x", nil)
		_, err := own.Wait(within())
		Expect(err).NotTo(HaveOccurred())
		Eventually(open).Should(BeClosed())
		theirs, next := e.Call("y", nil), e.Call("z", nil)
		Expect([]wire.ID{own.Entry.ID, theirs.Entry.ID, next.Entry.ID}).To(Equal([]wire.ID{"1", "2", "3"}))
		_, err = theirs.Wait(within())
		Expect(err).NotTo(HaveOccurred())
	})

	It("writes null for what it leaves out, in requests and in answers", func() {
		asked := make(chan string, 1)
		nulls := func(method string, result bool, raw []byte) []byte {
			return fmt.Appendf(nil, `{"method":%q,"result":%t,"was":%s}`, method, result, raw)
		}
		e := edit(mockclient.Options{Add: nulls,
			Handlers: map[string]func(*mockclient.Request){"_x/ask": func(r *mockclient.Request) {
				r.Reply(map[string]any{"a": 1})
			}}}, func(p *peer) {
			m, _ := p.read()
			p.send(`{"jsonrpc":"2.0","id":2,"method":"_x/ask"}`)
			answer, _ := p.read()
			asked <- string(answer.v.Get("result").Raw())
			p.reply(m, `{}`)
		})
		c := e.Call("_x/do", map[string]any{"b": 2})
		_, err := c.Wait(within())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(c.Entry.Raw)).To(ContainSubstring(`"params":{"method":"_x/do","result":false,"was":{"b":2}}`))
		Expect(<-asked).To(Equal(`{"method":"_x/ask","result":true,"was":{"a":1}}`))
	})

	It("refuses to do what a client must not", func() {
		e := edit(mockclient.Options{}, func(p *peer) { p.handshake() })
		_, err := e.NewSession(within(), mockclient.SessionOptions{Cwd: "/"})
		Expect(err).To(MatchError(ContainSubstring("initialize has not been answered"))) // INIT-001, SESSION-001
		s := open(e, GinkgoT().TempDir())
		_, err = e.NewSession(within(), mockclient.SessionOptions{Cwd: "relative"})
		Expect(err).To(MatchError(ContainSubstring("not absolute"))) // SESSION-005
		var not *mockclient.NotAdvertised
		_, err = e.NewSession(within(), mockclient.SessionOptions{Cwd: "/", Additional: []string{"/tmp"}})
		Expect(errors.As(err, &not)).To(BeTrue()) // DIRS-001
		_, err = e.NewSession(within(),
			mockclient.SessionOptions{Cwd: "/", MCP: []any{mockclient.HTTPServer{Type: "sse"}}})
		Expect(errors.As(err, &not)).To(BeTrue()) // SESSION-014
		Expect(not.Capability).To(Equal("agentCapabilities.mcpCapabilities.sse"))
		Expect(s.ID).To(Equal("s"))
	})

	It("closes the connection of an agent whose version it does not speak", func() { // INIT-007
		e := edit(mockclient.Options{}, func(p *peer) { p.reply(p.until("initialize", ""), `{"protocolVersion":7}`) })
		_, err := e.Initialize(within())
		Expect(err).To(MatchError("the agent speaks protocol version 7, this editor speaks 1"))
		Eventually(e.Agent().Exited()).Should(BeClosed())
		_, err = e.Notify("x", nil)
		Expect(err).To(Or(MatchError(mockclient.ErrExited), MatchError(mockclient.ErrStdinClosed)))
	})
})
