package transcript_test

import (
	"bytes"
	"fmt"

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

	It("is shown as far as it can be read", func() {
		for _, broken := range [][]byte{[]byte("no transcript\n"), append(text(700), `{"seq":701,"kin`...)} {
			seen := 0
			t, err := transcript.Salvage(bytes.NewReader(broken), acpframe.Classifier{}, func(transcript.Entry) { seen++ })
			if err == nil {
				Expect(t.Torn()).To(BeTrue())
				Expect(seen).To(Equal(700))
			} else {
				Expect(seen).To(BeZero())
			}
		}
	})
})
