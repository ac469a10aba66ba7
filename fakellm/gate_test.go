package fakellm_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/acp-test/acp-test/fakellm"
)

const gated = `
replies:
  - - gate: start
    - text: one
    - gate: mid
    - text: two
    - tool: write_file
      args: {path: /abc}
      args_gate: args
      args_gate_at: 4
    - gate: end
`

var _ = Describe("a gate", func() {
	for _, e := range endpoints {
		It("holds a stream wherever it stands, until it is released: "+e.name, func(ctx SpecContext) {
			r := serving(gated)
			done := make(chan answer, 1)
			go func() {
				defer GinkgoRecover()
				done <- r.ask(e, true, "x")
			}()
			for _, g := range []string{"start", "mid", "args", "end"} {
				Eventually(r.Held).WithPolling(time.Millisecond).Should(Equal([]string{g}))
				Expect(done).NotTo(Receive())
				_, err := r.Release(g)
				Expect(err).NotTo(HaveOccurred())
			}
			got := <-done
			Expect(got.err).NotTo(HaveOccurred())
			Expect(r.kinds()).To(Equal("model-request model-answer gate gate-released model-chunk gate gate-released " +
				"model-chunk model-chunk gate gate-released model-chunk gate gate-released model-done"))
		}, SpecTimeout(10*time.Second))
	}

	It("has flushed what was said before it, and nothing more", func(ctx SpecContext) {
		r := serving("replies:\n  - - text: one\n    - gate: mid\n    - text: two\n")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL()+"/v1/messages",
			strings.NewReader(endpoints[2].body(true, "x")))
		Expect(err).NotTo(HaveOccurred())
		res, err := http.DefaultClient.Do(req)
		Expect(err).NotTo(HaveOccurred())
		defer res.Body.Close()
		in := bufio.NewReader(res.Body)
		seen := ""
		for !strings.Contains(seen, `"text":"one"`) {
			l, err := in.ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
			seen += l
		}
		r.await("gate")
		_, err = r.Release("mid")
		Expect(err).NotTo(HaveOccurred())
		rest, err := io.ReadAll(in)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(rest)).To(ContainSubstring(`"text":"two"`))
	}, SpecTimeout(10*time.Second))

	It("leaves the header to what comes after it", func() {
		for _, e := range endpoints {
			r := serving("replies:\n  - - gate: mid\n    - pause: 1ms\n    - fail: {status: 429, times: 1}\n" +
				"    - text: two\n")
			go func() {
				defer GinkgoRecover()
				Eventually(r.Held).WithPolling(time.Millisecond).ShouldNot(BeEmpty())
				_, err := r.Release("mid")
				Expect(err).NotTo(HaveOccurred())
			}()
			Expect(r.ask(e, false, "x").status).To(Equal(429))
			for _, stream := range []bool{true, false} {
				kind := "application/json"
				if stream {
					kind = "text/event-stream"
				}
				Expect(r.ask(e, stream, "x").header.Get("Content-Type")).
					To(HavePrefix(kind), "%s stream=%t", e.name, stream)
			}
		}
	})

	It("never holds once it was released", func() {
		r := serving("replies:\n  - - gate: mid\n    - text: two\n")
		first, err := r.Release("mid")
		Expect(err).NotTo(HaveOccurred())
		Expect(r.ask(endpoints[0], true, "x").body).To(ContainSubstring("two"))
		again, err := r.Release("mid")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Seq).To(Equal(first.Seq))
		_, err = r.Release("mit")
		Expect(err).To(MatchError(`releasing gate "mit": the script has no gate of that name (did you mean "mid"?)`))
	})

	It("holds longer than a client may take to read", func() {
		r := start(fakellm.Config{Script: script("replies:\n  - - text: one\n    - pause: 60ms\n    - text: two\n"),
			WriteTimeout: 20 * time.Millisecond})
		for range 2 {
			Expect(r.ask(endpoints[0], true, "x").body).To(HaveSuffix("[DONE]\n\n"))
			Expect(r.ask(endpoints[0], false, "x").body).To(ContainSubstring("onetwo"))
		}
	})

	It("shows the client's hang-up at once", func() {
		r := serving("replies:\n  - - text: one\n    - gate: mid\n    - text: two\n")
		for _, e := range endpoints {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan answer, 1)
			go func() {
				defer GinkgoRecover()
				done <- postContext(ctx, e.url(r.URL(), true), e.body(true, "x"))
			}()
			before := len(r.entries("model-aborted"))
			Eventually(func() int { return len(r.entries("gate")) }).WithPolling(time.Millisecond).
				Should(Equal(before + 1))
			cancel()
			Eventually(func() int { return len(r.entries("model-aborted")) }).WithPolling(time.Millisecond).
				Should(Equal(before + 1))
			Expect(r.field("model-aborted", "chunks")).To(Equal("1"))
			Eventually(r.Held).Should(BeEmpty())
			<-done
		}
	})

	It("ends with the server, and no goroutine is left", func() {
		http.DefaultClient.CloseIdleConnections()
		before := gleak.Goroutines()
		s, err := fakellm.Start(fakellm.Config{Script: script("replies:\n  - - gate: mid\n")})
		Expect(err).NotTo(HaveOccurred())
		done := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			done <- post(s.URL()+"/v1/messages", endpoints[2].body(true, "x"))
		}()
		Eventually(s.Held).WithPolling(time.Millisecond).Should(HaveLen(1))
		Expect(s.Close()).To(Succeed())
		Expect(s.Close()).To(Succeed())
		Expect((<-done).err).To(HaveOccurred())
		http.DefaultClient.CloseIdleConnections()
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
	})
})
