package fakellm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func fails(fault string) string {
	return fmt.Sprintf("replies:\n  - - fail: {%s}\n    - text: hello\n      chunks: 5\n", fault)
}

var _ = Describe("a fault", func() {
	for _, e := range endpoints {
		Describe(e.name, func() {
			It("is a status with the headers of a retry, as often as it says", func() {
				r := serving(fails("status: 429, retry_after: 1.5, headers: {x-a: b}, message: slow down, times: 1"))
				got := r.ask(e, true, "x")
				Expect(got.status).To(Equal(429))
				Expect(got.header.Get("Retry-After")).To(Equal("2"))
				Expect(got.header.Get("Retry-After-Ms")).To(Equal("1500"))
				Expect(got.header.Get("X-A")).To(Equal("b"))
				Expect(got.body).To(ContainSubstring("slow down"))
				Expect(json.Valid([]byte(got.body))).To(BeTrue())
				Expect(r.ask(e, false, "x").status).To(Equal(200))
				Expect(r.kinds()).To(Equal("model-request model-answer model-fault model-done model-request " +
					"model-answer model-chunk model-done"))
			})
			It("is an error event once the stream runs", func() {
				r := serving(fails("status: 500, after_chunks: 2, message: overloaded"))
				got := r.ask(e, true, "x")
				Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
				Expect(got.body).To(And(ContainSubstring("overloaded"), Not(ContainSubstring("[DONE]")),
					Not(ContainSubstring("message_stop"))))
				Expect(r.field("model-done", "chunks")).To(Equal("2"))
				Expect(r.ask(e, false, "x").status).To(Equal(500))
			})
			It("is a connection that breaks at a chunk", func() {
				r := serving(fails("disconnect: true, after_chunks: 3"))
				got := r.ask(e, true, "x")
				Expect(got.status).To(Equal(200))
				Expect(got.err).To(HaveOccurred())
				Expect(strings.HasSuffix(got.body, "\n\n")).To(BeTrue(), "%q", got.body)
				Expect(r.field("model-fault", "chunks")).To(Equal("3"))

				r = serving(fails("disconnect: mid-chunk, after_chunks: 3"))
				got = r.ask(e, true, "x")
				Expect(got.err).To(HaveOccurred())
				Expect(strings.HasSuffix(got.body, "\n\n")).To(BeFalse())
				got = r.ask(e, false, "x")
				Expect(got.err).To(HaveOccurred())
			})
			It("is a body that ends too early", func() {
				for _, how := range []string{"body", "end"} {
					r := serving(fails("truncate: " + how + ", after_chunks: 5"))
					got := r.ask(e, true, "x")
					Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
					Expect(strings.HasSuffix(got.body, "\n\n")).To(Equal(how == "end"))
					whole := r.ask(e, false, "x")
					Expect(whole.err).NotTo(HaveOccurred())
					Expect(json.Valid([]byte(whole.body))).To(BeFalse())
				}
			})
			It("is an event that is not valid JSON, or of no known shape", func() {
				r := serving(fails("malformed: sse, times: 2"))
				Expect(r.ask(e, true, "x").body).To(ContainSubstring("data: {\"id\":\"broken\n\n"))
				Expect(json.Valid([]byte(r.ask(e, false, "x").body))).To(BeFalse())
				Expect(json.Valid([]byte(r.ask(e, false, "x").body))).To(BeTrue())
				r = serving(fails("malformed: shape"))
				Expect(r.ask(e, true, "x").body).To(ContainSubstring("data: {\"unexpected\":true}\n\n"))
				Expect(r.ask(e, false, "x").body).To(Equal(`{"unexpected":true}`))
			})
			It("is a wrong content type, or another body", func() {
				r := serving(fails("content_type: text/html"))
				Expect(r.ask(e, true, "x").header.Get("Content-Type")).To(Equal("text/html"))
				r = serving(fails("content_type: text/html, body: <html>, status: 502"))
				got := r.ask(e, true, "x")
				Expect(fmt.Sprintf("%d %s %s", got.status, got.header.Get("Content-Type"), got.body)).
					To(Equal("502 text/html <html>"))
				r = serving(fails("content_type: text/plain; charset=iso-8859-1, body: Zähler, status: 500"))
				Expect(r.ask(e, true, "x").body).To(Equal("Z\xe4hler"))
			})
			It("hangs until the client gives up", func() {
				r := serving(fails("hang: true, after_chunks: 1"))
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan answer, 1)
				go func() {
					defer GinkgoRecover()
					done <- postContext(ctx, e.url(r.URL(), true), e.body(true, "x"))
				}()
				r.await("model-fault")
				Consistently(done, 20*time.Millisecond).ShouldNot(Receive())
				cancel()
				r.await("model-aborted")
				<-done
			})
			It("keeps a stream open by a comment, of which a body knows nothing", func() {
				r, quiet := serving(fails("comment: keep-alive")),
					serving("replies:\n  - - text: hello\n      chunks: 5\n")
				streamed := r.ask(e, true, "x").body
				Expect(streamed).To(ContainSubstring(": keep-alive\n\n"))
				Expect(strings.Replace(streamed, ": keep-alive\n\n", "", 1)).To(Equal(quiet.ask(e, true, "x").body))
				Expect(r.ask(e, false, "x").body).To(Equal(quiet.ask(e, false, "x").body))
			})
			It("drips", func() {
				r := serving(fails("slow: {bytes: 100, every: 1ms}"))
				quick := serving("replies:\n  - - text: hello\n      chunks: 5\n")
				Expect(r.ask(e, true, "x").body).To(Equal(quick.ask(e, true, "x").body))
				Expect(r.ask(e, false, "x").body).To(Equal(quick.ask(e, false, "x").body))
			})
		})
	}
})

var _ = Describe("Gemini", func() {
	It("escapes the signs that Google's servers escape", func() {
		r := serving("replies:\n  - - text: \"a <b> c\\u2028d\"\n      chunks: 1\n")
		i := slices.IndexFunc(endpoints, func(e endpoint) bool { return e.name == fakellm.Gemini })
		for _, stream := range []bool{true, false} {
			Expect(r.ask(endpoints[i], stream, "x").body).To(ContainSubstring(`a \u003cb\u003e c\u2028d`))
		}
	})
})
