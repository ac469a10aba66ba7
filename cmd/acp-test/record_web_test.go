//go:build unix

package main_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("acp-test record --url", func() {
	It("records what front ends and an endpoint say, without secrets, until it is interrupted", func() {
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Expect(r.Header.Get("Authorization")).To(Equal("Bearer "+key), "it is passed on")
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}`+"\n\n"+
				`data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}`+"\n\n")
		}))
		defer endpoint.Close()
		p := newPlace()
		c := p.command("record", "--url", endpoint.URL, "--out", "run.jsonl")
		said, err := c.StderrPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Start()).To(Succeed())
		DeferCleanup(func() { _ = c.Process.Kill() })
		line, err := bufio.NewReader(said).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		url := regexp.MustCompile(`http://\S+`).FindString(line)

		post, err := http.NewRequest(http.MethodPost, url, strings.NewReader(
			`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"My key is `+key+
				`."}],"tools":[],"context":[]}`))
		Expect(err).NotTo(HaveOccurred())
		post.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(post)
		Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(answer.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(body)).To(ContainSubstring("RUN_FINISHED"))
		Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(status(c.Wait())).To(Equal(0))

		Expect(p.read("run.jsonl")).NotTo(ContainSubstring(key))
		got := p.run("check", "run.jsonl")
		Expect(got.code).To(Equal(0), got.out+got.err)
		p.write("empty.jsonl", "")
		got = p.run("check", "empty.jsonl", "run.jsonl")
		Expect(got.code).To(Equal(2))
		Expect(got.out).To(And(ContainSubstring("ERROR empty.jsonl"), ContainSubstring("ok    run.jsonl")))
		Expect(p.run("show", "run.jsonl").out).
			To(And(ContainSubstring("--> run t r"), ContainSubstring("<-- RUN_FINISHED t r"),
				ContainSubstring(`end closed`)))
	})

	It("makes what replay posts again to an endpoint", func() {
		end := `data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}` + "\n\n"
		var bodies []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}`+"\n\n"+end)
		}))
		defer server.Close()
		p := newPlace()
		const input = `{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[]}`
		p.write("run.jsonl", input+"\n"+`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`+"\n"+
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`+"\n")
		got := p.run("replay", "run.jsonl", "--url", server.URL)
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(bodies).To(Equal([]string{input}))
		Expect(p.results().Results).To(HaveLen(1))

		end = ""
		got = p.run("replay", "run.jsonl", "--url", server.URL)
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(ContainSubstring("RUN-FRAME  The stream ended without RUN_FINISHED or RUN_ERROR"))

		p.write("events.jsonl", `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`+"\n")
		for args, says := range map[string]string{
			"run.jsonl": "--url is missing", "run.jsonl --url x": `"x" is no URL`,
			"events.jsonl --url http://127.0.0.1:1": "nothing to replay",
		} {
			got := p.run(append([]string{"replay"}, strings.Fields(args)...)...)
			Expect(got.code).To(Equal(2), args)
			Expect(got.err).To(ContainSubstring(says))
		}
	})

	It("says what does not go together", func() {
		p := newPlace()
		for args, says := range map[string]string{
			"--url http://127.0.0.1:1 --out x -- agent": "--url and an agent's command contradict each other",
			"--url http://127.0.0.1:1 --out x --llm":    "--live and --llm cannot be used with --url",
			"--url http://127.0.0.1:1":                  "--out FILE is missing",
			"--url nowhere --out x": `"nowhere" is no URL of an endpoint: it needs http or ` +
				`https, and a host`,
			"--url http://127.0.0.1:1 --listen x --out x": "--listen",
		} {
			got := p.run(append([]string{"record"}, strings.Fields(args)...)...)
			Expect(got.code).To(Equal(2), args)
			Expect(got.err).To(ContainSubstring(says))
		}
	})
})
