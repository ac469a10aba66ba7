// Package agui is AG-UI, the protocol between agents and web front ends, as a value that
// the engine speaks.
package agui

import (
	"embed"
	"io/fs"
	"sync"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/canonical"
	"github.com/acp-test/acp-test/protocol/agui/invariants"
	"github.com/acp-test/acp-test/protocol/agui/words"
	"github.com/acp-test/acp-test/scenarios"
)

//go:embed suites/*/*.txtar
var suites embed.FS

// Name is what users call the protocol.
const Name = "ag-ui"

// V1 returns AG-UI, of versions 0.x to 1.1: a stream says which it is.
func V1() *scenarios.Protocol { return v1() }

var v1 = sync.OnceValue(func() *scenarios.Protocol {
	files, err := fs.Sub(suites, "suites")
	if err != nil {
		panic(err) // the name is valid
	}
	p := &scenarios.Protocol{Dialect: scenarios.Dialect{Name: Name, Suites: files, SuitesAt: "protocol/agui/suites"},
		Version: Name, Classifier: aguiframe.Classifier{}, Rules: invariants.V1(),
		Canonical: canonical.V1(), ClientRemembers: true}
	words.Add(p)
	return scenarios.Complete(p)
})
