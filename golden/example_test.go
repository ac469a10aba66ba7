package golden_test

import (
	"fmt"
	"os"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/transcript"
)

// A golden is the text of a transcript, in a file that a reviewer has read.
func Example() {
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.AppendFrame(0, transcript.Editor, []byte(`{"jsonrpc":"2.0","id":1,"method":"session/prompt",`+
		`"params":{"sessionId":"s","prompt":[{"type":"text","text":"Hi"}]}}`), 0)
	log.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"refusal"}}`), 0)
	got := canonical.V1().Render(log.All(), golden.Options{})

	dir, err := os.MkdirTemp("", "goldens-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := golden.Store{Dir: dir}
	if err := store.Write("my-agent", "greet", got); err != nil {
		fmt.Println(err)
	}
	want, _, err := store.Read("my-agent", "greet")
	fmt.Print(want)
	fmt.Println("differs:", golden.Diff(want, got) != "", err)
	// Output:
	// --> session/prompt sess#1 "Hi"
	// <-- refusal
	// differs: false <nil>
}
