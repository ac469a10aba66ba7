package fakellm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

func recording(upstream string) (*fakellm.Recorder, *transcript.Transcript) {
	GinkgoHelper()
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	Expect(err).NotTo(HaveOccurred())
	rec, err := fakellm.Record(fakellm.RecordConfig{Upstream: upstream, Transcript: log})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(rec.Close()).To(Succeed())
		Expect(log.Close()).To(Succeed())
	})
	return rec, log
}

// modelSaid is what a log has of the model: the kinds of entries, and what was answered.
func modelSaid(log *transcript.Transcript) string {
	var said []string
	for e := range log.All() {
		if e.Source == transcript.Model {
			said = append(said, string(e.Kind))
			if steps := e.JSON().Get("steps"); steps.Exists() {
				said = append(said, steps.Text())
			}
		}
	}
	return strings.Join(said, " ")
}

// wireTap keeps what a client sends and gets, so that it can be asked again.
type wireTap struct{ asked []asked }

type asked struct{ path, body, answer string }

func (w *wireTap) ask(base, path, body string) answer {
	GinkgoHelper()
	got := post(base+path, body, "Authorization", "Bearer sk-very-secret-key", "Cookie", "session=abcdefgh12345")
	w.asked = append(w.asked, asked{path, body, got.body})
	return got
}

var _ = Describe("a recording", func() {
	for _, e := range endpoints {
		It("is a script that says the same, byte for byte: "+e.name, func() {
			r := serving(`
lanes:
  title: {when: {system~: name it}, reply: [{text: A title}]}
replies:
  - - thinking: Let me see.
      chunks: 3
    - text: Hello "world" # not a comment
      chunks: 4
    - usage: {input: 3, output: 4, cached: 1, reasoning: 2}
  - - fail: {status: 429, retry_after: 2, times: 1}
    - tool: write_file
      args: {path: /a, content: "x: $y\n"}
      chunks: 3
    - tool: read_file
      args: {path: /b}
  - - text: over
    - stop: length
`)
			rec, _ := recording(r.URL())
			var tap wireTap
			url := func(stream bool) string { return strings.TrimPrefix(e.url("", stream), "") }
			var talk []string
			for i, stream := range []bool{true, true, true, false} {
				_ = i
				tap.ask(rec.URL(), url(stream), history(e, stream, talk...))
				if stream || len(talk) == 0 {
					talk = append(talk, fmt.Sprint("said ", len(talk)))
				}
				if i == 1 {
					talk = talk[:1] // the retry asks the same again
				}
			}
			src := rec.Script()
			Expect(string(src)).NotTo(ContainSubstring("secret"))
			again := serving(string(src))
			for _, a := range tap.asked {
				Expect(post(again.URL()+a.path, a.body).body).To(Equal(a.answer), "%s", src)
			}
		})
	}

	It("holds no key and no cookie, even where the provider says it", func() {
		r := serving("replies:\n  - - text: [\"your key is sk-very-sec\", \"ret-key, bye\"]\n")
		rec, log := recording(r.URL())
		var tap wireTap
		tap.ask(rec.URL(), "/v1/messages", endpoints[2].body(true, "my key is sk-very-secret-key"))
		Expect(string(rec.Script())).To(ContainSubstring("your key is REDACTED, bye"))
		for e := range log.All() {
			Expect(string(e.Raw)).NotTo(Or(ContainSubstring("sk-very-secret-key"), ContainSubstring("abcdefgh12345")))
		}
	})

	It("goes on for ever where the agent hung up", func() {
		r := serving("replies:\n  - - text: Once upon\n    - fail: {hang: true, after_chunks: 1}\n")
		rec, _ := recording(r.URL())
		ctx, hangUp := context.WithCancel(context.Background())
		defer hangUp()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, rec.URL()+"/v1/messages",
			strings.NewReader(endpoints[2].body(true, "a story")))
		Expect(err).NotTo(HaveOccurred())
		res, err := http.DefaultClient.Do(req)
		Expect(err).NotTo(HaveOccurred())
		defer res.Body.Close()
		Expect(io.ReadFull(res.Body, make([]byte, 20))).To(Equal(20))
		hangUp()
		Eventually(func() string { return string(rec.Script()) }).
			Should(MatchRegexp(`text: "Once upon"\n( .*\n)* +- fail: \{hang: true\}\n$`))
	})

	It("says that the agent left before anything was answered, and that nobody answered", func(ctx SpecContext) {
		came, left := make(chan bool), make(chan bool)
		upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, hr *http.Request) {
			_, _ = io.ReadAll(hr.Body)
			close(came)
			<-hr.Context().Done()
			close(left)
		}))
		DeferCleanup(upstream.Close)
		rec, log := recording(upstream.URL)
		impatient, leave := context.WithCancel(ctx)
		go func() {
			defer GinkgoRecover()
			body := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}`)
			hr, err := http.NewRequestWithContext(impatient, http.MethodPost, rec.URL()+"/v1/chat/completions", body)
			Expect(err).NotTo(HaveOccurred())
			_, err = http.DefaultClient.Do(hr)
			Expect(err).To(MatchError(context.Canceled))
		}()
		<-came
		leave()
		<-left
		Eventually(func() string { return modelSaid(log) }).WithContext(ctx).
			Should(Equal(`model-request model-answer ["fail: {hang: true}"] model-aborted`))

		upstream.Close()
		rec, log = recording(upstream.URL)
		Expect(post(rec.URL()+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`).
			status).To(Equal(502))
		Expect(modelSaid(log)).To(Equal(`model-request model-answer ["fail: {status: 502, body: \"\"}"] model-done`))
	}, SpecTimeout(time.Minute))

	It("says which URL is wrong", func() {
		_, err := fakellm.Record(fakellm.RecordConfig{Upstream: "example.com"})
		Expect(err).To(MatchError(`recording: "example.com" is not an http or https URL`))
	})

	It("is made of another fake server too", func(ctx SpecContext) {
		base := aimock(ctx)
		rec, _ := recording(base)
		var tap wireTap
		for _, e := range endpoints {
			got := tap.ask(rec.URL(), e.url("", true), e.body(true, "hello via "+e.name))
			Expect(got.status).To(Equal(200), "%s", got.body)
		}
		again := serving(string(rec.Script()))
		for i, e := range endpoints {
			got := post(again.URL()+tap.asked[i].path, tap.asked[i].body).body
			Expect(pieces(got)).To(Equal(pieces(tap.asked[i].answer)), "%s\n%s", e.name, rec.Script())
			Expect(pieces(got)).NotTo(BeEmpty())
		}
	}, SpecTimeout(30*time.Second))
})

