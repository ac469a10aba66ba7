package fakellm_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

const plain = "models: [m]\nreplies:\n  - - text: hello\n"

func get(url string, headers ...string) answer {
	GinkgoHelper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{status: res.StatusCode, header: res.Header, body: string(b)}
}

var _ = Describe("bad input", func() {
	for _, e := range endpoints {
		DescribeTable("is refused in the form of the API: "+e.name,
			func(status int, path, body, part string, headers ...string) {
				r := serving(plain)
				url := e.url(r.URL(), false)
				if path != "" {
					url = r.URL() + path
				}
				if body == "" {
					body = e.body(false, "x")
				}
				got := post(url, body, headers...)
				Expect(got.status).To(Equal(status), "%s", got.body)
				Expect(got.body).To(And(ContainSubstring(`"error":{`), ContainSubstring(part)))
				Expect(r.kinds()).To(Equal("model-request model-done"))
				Expect(r.field("model-request", "lane")).To(Equal("invalid"))
				Expect(r.field("model-done", "why")).NotTo(BeEmpty())
				Expect(r.ask(e, false, "x").status).To(Equal(200))
			},
			Entry("no JSON", 400, "", `{"model":`, "not valid JSON"),
			Entry("no object", 400, "", `[]`, "must be a JSON object"),
			Entry("a key without its scheme", 401, "", "", "Incorrect API key", "Authorization", "sk-test"),
			Entry("an encoding nobody knows", 415, "", "", "Unsupported content encoding", "Content-Encoding",
				"brotli"),
		)
		It("has a limit: "+e.name, func() {
			s := start(fakellm.Config{Script: script(plain), MaxBody: 1000})
			got := post(e.url(s.URL(), false), e.body(false, strings.Repeat("x", 100_000)))
			if got.err == nil {
				Expect(got.status).To(Equal(413))
			}
			s.await("model-done")
			Expect(s.field("model-done", "status")).To(Equal("413"))
			Expect(s.ask(e, false, "x").status).To(Equal(200))
		})
	}

	It("knows no other paths and models", func() {
		r := serving(plain)
		for _, path := range []string{"/v1/v1/chat/completions", "/v2/messages", "/v1/embeddings", "/",
			"/v1beta/models/m:embedContent"} {
			Expect(post(r.URL()+path, "{}").status).To(Equal(404), path)
		}
		for _, e := range endpoints {
			got := post(strings.Replace(e.url(r.URL(), false), "models/m:", "models/n:", 1),
				strings.Replace(e.body(false, "x"), `"model":"m"`, `"model":"n"`, 1))
			Expect(got.status).To(Equal(404), e.name)
		}
		Expect(get(r.URL() + "/v1/models/n").status).To(Equal(404))
	})

	It("needs the script's key if there is one", func() {
		r := serving("api_key: sk-right\nreplies:\n  - - text: hello\n")
		Expect(post(r.URL()+"/v1/messages", endpoints[2].body(false, "x")).status).To(Equal(401))
		Expect(post(r.URL()+"/v1/messages", endpoints[2].body(false, "x"), "X-Api-Key", "sk-right").status).
			To(Equal(200))
		Expect(post(r.URL()+"/v1beta/models/m:generateContent?key=sk-right", endpoints[3].body(false, "x")).status).
			To(Equal(200))
		for _, e := range r.entries("model-request") {
			Expect(string(e.Raw)).NotTo(ContainSubstring("sk-right"))
		}
	})

	It("is unpacked first", func() {
		r := serving(plain)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, endpoints[0].body(false, "x"))
		Expect(z.Close()).To(Succeed())
		Expect(post(r.URL()+"/v1/chat/completions", b.String(), "Content-Encoding", "gzip").body).
			To(ContainSubstring("hello"))
	})

	It("cuts a client off that never reads, and harms no other", func() {
		r := start(fakellm.Config{Script: script("replies:\n  - - text: abcdefghij\n      repeat: 4000000\n" +
			"  - - text: hello\n"), WriteTimeout: 100 * time.Millisecond})
		c, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
		Expect(err).NotTo(HaveOccurred())
		defer c.Close()
		body := endpoints[0].body(true, "x")
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body)
		r.await("model-aborted")
		Expect(get(r.URL() + "/v1/models").status).To(Equal(200))
	})
})

var _ = Describe("what agents also ask for", func() {
	It("is answered by each API's own form", func() {
		r := serving(plain)
		Expect(get(r.URL() + "/v1/models").body).
			To(Equal(`{"object":"list","data":[{"id":"m","object":"model","created":1735689600,` +
				`"owned_by":"fakellm"}]}`))
		Expect(get(r.URL() + "/models").body).To(ContainSubstring(`"object":"list"`))
		Expect(get(r.URL()+"/v1/models", "Anthropic-Version", "2023-06-01").body).
			To(ContainSubstring(`"has_more":false`))
		Expect(get(r.URL() + "/v1beta/models").body).To(ContainSubstring(`"name":"models/m"`))
		Expect(get(r.URL() + "/v1beta/models/m").body).To(ContainSubstring(`"inputTokenLimit"`))
		Expect(get(r.URL() + "/v1/models/m").body).To(ContainSubstring(`"id":"m"`))
		Expect(post(r.URL()+"/v1/messages/count_tokens",
			`{"model":"m","messages":[{"role":"user","content":"12345678"}]}`).body).To(Equal(`{"input_tokens":3}`))
		Expect(post(r.URL()+"/v1beta/models/m:countTokens", endpoints[3].body(false, "12345678")).body).
			To(Equal(`{"totalTokens":3}`))
		Expect(r.entries("model-chunk")).To(BeEmpty())
	})
})

var _ = Describe("agents that share a server", func() {
	It("are told apart by path or key", func() {
		r := serving(fails("status: 503, times: 1"))
		body := endpoints[0].body(false, "x")
		for _, ask := range []func() answer{
			func() answer { return post(r.URL()+"/run/a/v1/chat/completions", body) },
			func() answer { return post(r.URL()+"/run/b/v1/chat/completions", body) },
			func() answer { return post(r.URL()+"/v1/chat/completions", body, "Authorization", "Bearer run-c") },
			func() answer { return post(r.URL()+"/v1/chat/completions", body) },
		} {
			Expect(ask().status).To(Equal(503))
			Expect(ask().status).To(Equal(200))
		}
	})
})
