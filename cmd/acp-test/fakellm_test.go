package main_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

// modelServer is a running acp-test fakellm.
type modelServer struct {
	url  string
	stop func() ended // interrupts it
}

func (p *place) fakellm(args ...string) modelServer {
	GinkgoHelper()
	c := p.command(append([]string{"fakellm"}, args...)...)
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	var said bytes.Buffer
	c.Stderr = &said
	Expect(c.Start()).To(Succeed())
	DeferCleanup(func() { _ = c.Process.Kill() })
	url, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred(), "%s", said.String())
	return modelServer{strings.TrimSpace(url), func() ended {
		GinkgoHelper()
		Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
		return ended{status(c.Wait()), "", said.String()}
	}}
}

const (
	key    = "sk-not-for-anyone-1234567890"
	cookie = "visitor=8d1b2c33a7"
)

// question is a streaming request in one wire format.
type question struct{ wire, path, body string }

var questions = []question{
	{fakellm.OpenAIChat, "/v1/chat/completions",
		`{"model":"m","stream":true,"messages":[{"role":"user","content":"hello in chat"}]}`},
	{fakellm.OpenAIResponses, "/v1/responses",
		`{"model":"m","stream":true,"input":[{"role":"user","content":"hello in responses"}]}`},
	{fakellm.Anthropic, "/v1/messages",
		`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello in messages"}]}`},
	{fakellm.Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse",
		`{"contents":[{"role":"user","parts":[{"text":"hello in gemini"}]}]}`},
}

func (q question) ask(base string) string {
	GinkgoHelper()
	r, err := http.NewRequest(http.MethodPost, base+q.path, strings.NewReader(q.body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Cookie", cookie)
	res, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(res.StatusCode).To(Equal(200), "%s", body)
	return string(body)
}

// pieces are the texts of a stream's events, in any format.
func pieces(body string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"(?:content|text|delta)":"([^"]+)"`).FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

// otherServer starts the npm package @copilotkit/aimock.
func otherServer() string {
	GinkgoHelper()
	cli, err := filepath.Abs("../../ci/fakellm-npm/node_modules/@copilotkit/aimock/dist/cli.js")
	Expect(err).NotTo(HaveOccurred())
	Expect(cli).To(BeAnExistingFile(), "the other fake server is not installed: run ci/install-npm ci/fakellm-npm")
	fixtures := filepath.Join(GinkgoT().TempDir(), "hello.json")
	Expect(os.WriteFile(fixtures, []byte(`{"fixtures":[{"match":{"userMessage":"hello"},`+
		`"response":{"content":"Hello! There is more to say than one piece of a stream holds."}}]}`), 0o600)).
		To(Succeed())
	c := exec.Command("node", cli, "--port", "0", "--fixtures", fixtures, "--chunk-size", "7")
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = c.Process.Kill() // it serves until it is killed
		_ = c.Wait()
	})
	said := bufio.NewReader(out)
	for {
		line, err := said.ReadString('\n')
		Expect(err).NotTo(HaveOccurred(), "the other fake server ended before it listened")
		if _, url, found := strings.Cut(line, "listening on "); found {
			go io.Copy(io.Discard, said) // it writes a line for each request
			return strings.TrimSpace(url)
		}
	}
}

var _ = Describe("fakellm --upstream", func() {
	recorded := func(p *place, upstream ...string) (said []string) {
		GinkgoHelper()
		args := []string{"--record", "talk.yaml", "--transcript", "talk.jsonl"}
		for _, u := range upstream {
			args = append(args, "--upstream", u)
		}
		rec := p.fakellm(args...)
		for _, q := range questions {
			said = append(said, q.ask(rec.url))
		}
		// It is there already, should the recorder be killed.
		Eventually(func() string { return p.read("talk.yaml") }).WithTimeout(time.Minute).
			Should(ContainSubstring("hello in gemini"))
		end := rec.stop()
		Expect(end.code).To(Equal(0), "%s", end.err)
		for _, text := range []string{p.read("talk.yaml"), p.read("talk.jsonl"), end.err} {
			Expect(text).NotTo(Or(ContainSubstring(key), ContainSubstring("8d1b2c33a7")))
		}
		return said
	}

	It("makes a script of a second instance that says the same, byte for byte", func() {
		p := newPlace()
		p.write("llm.yaml", `
turns:
  - {prompt: hello in chat, replies: [[{text: [One, " piece", " and more."]}]]}
  - prompt: hello in responses
    replies:
      - - thinking: Well.
        - text: Let me write.
        - tool: write_file
          args: {path: /a, content: "x: 1\n"}
          chunks: 3
        - usage: {input: 7, output: 9}
  - {prompt: hello in messages, replies: [[{text: "your key is `+key+`, bye", chunks: 9}]]}
  - {prompt: hello in gemini, replies: [[{text: cut off}, {stop: length}]]}
lanes: {no-tools: {main: true}}
`)
		up := p.fakellm("llm.yaml")
		// One for all, and one of its own for a wire format.
		said := recorded(p, up.url, "anthropic="+up.url+"/")
		again := p.fakellm("talk.yaml")
		for i, q := range questions {
			want := said[i]
			if q.wire == fakellm.Anthropic {
				Expect(strings.Join(pieces(q.ask(again.url)), "")).To(Equal("your key is REDACTED, bye"))
				continue
			}
			Expect(q.ask(again.url)).To(Equal(want), "%s\n%s", q.wire, p.read("talk.yaml"))
		}
		Expect(up.stop().code).To(Equal(0))
		Expect(again.stop().code).To(Equal(0))
	})

	It("makes a script of another fake server, chunk for chunk", func() {
		p := newPlace()
		said := recorded(p, otherServer())
		again := p.fakellm("talk.yaml")
		for i, q := range questions {
			Expect(pieces(said[i])).NotTo(BeEmpty())
			Expect(pieces(q.ask(again.url))).To(Equal(pieces(said[i])), "%s\n%s", q.wire, p.read("talk.yaml"))
		}
		Expect(again.stop().code).To(Equal(0))
	})

	It("replaces no recording, and says when there is none", func() {
		p := newPlace()
		p.write("talk.yaml", "replies: []\n")
		got := p.run("fakellm", "--upstream", "http://127.0.0.1:1", "--record", "talk.yaml")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(Equal("acp-test: --record talk.yaml: the file exists already, and fakellm does not " +
			"overwrite it\n"))

		end := p.fakellm("--upstream", "http://127.0.0.1:1", "--record", "none.yaml").stop()
		Expect(end.code).To(Equal(2))
		Expect(end.err).To(Equal("acp-test: --record none.yaml: nothing was recorded, because fakellm got no " +
			"model request\n"))
	})
})
