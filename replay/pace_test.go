package replay_test

import (
	"context"
	"io"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// paced plays a recording whose editor took 10 s to begin and 20 s after the
// first answer, with a clock that stands still unless it is waited for.
func paced(speed float64) (waits []time.Duration, missed []string) {
	GinkgoHelper()
	clock := time.Unix(0, 0)
	recording, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Now: func() time.Time { return clock }})
	Expect(err).NotTo(HaveOccurred())
	for _, l := range []struct {
		after time.Duration
		from  transcript.Source
		line  string
	}{{10 * time.Second, transcript.Editor, initialized[2:]}, {time.Second, transcript.Agent, welcome[2:]},
		{20 * time.Second, transcript.Editor, opened[2:]}, {time.Second, transcript.Agent, session1[2:]}} {
		clock = clock.Add(l.after)
		recording.AppendFrame(0, l.from, []byte(l.line), 0)
	}

	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	work, home := place()
	now := time.Unix(0, 0)
	p := replay.Player{Protocol: recordings.V1(), Recording: recording, Speed: speed, Work: work, Home: home,
		Now: func() time.Time { return now },
		After: func(d time.Duration) <-chan time.Time {
			waits = append(waits, d)
			now = now.Add(d)
			due := make(chan time.Time, 1)
			due <- now
			return due
		},
		Start: func(_ context.Context, conn int) (*mockclient.Agent, error) {
			return mockclient.InProcess(log, conn, func(ctx context.Context, in io.Reader, out io.Writer) error {
				return refagent.Run(ctx, refagent.Options{In: in, Out: out, Log: io.Discard,
					Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }})
			}), nil
		},
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	played, err := p.Play(ctx, log)
	Expect(err).NotTo(HaveOccurred())
	return waits, played.Missed
}

var _ = Describe("the pace of a replay", func() {
	DescribeTable("is that of the recording, so many times faster", func(speed float64, want ...time.Duration) {
		waits, missed := paced(speed)
		Expect(waits).To(Equal(want))
		Expect(missed).To(BeEmpty())
	},
		Entry("as recorded", 1.0, 10*time.Second, 20*time.Second),
		Entry("four times as fast", 4.0, 2500*time.Millisecond, 5*time.Second),
		Entry("half as fast", 0.5, 20*time.Second, 40*time.Second),
	)

	It("does not wait at 0", func() {
		waits, missed := paced(0)
		Expect(waits).To(BeEmpty())
		Expect(missed).To(BeEmpty())
	})
})
