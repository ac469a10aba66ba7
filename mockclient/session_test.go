package mockclient_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
)

const everything = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,` +
	`"audio":true,"embeddedContext":true},` +
	`"mcpCapabilities":{"http":true},"auth":{"logout":{}},"sessionCapabilities":{"list":{},"delete":{},` +
	`"additionalDirectories":{},"resume":{},"close":{}}},` +
	`"authMethods":[{"id":"key","name":"Key"},{"id":"login","name":"Log in","type":"terminal","args":["child-ok"],` +
	`"env":{"L":"1"}},{"id":"odd","name":"Odd","type":"future"}]}`

// scripted answers each method with a result; an answer that begins with "!" is
// an error code. It records what it got.
func scripted(answers map[string]string) (agentFunc, chan msg) {
	got := make(chan msg, 100)
	return func(p *peer) {
		for {
			m, ok := p.read()
			if !ok {
				return
			}
			got <- m
			answer, known := answers[m.method]
			if !known {
				answer = "{}"
			}
			if code, bad := strings.CutPrefix(answer, "!"); bad {
				p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"no"}}`, m.id, code)
			} else if m.id != "" {
				p.reply(m, answer)
			}
		}
	}, got
}

func start(answers map[string]string) (*mockclient.Editor, chan msg) {
	GinkgoHelper()
	if answers["initialize"] == "" {
		answers["initialize"] = everything
	}
	agent, got := scripted(answers)
	e := edit(mockclient.Options{}, agent)
	_, err := e.Initialize(within())
	Expect(err).NotTo(HaveOccurred())
	<-got
	return e, got
}

