//go:build soak

package fakellm_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/sebdah/goldie/v2"

	"github.com/acp-test/acp-test/fakellm"
)

// What takes minutes: go test -tags soak, or ci/soak model.

var _ = Describe("the model server, for long", Label("soak"), func() {
	for _, e := range endpoints {
		It("says the same 1,000 times, over 10 restarts: "+e.name, func() {
			const restarts, runs = 10, 100
			g := goldie.New(GinkgoTB(), goldie.WithFixtureDir("testdata"), goldie.WithTestNameForDir(false))
			sums := map[[32]byte]int{}
			began := time.Now()
			for restart := range restarts {
				r := start(fakellm.Config{Script: script(everything), Seed: 1,
					Prompts: []fakellm.Prompt{{Index: 1, Text: "hi"}}})
				var all sync.WaitGroup
				bodies := make([][2]string, runs)
				for worker := range 4 {
					all.Add(1)
					go func() {
						defer GinkgoRecover()
						defer all.Done()
						for i := worker; i < runs; i += 4 {
							bodies[i] = [2]string{r.ask(e, true, "hi").body, r.ask(e, false, "hi").body}
						}
					}()
				}
				all.Wait()
				if restart == 0 { // the same in every process and on every machine
					g.Assert(GinkgoTB(), e.name+".stream", []byte(bodies[0][0]))
					g.Assert(GinkgoTB(), e.name+".whole", []byte(bodies[0][1]))
				}
				for _, b := range bodies {
					sums[sha256.Sum256([]byte(b[0]))]++
					sums[sha256.Sum256([]byte(b[1]))]++
				}
				Expect(r.Close()).To(Succeed())
			}
			Expect(sums).To(HaveLen(2))
			for _, n := range sums {
				Expect(n).To(Equal(restarts * runs))
			}
			AddReportEntry(fmt.Sprintf("%s: %d streams and %d whole answers, %d restarts, %.1f s", e.name,
				restarts*runs, restarts*runs, restarts, time.Since(began).Seconds()))
		})
	}

	for _, e := range endpoints {
		It("takes a body of 100 MB as each API does, and harms no other stream: "+e.name, func() {
			const size = 100_000_000
			big := e.body(false, strings.Repeat("x", size))
			for _, limit := range []int64{0, 256 << 20} {
				r := start(fakellm.Config{Script: script("replies:\n  - - text: one\n    - gate: mid\n" +
					"    - text: two\n"), MaxBody: limit})
				done := make(chan answer, 1)
				go func() {
					defer GinkgoRecover()
					done <- r.ask(e, true, "hi")
				}()
				Eventually(r.Held).WithTimeout(time.Minute).WithPolling(time.Millisecond).Should(HaveLen(1))
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				got := make(chan answer, 1)
				go func() {
					defer GinkgoRecover()
					got <- post(e.url(r.URL(), false), big)
				}()
				if limit == 0 {
					a := <-got
					// The server stops reading; the client may still be writing.
					if a.err == nil {
						Expect(a.status).To(Equal(http.StatusRequestEntityTooLarge))
					}
					Eventually(func() string { return r.field("model-done", "status") }).WithTimeout(time.Minute).
						Should(Equal("413"))
				}
				took := time.Since(began)
				Expect(done).NotTo(Receive())
				_, err := r.Release("mid")
				Expect(err).NotTo(HaveOccurred())
				if limit > 0 {
					a := <-got
					Expect(a.err).NotTo(HaveOccurred())
					Expect(a.status).To(Equal(http.StatusOK))
					Expect(a.body).To(ContainSubstring("onetwo"))
					took = time.Since(began)
				}
				Expect((<-done).body).To(ContainSubstring("two"))
				runtime.ReadMemStats(&after)
				what := "cut off at 32 MiB"
				if limit > 0 {
					what = "answered"
				}
				AddReportEntry(fmt.Sprintf("%s: 100 MB %s after %.2f s, %d MB allocated by client and server", e.name,
					what, took.Seconds(), (after.TotalAlloc-before.TotalAlloc)/1e6))
				Expect(r.Close()).To(Succeed())
			}
		})
	}
})
