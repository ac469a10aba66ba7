//go:build soak

package clients_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// What takes minutes: go test -tags soak, or ci/soak model.

// holding is how long a gate holds each stream.
const holding = 2 * time.Minute

// held starts a server whose one answer waits at a gate, and lets it wait.
func held(streams int, ask func(url string)) {
	GinkgoHelper()
	script, err := fakellm.ParseScript("held.yaml",
		[]byte("turns:\n  - prompt: Please take your time\n    replies: [[{text: one}, {gate: held}, {text: "+
			"\" two\"}]]\n"), nil)
	Expect(err).NotTo(HaveOccurred())
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	Expect(err).NotTo(HaveOccurred())
	s, err := fakellm.Start(fakellm.Config{Script: script, Transcript: log})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(s.Close()).To(Succeed())
		Expect(log.Close()).To(Succeed())
	})
	count := func(k transcript.Kind) (n int) {
		for e := range log.All() {
			if e.Kind == k {
				n++
			}
		}
		return n
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer GinkgoRecover()
		ask(s.URL())
	})
	Eventually(func() int { return count(transcript.Gate) }).WithTimeout(time.Minute).
		WithPolling(10 * time.Millisecond).Should(Equal(streams))
	began := time.Now()
	// Nobody may give up, and nobody may ask again.
	Consistently(func() []int { return []int{count(transcript.ModelRequest), count(transcript.ModelAborted)} }).
		WithTimeout(holding).WithPolling(time.Second).Should(Equal([]int{streams, 0}))
	_, err = s.Release("held")
	Expect(err).NotTo(HaveOccurred())
	all.Wait()
	Expect(count(transcript.ModelDone)).To(Equal(streams))
	AddReportEntry(fmt.Sprintf("%d streams were held for %.0f s and then ended well", streams,
		time.Since(began).Seconds()))
}

var _ = Describe("a gate, for minutes", Label("soak"), func() {
	It("is no trouble to the vendors' Go clients, streamed or not", func(ctx SpecContext) {
		held(2*len(vendors), func(url string) {
			var all sync.WaitGroup
			for _, v := range vendors {
				for _, stream := range []bool{true, false} {
					all.Go(func() {
						defer GinkgoRecover()
						got, err := v.ask(ctx, fmt.Sprintf("%s/run/%s-%t", url, v.name, stream),
							[]line{{user: "Please take your time"}}, stream)
						Expect(err).NotTo(HaveOccurred(), "%s stream=%t", v.name, stream)
						Expect(got.text).To(Equal("one two"), "%s stream=%t", v.name, stream)
					})
				}
			}
			all.Wait()
		})
	}, SpecTimeout(2*holding))

	It("is no trouble to the vendors' JavaScript clients", func(ctx SpecContext) {
		dir := filepath.Join("..", "..", "ci", "fakellm-npm")
		Expect(filepath.Join(dir, "node_modules", "openai")).
			To(BeADirectory(), "the JavaScript clients are not installed: run ci/install-npm ci/fakellm-npm")
		held(8, func(url string) {
			cmd := exec.CommandContext(context.WithoutCancel(ctx), "node", "clients.mjs", url, "held")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "NO_COLOR=1", "OPENAI_LOG=off")
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s", out)
			n := 0
			for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "ok ") {
					n++
				}
			}
			Expect(n).To(Equal(8), "%s", out)
		})
	}, SpecTimeout(2*holding))
})
