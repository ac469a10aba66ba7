// Package acp gives the engine its description of the Agent Client Protocol.
package acp

import (
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/acp/words"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns ACP version 1.
func V1() *scenarios.Protocol { return v1() }

var v1 = sync.OnceValue(func() *scenarios.Protocol {
	p := &scenarios.Protocol{Dialect: scenarios.Dialect{Name: language.Default}, Version: "1",
		Classifier: acpframe.Classifier{},
		Rules:      invariants.V1(),
		Canonical:  canonical.V1(),
		Offers:     offers}
	words.Add(p)
	return scenarios.Complete(p)
})

// V2 returns ACP version 2, as of the preview of its specification.
func V2() *scenarios.Protocol { return v2() }

var v2 = sync.OnceValue(func() *scenarios.Protocol {
	p := &scenarios.Protocol{Dialect: scenarios.Dialect{Name: NameV2}, Version: "2", Classifier: acpframe.V2{},
		Rules:     invariants.V2(),
		Canonical: canonical.V2()}
	words.AddV2(p)
	return scenarios.Complete(p)
})

// NameV2 is the name of version 2 in scenarios and options.
const NameV2 = "acp-v2"

// offers returns the name of version 2 if the editor asked for version 2 or later and the agent chose version 2. If
// the editor asked for an earlier version, that choice is wrong, and the result is "".
func offers(t *transcript.Transcript) string {
	asked := map[int]int64{} // by Seq of the request
	for e := range t.All() {
		switch {
		case strings.HasPrefix(e.Method, "session/"):
			return "" // the version was negotiated before
		case e.Method != "initialize":
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			asked[e.Seq], _ = e.JSON().Path("params.protocolVersion").Int()
		case e.Source == transcript.Agent && e.Kind == transcript.Response && asked[e.Ref] >= 2:
			if n, ok := e.JSON().Path("result.protocolVersion").Int(); ok && n == 2 {
				return NameV2
			}
		}
	}
	return ""
}
