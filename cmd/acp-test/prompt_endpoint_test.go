//go:build unix

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

var _ = Describe("prompt of an endpoint of AG-UI", func() {
	It("starts the one that a profile names, and shows its text and acts", func() {
		p := newPlace()
		p.write("m.yaml", "replies:\n  - - thinking: Let me see.\n    - text: I note it.\n    - tool: write_file\n"+
			"      args: {path: note.txt, content: Noted.}\n"+
			"  - - text: Done.\n")
		got := p.run("prompt", "--agent", "reference-ag-ui", "--llm", "m.yaml", "Note it.")
		Expect(got).To(Equal(ended{0, "I note it.\nDone.\n", "[state] {}\n[step] model\n[thought] Let me see.\n" +
			`[tool] write_file {"content":"Noted.","path":"note.txt"}` +
			"\n[result] The file is written.\n[step] model\n"}))
		Expect(p.read("note.txt")).To(Equal("Noted."))
		got = p.run("prompt", "--agent", "reference-ag-ui", "-o", "jsonl", "Hello.")
		Expect(got.out).To(MatchRegexp(`(?s)^\{[^\n]*"content":"Hello."[^\n]*\n[^\n]` +
			`*"RUN_STARTED".*"RUN_FINISHED"[^\n]*\n$`))
		Expect(got.err).To(BeEmpty())
	})

	// Each path answers in another way.
	answers := map[string]string{
		"/ends": `{"type":"TEXT_MESSAGE_CHUNK","messageId":"a","delta":"One."}` + "|" +
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"b","delta":"Two."}` + `|{"type":"RUN_FINISHED"}`,
		"/interrupts": `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i",` +
			`"message":"Sure?"}]}}`,
		"/fails": `{"type":"RUN_ERROR","code":"E1","message":"no model"}`,
		"/stops": `{"type":"STEP_STARTED","stepName":"s"}`,
		"/holds": `{"type":"STEP_STARTED","stepName":"s"}`,
	}
	var p *place
	var at string
	BeforeEach(func() {
		p = newPlace()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			text, ok := answers[r.URL.Path]
			if !ok {
				http.Error(w, "not here", http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range strings.Split(text, "|") {
				_, _ = io.WriteString(w, "data: "+event+"\n\n")
			}
			if w.(http.Flusher).Flush(); r.URL.Path == "/holds" {
				<-r.Context().Done()
			}
		}))
		DeferCleanup(server.Close)
		at = server.URL
	})

	It("says how the run ended, and tells it by the exit status", func() {
		for path, want := range map[string]ended{
			"/ends": {0, "One.\nTwo.\n", ""},
			"/interrupts": {1, "", "[interrupt] i Sure?\nacp-test: the run ended with an interrupt, which prompt " +
				"cannot answer: a scenario can, with `resume`\n"},
			"/fails": {1, "", "acp-test: the run failed: E1 no model\n"},
			"/stops": {1, "", "[step] s\nacp-test: the answer is an incomplete run (truncated)\n"},
			"/other": {1, "", "acp-test: the answer is an incomplete run (refused): HTTP status 404: not here; " +
				"if this is an ACP agent, use --protocol acp-v1\n"},
		} {
			Expect(p.run("prompt", "--url", at+path, "Hello.")).To(Equal(want), path)
		}
		Expect(p.run("prompt", "--url", at+"/holds", "--timeout", "50ms", "--exit-codes", "acp", "-o", "simple",
			"Hello.")).To(Equal(
			ended{124, "", "acp-test: the run took longer than 50ms (--timeout), and the connection was closed\n"}))
	})

	It("closes the connection when it is interrupted", func() {
		a := p.asking("--url", at+"/holds", "-o", "jsonl", "Hello.")
		Eventually(a.out).WithTimeout(time.Minute).Should(gbytes.Say("STEP_STARTED"))
		Expect(a.Process.Signal(syscall.SIGINT)).To(Succeed())
		Expect(status(a.Wait())).To(Equal(130))
		Expect(a.err.String()).To(Equal("acp-test: interrupted: the connection was closed\n"))
	})

	It("prompts agents of ACP over a network", func() {
		self := []string{"--", "acp-test", "refagent", "--listen", "127.0.0.1:0"}
		for _, over := range []string{"http", "ws"} {
			got := p.run("prompt", "-o", "simple", "Hello.", "--agent", "reference", "--over", over)
			Expect(got.code).To(Equal(0), got.err)
			Expect(got.out).To(HavePrefix("Hello. I am the reference agent"))
		}
		p.env = append(p.env, "OPENAI_BASE_URL=http://127.0.0.1:1/v1")
		for _, words := range [][]string{{"--url", "ws:$PRINTED"}, {"--url", "$PRINTED", "--protocol", "acp-v1"}} {
			got := p.run(slices.Concat([]string{"prompt", "Hello."}, words, self)...)
			Expect(got.code).To(Equal(1))
			Expect(got.err).To(And(HavePrefix("[session] sess_"), ContainSubstring("the model request failed")))
		}
		Expect(p.run("prompt", "--url", "ws://127.0.0.1:1/", "Hello.").err).To(HavePrefix(
			"acp-test: ws://127.0.0.1:1/: initialize: writing to the agent: nobody listens at ws://127.0.0.1:1/"))
	})
})
