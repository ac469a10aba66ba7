package scenarios_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("listening on after the last line", func() {
	var t *transcript.Transcript
	BeforeEach(func() {
		var err error
		t, err = transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(t.Close)
	})

	It("goes on while the agent is busy, but not for ever", func() {
		a := &worker{t: t, busy: 2}
		scenarios.Silence(context.Background(), t, time.Millisecond, a)
		Expect(a.asked).To(Equal(3))
		a = &worker{t: t, busy: 1 << 30}
		scenarios.Silence(context.Background(), t, time.Millisecond, a)
		Expect(a.asked).To(Equal(10))
	})

	It("goes on when it had not yet read what the agent said", func() {
		a := &worker{t: t, unread: 2}
		scenarios.Silence(context.Background(), t, time.Millisecond, a)
		Expect(a.asked).To(Equal(3))
		Expect(a.unread).To(BeZero())
	})

	It("ends with the run", func() {
		ended, end := context.WithCancel(context.Background())
		end()
		a := &worker{t: t, busy: 1}
		scenarios.Silence(ended, t, time.Hour, a)
		Expect(a.asked).To(BeZero())
	})
})

// worker is an agent that has something to do for some times, and then has said
// something that was not read for some times.
type worker struct {
	t                   *transcript.Transcript
	asked, busy, unread int
}

func (w *worker) Taken(context.Context) {}

func (w *worker) Busy() bool {
	w.asked++
	return w.asked <= w.busy
}

func (w *worker) CatchUp(context.Context) {
	if w.unread > 0 {
		w.unread--
		w.t.Append(transcript.Entry{Source: transcript.Agent, Kind: transcript.Notification})
	}
}