// pieces are the texts of a stream, in any format.
func pieces(body string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"(?:content|text|delta)":"([^"]+)"`).FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

// history is a request after some replies of the model, without tools.
func history(e endpoint, stream bool, said ...string) string {
	var msgs []string
	role, form := "assistant", `{"role":%q,"content":%q}`
	if e.name == fakellm.Gemini {
		role, form = "model", `{"role":%q,"parts":[{"text":%q}]}`
	}
	msgs = append(msgs, fmt.Sprintf(form, "user", "start"))
	for _, s := range said {
		msgs = append(msgs, fmt.Sprintf(form, role, s))
		switch e.name {
		case fakellm.OpenAIChat:
			msgs = append(msgs, `{"role":"tool","tool_call_id":"x","content":"result"}`)
		case fakellm.OpenAIResponses:
			msgs = append(msgs, `{"type":"function_call_output","call_id":"x","output":"result"}`)
		case fakellm.Anthropic:
			msgs = append(msgs, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"x",`+
				`"content":"result"}]}`)
		default:
			msgs = append(msgs, `{"role":"user","parts":[{"functionResponse":{"name":"x",`+
				`"response":{"output":"result"}}}]}`)
		}
	}
	full := e.body(stream, "@")
	at := strings.Index(full, "[{")
	return full[:at+1] + strings.Join(msgs, ",") + full[strings.LastIndex(full, "]"):]
}

// aimock starts the npm package that is also the benchmark's peer.
func aimock(ctx context.Context) string {
	GinkgoHelper()
	dir := filepath.Join("..", "ci", "fakellm-npm")
	cli := filepath.Join("node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	if _, err := os.Stat(filepath.Join(dir, cli)); err != nil {
		Fail("the other fake server is not installed: run `npm ci --prefix ci/fakellm-npm` (Node 20 or later)")
	}
	fixtures := filepath.Join(GinkgoT().TempDir(), "hello.json")
	Expect(os.WriteFile(fixtures, []byte(`{"fixtures":[{"match":{"userMessage":"hello"},`+
		`"response":{"content":"Hello! How can I help you today? There is more to say than one piece holds."}}]}`),
		0o600)).To(Succeed())
	port := freePort()
	cmd := exec.CommandContext(ctx, "node", cli, "--port", port, "--fixtures", fixtures, "--chunk-size", "7")
	cmd.Dir = dir
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill() // it serves until it is killed
		_ = cmd.Wait()
	})
	base := "http://127.0.0.1:" + port
	Eventually(func() error {
		res, err := http.Get(base + "/health")
		if err == nil {
			res.Body.Close()
		}
		return err
	}).WithPolling(20 * time.Millisecond).Should(Succeed())
	return base
}
