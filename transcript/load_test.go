package transcript_test

import (
	"bytes"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("a file that is read", func() {
	text := func(entries int) []byte {
		t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		for n := range entries {
			agent(t, update(n))
		}
		var b bytes.Buffer
		Expect(t.Save(&b)).To(Succeed())
		return b.Bytes()
	}
	line := func(e transcript.Entry) string {
		return fmt.Sprint(e.Seq, e.Kind, e.JSON().Get("method").Str(), string(e.Raw))
	}

	It("is shown while it is read, whole and in order", func() {
		var seen, want []string
		t, err := transcript.Salvage(bytes.NewReader(text(1000)), acpframe.Classifier{},
			func(e transcript.Entry) { seen = append(seen, line(e)) })
		Expect(err).NotTo(HaveOccurred())
		for e := range t.Shown() {
			want = append(want, line(e))
		}
		Expect(want).To(HaveLen(1000))
		Expect(seen).To(Equal(want))
	})

	It("is read back in order, backwards and from the middle, when it is larger than memory", func() {
		want := text(3000)
		t, err := transcript.New(transcript.Header{},
			transcript.Options{Classifier: acpframe.Classifier{}, Memory: 64 << 10})
		Expect(err).NotTo(HaveOccurred())
		defer t.Close()
		for n := range 3000 {
			agent(t, update(n))
		}
		Expect(t.InMemory()).To(BeFalse())
		var again bytes.Buffer
		Expect(t.Save(&again)).To(Succeed())
		frames := func(b []byte) []string {
			u, err := transcript.Load(bytes.NewReader(b), acpframe.Classifier{})
			Expect(err).NotTo(HaveOccurred())
			var all []string
			for e := range u.All() {
				all = append(all, string(e.Raw))
			}
			return all
		}
		raws := frames(want)
		Expect(frames(again.Bytes())).To(Equal(raws))
		for _, seq := range []int{2500, 1200, 1, 900, 901, 1500, 3000} {
			Expect(string(t.At(seq).Raw)).To(Equal(raws[seq-1]))
		}
	})

	It("is shown as far as it can be read", func() {
		for _, broken := range [][]byte{[]byte("no transcript\n"), append(text(700), `{"seq":701,"kin`...)} {
			seen := 0
			t, err := transcript.Salvage(bytes.NewReader(broken), acpframe.Classifier{},
				func(transcript.Entry) { seen++ })
			if err == nil {
				Expect(t.Torn()).To(BeTrue())
				Expect(seen).To(Equal(700))
			} else {
				Expect(seen).To(BeZero())
			}
		}
	})
})

var _ = Describe("who watches from beside", func() {
	It("has seen all that was appended before it settles, in order, and nothing after", func() {
		t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		agent(t, update(0))
		var seen []int
		settle := t.ObserveBeside(func(e transcript.Entry) { seen = append(seen, e.Seq) })
		for n := range 2000 {
			agent(t, update(n))
		}
		settle()
		Expect(seen).To(HaveLen(2001))
		for i, seq := range seen {
			Expect(seq).To(Equal(i + 1))
		}
		agent(t, update(1))
		settle()
		Expect(t.Close()).To(Succeed())
		Expect(seen).To(HaveLen(2001))
	})

	It("makes whoever appends wait where it cannot follow", func() {
		t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		release, seen := make(chan struct{}), 0
		settle := t.ObserveBeside(func(transcript.Entry) {
			if seen++; seen == 1 {
				<-release
			}
		})
		large := `{"jsonrpc":"2.0","method":"session/update","params":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`
		appended := make(chan int, 100)
		go func() {
			defer GinkgoRecover()
			for n := range 20 {
				agent(t, large)
				appended <- n
			}
			close(appended)
		}()
		for range 5 { // what the queue takes
			<-appended
		}
		Consistently(appended, "50ms").ShouldNot(BeClosed())
		close(release)
		Eventually(appended, "1m").Should(BeClosed())
		settle()
		Expect(seen).To(Equal(20))
	})
})
