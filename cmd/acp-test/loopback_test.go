//go:build unix

package main_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// listening starts a command that serves, and returns the URL that it prints.
func (p *place) listening(args ...string) string {
	GinkgoHelper()
	c := p.command(args...)
	read, write, err := os.Pipe()
	Expect(err).NotTo(HaveOccurred())
	c.Stdout, c.Stderr = write, write
	Expect(c.Start()).To(Succeed())
	Expect(write.Close()).To(Succeed())
	DeferCleanup(func(c *exec.Cmd) { _ = c.Process.Kill(); _ = c.Wait(); read.Close() }, c)
	said := ""
	for lines := bufio.NewScanner(read); lines.Scan(); {
		said += lines.Text() + "\n"
		if url := regexp.MustCompile(`http://127\.0\.0\.1:\d+\S*`).FindString(lines.Text()); url != "" {
			return url
		}
	}
	Fail("no URL in " + said)
	return ""
}

// ask sends a request and returns the status of its answer.
func ask(method, url, host, header, value string) int {
	GinkgoHelper()
	r, err := http.NewRequest(method, url,
		strings.NewReader(`{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[]}`))
	Expect(err).NotTo(HaveOccurred())
	r.Host = host
	if header != "" {
		r.Header.Set(header, value)
	}
	answer, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	_, _ = io.Copy(io.Discard, answer.Body)
	Expect(answer.Body.Close()).To(Succeed())
	return answer.StatusCode
}

var _ = Describe("a server on loopback", func() {
	var mu sync.Mutex
	var reached []string
	var endpoint *httptest.Server
	BeforeEach(func() {
		reached = nil
		endpoint = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			reached = append(reached, r.Method+" "+r.Host+" "+r.URL.String())
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
		}))
		DeferCleanup(endpoint.Close)
	})

	It("answers programs of this machine, and no page of another site", func() {
		p := newPlace()
		p.write("model.yaml", "replies: []\n")
		p.write("run.jsonl", `{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[]}`+"\n"+
			`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`+"\n"+
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`+"\n")
		for _, server := range []struct{ method, args string }{
			{"POST", "record --out web.jsonl --url " + endpoint.URL + "/agent"},
			{"POST", "serve run.jsonl --protocol ag-ui --out served.jsonl --listen 127.0.0.1:0"},
			{"POST", "serve --out obedient --listen 127.0.0.1:0"},
			{"GET", "ui run.jsonl --port 0"},
			{"POST", "fakellm model.yaml"},
			{"POST", "fakellm --record new.yaml --upstream openai-chat=" + endpoint.URL},
		} {
			url := p.listening(strings.Fields(server.args)...)
			at := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(url)
			reached = nil
			for _, foreign := range [][3]string{{"attacker.example", "", ""}, {"127.0.0.1.attacker.example", "", ""},
				{at, "Origin", "http://attacker.example"}, {at, "Sec-Fetch-Site", "cross-site"}} {
				if server.method == "GET" && foreign[1] == "Sec-Fetch-Site" {
					continue // its URL is a secret
				}
				Expect(ask(server.method, url, foreign[0], foreign[1], foreign[2])).
					To(Equal(http.StatusForbidden), server.args, foreign)
			}
			Expect(reached).To(BeEmpty(), server.args)
			Expect(ask(server.method, url, at, "", "")).NotTo(Equal(http.StatusForbidden), server.args)
		}
	})

	It("that records passes on the path of its endpoint alone, and the Host as it came", func() {
		url := newPlace().listening("record", "--out", "web.jsonl", "--url", endpoint.URL+"/agent/?a=b")
		at := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(url)
		Expect(ask("POST", url, at, "", "")).To(Equal(200))
		Expect(ask("POST", url+"agent", "localhost:1", "", "")).To(Equal(200))
		Expect(ask("OPTIONS", url, at, "", "")).To(Equal(200))
		for _, other := range []string{"admin", "agent/x", "../admin", "agent/../admin", "%2e%2e/admin", "/admin"} {
			Expect(ask("POST", url+other, at, "", "")).NotTo(Equal(200), other)
		}
		Expect(reached).To(Equal([]string{"POST " + at + " /agent/?a=b", "POST localhost:1 /agent",
			"OPTIONS " + at + " /agent/?a=b"}))
	})
})
