// Package acp is the Agent Client Protocol as a value that the engine speaks.
package acp

import (
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/acp/invariants/second"
	"github.com/acp-test/acp-test/protocol/acp/words"
	"github.com/acp-test/acp-test/scenarios"
)

// V1 returns ACP version 1.
func V1() *scenarios.Protocol { return v1() }

var v1 = sync.OnceValue(func() *scenarios.Protocol {
	p := &scenarios.Protocol{Name: scenarios.FirstProtocol, Version: "1", Classifier: acpframe.Classifier{},
		Rules:     invariants.V1(),
		Canonical: canonical.V1()}
	words.Add(p)
	return p
})

// V2 returns ACP version 2, as of its Preview.
func V2() *scenarios.Protocol { return v2() }

var v2 = sync.OnceValue(func() *scenarios.Protocol {
	p := &scenarios.Protocol{Name: Second, Version: "2", Classifier: acpframe.Second{},
		Rules:     second.Rules(),
		Canonical: canonical.V2()}
	words.AddSecond(p)
	return p
})

// Second is what users call version 2.
const Second = "acp-v2"
