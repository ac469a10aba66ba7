package invariants_test

import (
	"fmt"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// What an agent does is judged while it does it.
func Example() {
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	checker := invariants.V1().NewChecker(rules.Config{})
	log.Observe(checker.Observe)
	log.AppendFrame(0, transcript.Editor, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize",`+
		`"params":{"protocolVersion":1}}`), 0)
	log.AppendFrame(0, transcript.Agent, []byte(`Loading…`), 0)
	for _, f := range checker.Finish(rules.End{Clean: true}) {
		fmt.Println(f.Rule, f.Class, f.Entries)
	}
	// Output:
	// STDOUT-CLEAN fail [2]
}