var _ = Describe("session methods", func() {
	ctx := context.Background()
	It("send what the protocol wants", func() { // SESSION-010, LOAD-002, DIRS-004, RESUME-002
		e, got := start(map[string]string{"session/new": `{"sessionId":"s","modes":{"currentModeId":"a",` +
			`"availableModes":[{"id":"a","name":"A"}]}}`,
			"session/set_config_option": `{"configOptions":[{"id":"m"}]}`})
		o := mockclient.SessionOptions{Cwd: "/", Additional: []string{"/tmp"},
			MCP: []any{mockclient.MCPServer{Name: "n", Command: "/c", Args: []string{},
				Env: []mockclient.EnvVariable{}}},
			Meta: mockclient.TraceContext("00-1-2-01", "", "b=1")}
		s, err := e.NewSession(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		params := func() string { return string((<-got).v.Get("params").Raw()) }
		want := `"_meta":{"baggage":"b=1","traceparent":"00-1-2-01"},"additionalDirectories":["/tmp"],"cwd":"/",` +
			`"mcpServers":[{"name":"n","command":"/c","args":[],"env":[]}]`
		Expect(params()).To(Equal("{" + want + "}")) // SESSION-017
		_, err = e.LoadSession(ctx, "old", o)
		Expect(err).NotTo(HaveOccurred())
		Expect(params()).To(Equal("{" + want + `,"sessionId":"old"}`))
		_, err = e.ResumeSession(ctx, "old", mockclient.SessionOptions{Cwd: "/"})
		Expect(err).NotTo(HaveOccurred())
		Expect(params()).To(Equal(`{"cwd":"/","mcpServers":[],"sessionId":"old"}`))
		Expect(s.SetMode(ctx, "a")).To(Succeed())
		Expect(params()).To(Equal(`{"modeId":"a","sessionId":"s"}`))
		Expect(s.SetMode(ctx, "b")).To(MatchError(ContainSubstring(`no mode "b"`))) // MODE-003
		list, err := s.SetConfigOption(ctx, "m", "fast")
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Len()).To(Equal(1))
		Expect(params()).To(Equal(`{"configId":"m","sessionId":"s","value":"fast"}`))
		_, err = s.SetConfigOption(ctx, "m", true)
		Expect(err).To(MatchError(ContainSubstring("does not advertise")))
		_, err = s.SetConfigOption(ctx, "m", 7)
		Expect(err).To(MatchError(ContainSubstring("want string or bool")))
		Expect(s.CloseSession(ctx)).To(Succeed())
		Expect(params()).To(Equal(`{"sessionId":"s"}`))
		Expect(e.DeleteSession(ctx, "old")).To(Succeed())
		Expect(params()).To(Equal(`{"sessionId":"old"}`))
		Expect(e.Authenticate(ctx, "key")).To(Succeed())
		Expect(params()).To(Equal(`{"methodId":"key"}`))
		Expect(e.Authenticate(ctx, "odd")).To(Succeed()) // AUTH-020
		Expect(params()).To(Equal(`{"methodId":"odd"}`))
		Expect(e.Logout(ctx)).To(Succeed())
		Expect(params()).To(Equal(`{}`))
	})
	It("set boolean options as booleans, if the client said it can", func() { // CONFIG-016
		caps := mockclient.DefaultCapabilities()
		caps.Set("session.configOptions.boolean", map[string]any{})
		agent, got := scripted(map[string]string{"initialize": everything, "session/new": `{"sessionId":"s"}`})
		e := edit(mockclient.Options{Capabilities: caps}, agent)
		s := open(e, "/")
		_, err := s.SetConfigOption(ctx, "b", false)
		Expect(err).NotTo(HaveOccurred())
		<-got
		<-got
		Expect(string((<-got).v.Get("params").Raw())).
			To(Equal(`{"configId":"b","sessionId":"s","type":"boolean","value":false}`))
	})
	It("are not sent to an agent that does not advertise them",
		func() { // LOAD-001, RESUME-001, LIST-001, CLOSE-001, DELETE-001, AUTH-010
			e, got := start(map[string]string{"initialize": `{"protocolVersion":1}`,
				"session/new": `{"sessionId":"s"}`})
			s, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: "/"})
			Expect(err).NotTo(HaveOccurred())
			<-got
			o := mockclient.SessionOptions{Cwd: "/"}
			var not *mockclient.NotAdvertised
			_, err = e.LoadSession(ctx, "x", o)
			Expect(errors.As(err, &not)).To(BeTrue())
			Expect(not.Capability).To(Equal("agentCapabilities.loadSession"))
			_, err = e.ResumeSession(ctx, "x", o)
			Expect(errors.As(err, &not)).To(BeTrue())
			_, err = e.ListSessions(ctx, "", "")
			Expect(errors.As(err, &not)).To(BeTrue())
			Expect(errors.As(s.CloseSession(ctx), &not)).To(BeTrue())
			Expect(errors.As(e.DeleteSession(ctx, "x"), &not)).To(BeTrue())
			Expect(errors.As(e.Logout(ctx), &not)).To(BeTrue())
			Expect(e.Authenticate(ctx, "key")).
				To(MatchError(ContainSubstring(`no authentication method "key"`))) // AUTH-005
			for _, block := range []mockclient.Content{mockclient.Image("image/png", nil),
				mockclient.Audio("audio/wav", nil), mockclient.TextResource("file:///x", "", "x")} { // PROMPT-002
				_, err = s.Prompt(ctx, block).Wait(ctx)
				Expect(errors.As(err, &not)).To(BeTrue())
			}
			Expect(got).To(BeEmpty())
		})
	It("never hands a terminal login to authenticate", func() { // AUTH-004
		e, _ := start(map[string]string{})
		Expect(e.Authenticate(ctx, "login")).To(MatchError(ContainSubstring("TerminalLogin")))
	})
	It("names only absolute directories", func() { // DIRS-002
		e, _ := start(map[string]string{})
		_, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: "/", Additional: []string{"/ok", "no"}})
		Expect(err).To(MatchError(ContainSubstring(`"no" is not absolute`)))
	})
	It("prompts only after initialize", func() { // PROMPT-001
		e := edit(mockclient.Options{}, func(*peer) {})
		_, err := e.Session("s").Prompt(ctx, mockclient.Text("x")).Wait(ctx)
		Expect(err).To(MatchError(ContainSubstring("initialize has not been answered")))
	})
	It("follow cursors to the end, and notice one that goes in circles", func() { // LIST-010, LIST-016
		pages := []string{`{"sessions":[{"sessionId":"1","cwd":"/","title":"T","additionalDirectories":["/b"]}],` +
			`"nextCursor":"c 1"}`, `{"sessions":[{"sessionId":"2","cwd":"/"}],"nextCursor":null}`}
		run := func(next func(n int) string) ([]mockclient.SessionInfo, []string, error) {
			var cursors []string
			e := edit(mockclient.Options{}, func(p *peer) {
				p.reply(p.until("initialize", ""), everything)
				for n := 0; ; n++ {
					m := p.until("session/list", "")
					if m.id == "" {
						return
					}
					cursors = append(cursors, string(m.v.Get("params").Raw()))
					p.reply(m, next(n))
				}
			})
			_, err := e.Initialize(within())
			Expect(err).NotTo(HaveOccurred())
			all, err := e.AllSessions(within(), "/w")
			e.Close(within())
			return all, cursors, err
		}
		all, cursors, err := run(func(n int) string { return pages[n] })
		Expect(err).NotTo(HaveOccurred())
		Expect(cursors).To(Equal([]string{`{"cwd":"/w"}`, `{"cursor":"c 1","cwd":"/w"}`}))
		Expect(all).To(Equal([]mockclient.SessionInfo{{ID: "1", Cwd: "/", Title: "T", Additional: []string{"/b"}},
			{ID: "2", Cwd: "/"}})) // DIRS-009
		_, _, err = run(func(int) string { return pages[0] })
		Expect(err).To(MatchError(ContainSubstring("came twice")))
		e, _ := start(map[string]string{})
		_, err = e.ListSessions(ctx, "relative", "")
		Expect(err).To(MatchError(ContainSubstring("not absolute")))
	})
	DescribeTable("ensure a session by the best means", func(answers map[string]string, how string, tried int) {
		answers["session/new"] = `{"sessionId":"new"}`
		e, _ := start(answers)
		s, err := e.EnsureSession(ctx, "old", mockclient.SessionOptions{Cwd: "/"})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.How).To(Equal(how))
		Expect(s.Tried).To(HaveLen(tried))
		Expect(s.ID).To(Equal(map[bool]string{true: "new", false: "old"}[how == "session/new"]))
	},
		Entry("load", map[string]string{}, "session/load", 0),
		Entry("resume when load fails", map[string]string{"session/load": "!-32002"}, "session/resume", 1),
		Entry("new when both fail", map[string]string{"session/load": "!-32002", "session/resume": "!-32002"},
			"session/new", 2),
		Entry("new when neither is advertised", map[string]string{"initialize": `{"protocolVersion":1}`}, "session/new",
			2),
	)
	It("confine each session to its own directories", func() { // several at once
		a, b := GinkgoT().TempDir(), GinkgoT().TempDir()
		Expect(os.WriteFile(a+"/f", []byte("A"), 0o600)).To(Succeed())
		Expect(os.WriteFile(b+"/f", []byte("B"), 0o600)).To(Succeed())
		got := make(chan []string, 1)
		e := edit(mockclient.Options{}, func(p *peer) {
			p.reply(p.until("initialize", ""), everything)
			p.reply(p.until("session/new", ""), `{"sessionId":"a"}`)
			p.reply(p.until("session/new", ""), `{"sessionId":"b"}`)
			p.until("go", "")
			var answers []string
			for i, params := range []string{`"a","path":"` + a, `"a","path":"` + b, `"b","path":"` + b,
				`"b","path":"` + a} {
				answers = append(answers, p.ask(i, "fs/read_text_file", `{"sessionId":`+params+`/f"}`).
					v.Path("result.content").Text())
			}
			got <- answers
		})
		_, err := e.Initialize(within())
		Expect(err).NotTo(HaveOccurred())
		_, err = e.NewSession(within(), mockclient.SessionOptions{Cwd: a})
		Expect(err).NotTo(HaveOccurred())
		_, err = e.NewSession(within(), mockclient.SessionOptions{Cwd: b, Additional: []string{a}})
		Expect(err).NotTo(HaveOccurred())
		_, err = e.Notify("go", nil)
		Expect(err).NotTo(HaveOccurred())
		Eventually(got).Should(Receive(Equal([]string{"A", "", "B", "A"})))
	})
	It("let the agent read files while it loads", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(dir+"/f", []byte("text"), 0o600)).To(Succeed())
		e := edit(mockclient.Options{}, func(p *peer) {
			p.reply(p.until("initialize", ""), everything)
			m := p.until("session/load", "")
			text := p.ask(1, "fs/read_text_file", `{"sessionId":"s","path":"`+dir+`/f"}`).v.Path("result.content").Str()
			p.reply(m, `{"_meta":{"text":"`+text+`"}}`)
		})
		_, err := e.Initialize(within())
		Expect(err).NotTo(HaveOccurred())
		s, err := e.LoadSession(within(), "s", mockclient.SessionOptions{Cwd: dir})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Result().Path("_meta.text").Str()).To(Equal("text"))
	})
	It("work on several connections of one run", func() {
		t := newTranscript()
		for conn := range 2 {
			agent, _ := scripted(map[string]string{"x": `{}`})
			a := mockclient.InProcess(t, conn, serve(agent))
			e := mockclient.NewEditor(a, mockclient.Options{})
			c := e.Call("x", nil)
			_, err := c.Wait(within())
			Expect(err).NotTo(HaveOccurred())
			Expect(c.Entry.Conn).To(Equal(conn))
			Expect(string(c.Entry.ID)).To(Equal("1"))
			DeferCleanup(func() { e.Close(context.Background()) })
		}
	})
})

