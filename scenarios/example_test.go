package scenarios_test

import (
	"fmt"

	"github.com/acp-test/acp-test/protocol/acp"
)

// A scenario is read in the language of a protocol. Every mistake is told at
// once, with its place.
func ExampleProtocol_Parse() {
	s, err := acp.V1().Parse("my/hello", "hello.txtar", []byte(`# An agent says hello.
check says-hello
prompt 'Say hello.'
await agent_message text~^Hello
await turn end_turn
-- llm.yaml --
replies:
  - - text: Hello.
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.ID)
	_, err = acp.V1().Parse("my/hello", "hello.txtar", []byte("promt 'Say hello.'\nawait turn end_turns\n"))
	fmt.Println(err)
	// Output:
	// my/hello
	// hello.txtar:1:1: unknown command "promt" (did you mean "prompt"?)
	// hello.txtar:2:12: "end_turns" is no stop reason (did you mean "end_turn"?)
}
