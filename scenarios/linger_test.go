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

	It("waits for a first model request as long as the agent is busy, and no longer than that", func() {
		a := &worker{t: t, busy: 5, asks: 3}
		scenarios.UntilAsked(context.Background(), t, time.Millisecond, a)
		Expect(a.asked).To(Equal(3), "it has come")
		scenarios.UntilAsked(context.Background(), t, time.Hour, a)
		Expect(a.asked).To(Equal(3), "it was there already")
	})

	It("does not wait for the model request of an agent that has nothing to do", func() {
		a := &worker{t: t, busy: 1}
		scenarios.UntilAsked(context.Background(), t, time.Millisecond, a)
		Expect(a.asked).To(Equal(2))
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
// something that was not read for some times. It asks its model when it is looked at for
// the asks-th time.
type worker struct {
	t                         *transcript.Transcript
	asked, busy, unread, asks int
}

func (w *worker) Taken(context.Context) {}

func (w *worker) Busy() bool {
	w.asked++
	if w.asked == w.asks {
		w.t.Event(0, transcript.Model, transcript.ModelRequest, "", nil)
	}
	return w.asked <= w.busy
}

func (w *worker) CatchUp(context.Context) {
	if w.unread > 0 {
		w.unread--
		w.t.Append(transcript.Entry{Source: transcript.Agent, Kind: transcript.Notification})
	}
}