var _ = Describe("content", func() {
	It("is made from files, as the agent can take it", func() {
		dir := GinkgoT().TempDir()
		for name, data := range map[string]string{"a.png": "\x89PNG\xff", "a.wav": "RIFF\xff", "a.go": "package a\n",
			"b.bin": "\xff\x00"} {
			Expect(os.WriteFile(dir+"/"+name, []byte(data), 0o600)).To(Succeed())
		}
		e, _ := start(map[string]string{})
		all := e.Info()
		attach := func(name, kind string, info *mockclient.AgentInfo) mockclient.Content {
			GinkgoHelper()
			c, err := mockclient.Attach(dir+"/"+name, kind, info)
			Expect(err).NotTo(HaveOccurred())
			return c
		}
		Expect(attach("a.png", "", all)).
			To(Equal(mockclient.Content{"type": "image", "mimeType": "image/png",
				"data": base64.StdEncoding.EncodeToString([]byte("\x89PNG\xff"))}))
		Expect(attach("a.wav", "", all)).To(HaveKeyWithValue("type", "audio"))
		Expect(attach("a.go", "", all)).
			To(Equal(mockclient.TextResource("file://"+dir+"/a.go", "text/x-go", "package a\n")))
		Expect(attach("b.bin", "", all)).
			To(Equal(mockclient.BlobResource("file://"+dir+"/b.bin", "application/octet-stream", []byte("\xff\x00"))))
		Expect(attach("a.png", "", nil)).
			To(Equal(mockclient.Content{"type": "resource_link", "name": "a.png", "uri": "file://" + dir + "/a.png",
				"mimeType": "image/png", "size": 5}))
		Expect(attach("a.go", "text", nil)).To(Equal(mockclient.Text("package a\n")))
		for name, kind := range map[string]string{"none": "", "b.bin": "text", "a.go": "video"} {
			_, err := mockclient.Attach(dir+"/"+name, kind, all)
			Expect(err).To(MatchError(ContainSubstring("attaching")))
		}
		Expect(mockclient.FileURI("/a b/é")).To(Equal("file:///a%20b/%C3%A9"))
	})
})

var _ = Describe("capabilities", func() {
	It("are set by path and copied", func() {
		c := mockclient.DefaultCapabilities()
		Expect(c.On("fs.readTextFile")).To(BeTrue())
		e := edit(mockclient.Options{Capabilities: c}, func(*peer) {})
		c.Set("fs.readTextFile", false)
		c.Set("elicitation.form", map[string]any{})
		c.Set("terminal", nil)
		Expect(c).To(Equal(mockclient.Capabilities{"fs": map[string]any{"readTextFile": false, "writeTextFile": true},
			"elicitation": map[string]any{"form": map[string]any{}}}))
		Expect(c.On("elicitation.form")).To(BeTrue())
		Expect(c.On("elicitation.url")).To(BeFalse())
		Expect(e.InitializeParams()["clientCapabilities"]).To(HaveKeyWithValue("terminal", true))
	})
})
