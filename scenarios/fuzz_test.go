package scenarios_test

import (
	"errors"
	"testing"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp"
)

// Whatever a scenario holds, it can be run, or each mistake in it has a message.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"# A turn.\ncheck PROMPT-003\nprompt 'Hi.'\nawait turn end_turn\n-- llm.yaml --\nreplies:\n" +
			"  - - text: Hello.\n",
		"group {\n  await turn\n}\nboth {\n prompt a\n} and {\n cancel\n}\n", "[v2] awiat turn\n",
		"exec ./x 'a b' \"$WORK\"\n", "-- ../a --\n", "{", "\x00",
		"role agent\non initialize reply {}\n", "session new 'b\nmcp canary\nneeds tool:x\npermit allow_once\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := acp.V1().Parse("suite/case", "suite/case.txtar", []byte(text))
		var m *mistake.Mistake
		switch {
		case err == nil && s == nil:
			t.Error("neither a scenario nor an error")
		case err != nil && (err.Error() == "" || errors.As(err, &m) && m.Message == ""):
			t.Errorf("%#v says nothing", err)
		}
	})
}
