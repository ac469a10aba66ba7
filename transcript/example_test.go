package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// A turn must end with cancelled, and nothing may come after its end.
func Example() {
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	update := transcript.First("an update", func(e transcript.Entry) bool { return e.Method == "session/update" })
	end := transcript.First("the turn's end with cancelled", func(e transcript.Entry) bool {
		return e.Kind == transcript.Response && e.JSON().Path("result.stopReason").Is("cancelled")
	})

	for _, line := range []string{
		`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`,
	} {
		t.AppendFrame(0, transcript.Agent, []byte(line), 0)
	}

	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errors.New("the step's second is over"))
	defer cancel()
	fmt.Println(t.Await(ctx, 0, end).Verdict)
	o := t.Judge(0, -1, transcript.Not(update.After(end)))
	fmt.Printf("%v: %s\n", o.Verdict, o.Reason)
	// Output:
	// met
	// unmeetable: it happened at #2
}
