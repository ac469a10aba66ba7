package fakellm_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// script parses a script that must be right.
func script(src string) *fakellm.Script {
	GinkgoHelper()
	s, err := fakellm.ParseScript("llm.yaml", []byte(src), nil)
	Expect(err).NotTo(HaveOccurred())
	return s
}

// rig is a server with its transcript.
type rig struct {
	*fakellm.Server
	log *transcript.Transcript
}

func start(c fakellm.Config) rig {
	GinkgoHelper()
	log, err := transcript.New(transcript.Header{Tool: "test"}, transcript.Options{})
	Expect(err).NotTo(HaveOccurred())
	c.Transcript = log
	s, err := fakellm.Start(c)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(s.Close()).To(Succeed())
		Expect(log.Close()).To(Succeed())
	})
	return rig{s, log}
}

func serving(src string) rig {
	GinkgoHelper()
	return start(fakellm.Config{Script: script(src)})
}

// entries are those of one kind.
func (r rig) entries(k transcript.Kind) []transcript.Entry {
	var out []transcript.Entry
	for e := range r.log.All() {
		if e.Kind == k {
			out = append(out, e)
		}
	}
	return out
}

// kinds are the kinds of all entries, in order.
func (r rig) kinds() string {
	var out []string
	for e := range r.log.All() {
		out = append(out, string(e.Kind))
	}
	return strings.Join(out, " ")
}

// field reads a detail of the last entry of a kind.
func (r rig) field(k transcript.Kind, path string) string {
	all := r.entries(k)
	if len(all) == 0 {
		return fmt.Sprintf("no %s entry", k)
	}
	return all[len(all)-1].JSON().Path(path).Text()
}

// await waits for an entry of a kind to appear.
func (r rig) await(k transcript.Kind) transcript.Entry {
	GinkgoHelper()
	Eventually(func() int { return len(r.entries(k)) }).WithPolling(time.Millisecond).Should(BeNumerically(">", 0))
	all := r.entries(k)
	return all[len(all)-1]
}

// endpoint is a path and a body that asks for a reply there.
type endpoint struct {
	name, path string
	body       func(stream bool, users ...string) string
}

func list(users []string, form string) string {
	var out []string
	for _, u := range users {
		out = append(out, fmt.Sprintf(form, u))
	}
	return strings.Join(out, ",")
}

// endpoints are the wire formats, each without tools.
var endpoints = []endpoint{
	{fakellm.OpenAIChat, "/v1/chat/completions", func(s bool, u ...string) string {
		return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[%s]}`, s, list(u, `{"role":"user","content":%q}`))
	}},
	{fakellm.OpenAIResponses, "/v1/responses", func(s bool, u ...string) string {
		return fmt.Sprintf(`{"model":"m","stream":%t,"input":[%s]}`, s, list(u, `{"role":"user","content":%q}`))
	}},
	{fakellm.Anthropic, "/v1/messages", func(s bool, u ...string) string {
		return fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%t,"messages":[%s]}`, s,
			list(u, `{"role":"user","content":%q}`))
	}},
	{fakellm.Gemini, "/v1beta/models/m:", func(s bool, u ...string) string {
		return fmt.Sprintf(`{"contents":[%s]}`, list(u, `{"role":"user","parts":[{"text":%q}]}`))
	}},
}

func (e endpoint) url(base string, stream bool) string {
	if e.name != fakellm.Gemini {
		return base + e.path
	}
	if stream {
		return base + e.path + "streamGenerateContent?alt=sse"
	}
	return base + e.path + "generateContent"
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func post(url, body string, headers ...string) answer {
	GinkgoHelper()
	return postContext(context.Background(), url, body, headers...)
}

func postContext(ctx context.Context, url, body string, headers ...string) answer {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, res.Body)
	return answer{res.StatusCode, res.Header, b.String(), err}
}

func (r rig) ask(e endpoint, stream bool, users ...string) answer {
	GinkgoHelper()
	return post(e.url(r.URL(), stream), e.body(stream, users...))
}
