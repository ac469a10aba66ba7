package schema_test

import (
	"fmt"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/wire"
)

func ExampleVersion_Check() {
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
		`"update":{"sessionUpdate":"current_mode_update","modeId":"ask"}}}`)
	var d wire.Doc
	schema.V1().Check(schema.ToEditor, wire.ClassifyLine(&d, line), "", func(p schema.Problem) {
		fmt.Printf("%v (%s) %v\n", p.Severity, p.Type, p)
	})
	// Output:
	// unknown (CurrentModeUpdate) params.update.modeId: unknown key ("currentModeId" is meant?)
	// fatal (CurrentModeUpdate) params.update.currentModeId: is missing
}

func ExampleVersion_WithNulls() {
	v := schema.V1()
	fmt.Printf("%s\n", v.WithNulls("session/prompt", false,
		[]byte(`{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}`)))
	fmt.Printf("%s\n", v.WithNulls("session/new", false,
		[]byte(`{"cwd":"/","mcpServers":[{"name":"","command":"","args":[],"env":[]}]}`)))
	fmt.Printf("%s\n", v.WithNulls("session/request_permission", true, []byte(`{"outcome":{"outcome":"cancelled"}}`)))
	fmt.Printf("%s\n", v.WithNulls("_own/method", false, []byte(`{"a":1}`)))
	// Output:
	// {"sessionId":"s","prompt":[{"type":"text","text":"hi","annotations":null,"_meta":null}],"_meta":null}
	// {"cwd":"/","mcpServers":[{"name":"","command":"","args":[],"env":[],"_meta":null}],"systemPrompt":null,"_meta":null}
	// {"outcome":{"outcome":"cancelled"},"_meta":null}
	// {"a":1}
}
