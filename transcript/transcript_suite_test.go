package transcript_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

func TestTranscript(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // the end of it is a failure, never a verdict on speed
	RunSpecs(t, "transcript")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
})

// empty is a transcript in memory.
func empty() *transcript.Transcript {
	GinkgoHelper()
	return with(transcript.Options{})
}

func with(o transcript.Options) *transcript.Transcript {
	GinkgoHelper()
	if o.Classifier == nil {
		o.Classifier = acpframe.Classifier{}
	}
	t, err := transcript.New(transcript.Header{}, o)
	Expect(err).NotTo(HaveOccurred())
	return t
}

func agent(t *transcript.Transcript, line string) transcript.Entry {
	return t.AppendFrame(0, transcript.Agent, []byte(line), 0)
}

func editor(t *transcript.Transcript, line string) transcript.Entry {
	return t.AppendFrame(0, transcript.Editor, []byte(line), 0)
}

func note(t *transcript.Transcript, text string) transcript.Entry {
	return t.Append(transcript.Entry{Source: transcript.Note, Kind: transcript.Noted, Method: text})
}

func started(t *transcript.Transcript, conn int) transcript.Entry {
	return t.Event(conn, transcript.Process, transcript.Started, "", map[string]any{"pid": 1})
}

func exited(t *transcript.Transcript, conn, code int) transcript.Entry {
	return t.Event(conn, transcript.Process, transcript.Exited, "", map[string]any{"code": code})
}

func saved(t *transcript.Transcript) []byte {
	GinkgoHelper()
	var b bytes.Buffer
	Expect(t.Save(&b)).To(Succeed())
	return b.Bytes()
}

func all(t *transcript.Transcript) []transcript.Entry { return slices.Collect(t.All()) }

// update is a session/update frame as agents send them by the thousand.
func update(i int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789ab",`+
		`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"chunk %d of the answer "}}}}`,
		i)
}

// ticks is a clock that advances by step each time it is asked.
func ticks(step time.Duration) func() time.Time {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		at = at.Add(step)
		return at
	}
}
