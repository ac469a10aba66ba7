package canary_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/canary"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "canary" {
		os.Exit(canary.Main(context.Background(), os.Args[2:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestCanary(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "canary")
}

var _ = It("a stubborn server stays when its input has ended, until its context does", func() {
	for _, stubborn := range []bool{true, false} {
		ctx, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		ended := make(chan int, 1)
		lookup := func(name string) (string, bool) {
			if stubborn && name == canary.Stubborn {
				return "1", true
			}
			return "", false
		}
		log := GinkgoT().TempDir() + "/log"
		go func() {
			ended <- canary.Main(ctx, []string{log}, lookup, strings.NewReader(""), io.Discard, io.Discard)
		}()
		if stubborn {
			Consistently(ended, "100ms").ShouldNot(Receive())
			stop()
		}
		Eventually(ended, "10s").Should(Receive(Equal(0)))
	}
})

// call calls the tool as an agent would.
func call(t mcp.Transport) string {
	GinkgoHelper()
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, t, nil)
	Expect(err).NotTo(HaveOccurred())
	defer session.Close()
	result, err := session.CallTool(ctx,
		&mcp.CallToolParams{Name: canary.Tool, Arguments: map[string]any{"text": "tweet"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Content).To(HaveLen(1))
	return result.Content[0].(*mcp.TextContent).Text
}

type withHeader struct{ name, value string }

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return http.DefaultTransport.RoundTrip(r)
}

var _ = Describe("a canary", func() {
	It("sings over stdio and is seen", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		log, token := GinkgoT().TempDir()+"/log", "canary-"+rand.Text()[:12]
		Expect(canary.Read(log)).To(BeEmpty())
		entry := canary.Stdio("c", token, log, self, "canary")
		cmd := exec.Command(entry.Command, entry.Args...)
		for _, v := range entry.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
		}
		Expect(call(&mcp.CommandTransport{Command: cmd})).To(Equal(token + ": tweet"))
		Expect(canary.Read(log)).To(ContainElement(called(token, true)))
		cmd = exec.Command(entry.Command, entry.Args...)
		cmd.Env = []string{"HOME=" + GinkgoT().TempDir(), entry.Env[0].Name + "=" + token}
		Expect(call(&mcp.CommandTransport{Command: cmd})).To(Equal(token + ": tweet"))
		Expect(canary.Read(log)).To(ContainElement(called(token, false)),
			"the agent's own HOME shows")
		cmd = exec.Command(entry.Command, entry.Args...)
		cmd.Env = []string{}
		Expect(call(&mcp.CommandTransport{Command: cmd})).To(Equal(": tweet"))
		Expect(canary.Read(log)).To(ContainElement(called(token, false)), "an agent that drops the environment shows")
	})
	It("ends where it crashes, also one that is stubborn, and shows a picture", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		entry := canary.Stdio("c", "token", GinkgoT().TempDir()+"/log", self, "canary")
		cmd := exec.Command(entry.Command, entry.Args...)
		cmd.Env = []string{canary.Stubborn + "=yes"}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
			Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		Expect(err).NotTo(HaveOccurred())
		result, err := session.CallTool(ctx,
			&mcp.CallToolParams{Name: canary.Tool, Arguments: map[string]any{"text": canary.Picture}})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Content).To(HaveLen(2))
		_, err = png.Decode(bytes.NewReader(result.Content[1].(*mcp.ImageContent).Data))
		Expect(err).NotTo(HaveOccurred())
		_, err = session.CallTool(ctx,
			&mcp.CallToolParams{Name: canary.Tool, Arguments: map[string]any{"text": canary.Crash}})
		Expect(err).To(HaveOccurred())
		Expect(ctx.Err()).NotTo(HaveOccurred())
		_ = session.Close()
	})
	It("tells all arguments of a call that has more than a text, and answers verses in two texts", func() {
		server, err := canary.Start("token", canary.Web)
		Expect(err).NotTo(HaveOccurred())
		defer server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
			Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.Entry("c").URL}, nil)
		Expect(err).NotTo(HaveOccurred())
		defer session.Close()
		_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: canary.Tool, Arguments: map[string]any{"text": "a"}})
		Expect(err).NotTo(HaveOccurred())
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: canary.Tool,
			Arguments: map[string]any{"text": "verses b", "loud": false, "times": 0}})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Content).To(HaveLen(2))
		seen := server.Sightings()
		plain, verses := seen[len(seen)-2], seen[len(seen)-1]
		Expect([]string{string(plain.Args), plain.Also}).To(Equal([]string{"", ""}))
		Expect(verses.Args).To(MatchJSON(`{"text": "verses b", "loud": false, "times": 0}`))
		Expect(result.Content[1].(*mcp.TextContent).Text).To(Equal(verses.Also))
	})
	sing := func(ctx context.Context, s *mcp.ClientSession, text string) (*mcp.CallToolResult, error) {
		p := &mcp.CallToolParams{Name: canary.Tool, Arguments: map[string]any{"text": text}}
		p.SetProgressToken("song")
		return s.CallTool(ctx, p)
	}
	It("tells the number of the header that came with a call over http", func() {
		server, err := canary.Start("token", canary.Web)
		Expect(err).NotTo(HaveOccurred())
		defer server.Close()
		header := canary.Apart(server.Entry("c"), 7).Headers[1]
		client := &http.Client{Transport: withHeader{header.Name, header.Value}}
		call(&mcp.StreamableClientTransport{Endpoint: server.Entry("c").URL, HTTPClient: client})
		Expect(server.Sightings()).To(ContainElement(And(HaveField("What", "called"), HaveField("Number", "7"))))
	})
	It("answers over http while another call hangs, and after that call was given up", func() {
		server, err := canary.Start("token", canary.Web)
		Expect(err).NotTo(HaveOccurred())
		defer server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
			Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.Entry("c").URL}, nil)
		Expect(err).NotTo(HaveOccurred())
		defer session.Close()
		hanging, giveUp := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { _, err := sing(hanging, session, canary.Hang); ended <- err }()
		Eventually(server.Sightings).Should(ContainElement(HaveField("Open", true)))
		_, err = sing(ctx, session, "beside")
		Expect(err).NotTo(HaveOccurred())
		Expect(ended).NotTo(Receive())
		giveUp()
		Eventually(ended).Should(Receive(HaveOccurred()))
		Eventually(server.Sightings).Should(ContainElement(HaveField("What", "left")))
		_, err = sing(ctx, session, "behind")
		Expect(err).NotTo(HaveOccurred())
	})
	// connected starts a stdio canary with the given variable. It returns a client, and the sightings in the log.
	connected := func(variable string, options *mcp.ClientOptions) *mcp.ClientSession {
		GinkgoHelper()
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		entry := canary.Stdio("c", "token", GinkgoT().TempDir()+"/log", self, "canary")
		cmd := exec.Command(entry.Command, entry.Args...)
		cmd.Env = []string{variable + "=1"}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, options).
			Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
		Expect(err).NotTo(HaveOccurred())
		return session
	}
	It("offers a prompt without a description and one with arguments if it has prompts", func() {
		session := connected(canary.Prompts, nil)
		defer session.Close()
		list, err := session.ListPrompts(context.Background(), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Prompts).To(HaveExactElements(HaveField("Description", ""), HaveField("Arguments", HaveLen(2))))
		got, err := session.GetPrompt(context.Background(), &mcp.GetPromptParams{Name: "canary_greet"})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Messages).To(HaveLen(1))
	})
	It("speaks the first version of MCP if it is older", func() {
		session := connected(canary.Older, nil)
		defer session.Close()
		Expect(session.InitializeResult().ProtocolVersion).To(Equal("2024-11-05"))
	})
	It("answers with an error, with files, with sound, with bytes, or with steps and nothing", func() {
		steps := make(chan string, 8)
		session := connected(canary.Other, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				steps <- r.Params.Message
			},
		})
		defer session.Close()
		_, err := sing(context.Background(), session, canary.Wrong)
		Expect(err).To(MatchError(ContainSubstring("the song went wrong")))
		files, err := sing(context.Background(), session, canary.Files)
		Expect(err).NotTo(HaveOccurred())
		Expect(files.Content).To(HaveExactElements(BeAssignableToTypeOf(&mcp.TextContent{}),
			BeAssignableToTypeOf(&mcp.EmbeddedResource{}), BeAssignableToTypeOf(&mcp.ResourceLink{})))
		sound, err := sing(context.Background(), session, canary.Sound)
		Expect(err).NotTo(HaveOccurred())
		Expect(sound.Content).To(HaveExactElements(BeAssignableToTypeOf(&mcp.TextContent{}),
			HaveField("MIMEType", "audio/wav")))
		data, err := sing(context.Background(), session, canary.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(data.Content).To(HaveExactElements(BeAssignableToTypeOf(&mcp.TextContent{}),
			HaveField("Resource", And(HaveField("URI", "canary://egg.bin"), HaveField("Blob", HaveLen(3)),
				HaveField("MIMEType", "application/octet-stream")))))
		nothing, err := sing(context.Background(), session, canary.Steps)
		Expect(err).NotTo(HaveOccurred())
		Expect(nothing.Content).To(BeEmpty())
		Eventually(steps).Should(Receive(Equal("step 1")))
		Eventually(steps).Should(Receive(Equal("step 2")))
	})
	It("writes more to stderr than a pipe takes if it is loud, before it answers", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		entry := canary.Stdio("c", "token", GinkgoT().TempDir()+"/log", self, "canary")
		var errs bytes.Buffer
		cmd := exec.Command(entry.Command, entry.Args...)
		cmd.Env, cmd.Stderr = []string{canary.Loud + "=1", canary.Variable + "=token"}, &errs
		Expect(call(&mcp.CommandTransport{Command: cmd})).To(Equal("token: tweet"))
		Expect(errs.Len()).To(BeNumerically(">", 256<<10))
		Expect(strings.Index(errs.String(), "initialized")).To(BeNumerically(">", 256<<10))
	})
	It("reports progress behind a call that was given up if it is chatty, and says more at both ends", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		entry := canary.Stdio("c", "token", GinkgoT().TempDir()+"/log", self, "canary")
		cmd := exec.Command(entry.Command, entry.Args...)
		cmd.Env = []string{canary.Chatty + "=1"}
		out, err := cmd.Output() // its input has ended
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Split(strings.TrimSpace(string(out)), "\n")).To(HaveExactElements(
			ContainSubstring("notifications/message"), ContainSubstring("notifications/tools/list_changed")))
		steps := make(chan struct{}, 64)
		session := connected(canary.Chatty, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
				steps <- struct{}{}
			},
		})
		defer session.Close()
		ctx, giveUp := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { _, err := sing(ctx, session, canary.Hang); ended <- err }()
		Eventually(steps).Should(Receive())
		giveUp()
		Eventually(ended).Should(Receive(HaveOccurred()))
		for len(steps) > 0 {
			<-steps
		}
		Eventually(steps).Should(Receive())
	})
	It("answers over http with JSON of several lines at an address with a query if it is odd", func() {
		s, err := canary.Start("token", canary.Unusual)
		Expect(err).NotTo(HaveOccurred())
		defer s.Close()
		entry := s.Entry("c")
		client := &http.Client{Transport: withHeader{entry.Headers[0].Name, entry.Headers[0].Value}}
		Expect(call(&mcp.StreamableClientTransport{Endpoint: entry.URL, HTTPClient: client})).To(Equal("token: tweet"))
		Expect(s.Sightings()).To(ContainElement(called("token", true)))
		bare, _, _ := strings.Cut(entry.URL, "?")
		Expect(call(&mcp.StreamableClientTransport{Endpoint: bare, HTTPClient: client})).To(Equal("token: tweet"))
		Expect(s.Sightings()).To(ContainElement(called("token", false)), "an agent that drops the query shows")
		hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
			`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		r, err := http.NewRequest(http.MethodPost, entry.URL, strings.NewReader(hello))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := http.DefaultClient.Do(r)
		Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(body)).To(ContainSubstring("{\n  \"jsonrpc\""))
	})
	It("answers over a stream of events, and misses the headers of each request", func() {
		s, err := canary.Start("token", canary.Events)
		Expect(err).NotTo(HaveOccurred())
		defer s.Close()
		entry := s.Entry("c")
		Expect(entry.Type).To(Equal("sse"))
		client := &http.Client{Transport: withHeader{entry.Headers[0].Name, entry.Headers[0].Value}}
		Expect(call(&mcp.SSEClientTransport{Endpoint: entry.URL, HTTPClient: client})).To(Equal("token: tweet"))
		Expect(s.Sightings()).To(ContainElement(called("token", true)))
		Expect(call(&mcp.SSEClientTransport{Endpoint: entry.URL})).To(Equal("token: tweet"))
		Expect(s.Sightings()).To(ContainElement(called("token", false)))
		answer, err := client.Post(entry.URL, "application/json", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusBadRequest), "it is no streamable HTTP")
	})
	It("tells of a variable that the agent gave although it is another server's", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		log := GinkgoT().TempDir() + "/log"
		for n, stray := range []string{"", "CANARY_NUMBER_1"} {
			entry := canary.Numbered(canary.Stdio("c", "canary-x", log, self, "canary"), n+1)
			cmd := exec.Command(entry.Command, entry.Args...)
			for _, v := range entry.Env {
				cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
			}
			if n > 0 {
				cmd.Env = append(cmd.Env, "CANARY_NUMBER_1=1")
			}
			Expect(call(&mcp.CommandTransport{Command: cmd})).To(Equal("canary-x: tweet"))
			seen, err := canary.Read(log)
			Expect(err).NotTo(HaveOccurred())
			Expect(seen[len(seen)-1].Stray).To(Equal(stray))
		}
	})
	It("sings over http and is seen", func() {
		token := "canary-" + rand.Text()[:12]
		s, err := canary.Start(token, canary.Web)
		Expect(err).NotTo(HaveOccurred())
		defer s.Close()
		entry := s.Entry("c")
		client := &http.Client{Transport: withHeader{entry.Headers[0].Name, entry.Headers[0].Value}}
		Expect(call(&mcp.StreamableClientTransport{Endpoint: entry.URL, HTTPClient: client})).
			To(Equal(token + ": tweet"))
		Expect(s.Sightings()).To(ContainElement(called(token, true)))
		Expect(call(&mcp.StreamableClientTransport{Endpoint: entry.URL})).To(Equal(token + ": tweet"))
		Expect(s.Sightings()).To(ContainElement(called(token, false)), "an agent that drops the headers shows")
		page := &http.Client{Transport: withHeader{"Origin", "http://attacker.example"}}
		answer, err := page.Post(entry.URL, "application/json", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusForbidden))
	})
})

// called returns the sighting of a call with "tweet".
func called(token string, given bool) canary.Sighting {
	return canary.Sighting{What: "called", Text: "tweet", Said: token + ": tweet", Token: given}
}
