package schema_test

import (
	"fmt"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/wire"
)

func ExampleVersion_Check() {
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","modeId":"ask"}}}`)
	var d wire.Doc
	schema.V1().Check(schema.ToEditor, wire.ClassifyLine(&d, line), "", func(p schema.Problem) {
		fmt.Printf("%v (%s) %v\n", p.Severity, p.Type, p)
	})
	// Output:
	// unknown (CurrentModeUpdate) params.update.modeId: unknown key ("currentModeId" is meant?)
	// fatal (CurrentModeUpdate) params.update.currentModeId: is missing
}
