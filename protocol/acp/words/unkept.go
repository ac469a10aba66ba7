package words

import (
	"context"
	"fmt"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// untaken says which MCP server an agent of version 2 need not take: one over a transport
// that it does not advertise. In version 1 all agents take those over stdio.
func untaken(b *scenarios.Branch, servers []any) error {
	c := of(b)
	if c.version != v2 {
		return nil
	}
	for _, s := range servers {
		kind, _ := s.(map[string]any)["type"].(string)
		if has, known := c.Advertises("mcpCapabilities." + kind); known && !has {
			return &scenarios.Skipped{Reason: fmt.Sprintf("the agent does not advertise session.mcp.%s", kind)}
		}
	}
	return nil
}

// unknownSession is the error of a session that is not there.
const unknownSession = -32002

// unkept says that an agent of version 2 keeps no sessions beyond its process, which none
// has to: the answer to an act is that the session, of a process before, is not there, and
// the list of sessions does not have it either.
func (a *sessionAct) unkept(ctx context.Context, b *scenarios.Branch, s *scenarios.Session, e transcript.Entry) error {
	code, _ := e.JSON().Path("error.code").Int()
	if of(b).version != v2 || code != unknownSession || !spokenBefore(b, e.Conn, s.ID) {
		return nil
	}
	list, err := call(ctx, b, scenarios.Implied("session list"), nil, "session/list", map[string]any{}, true)
	if err != nil {
		return nil // the agent is judged by its answer to the act
	}
	result := list.JSON().Get("result")
	if result.Get("nextCursor").Str() != "" {
		return nil
	}
	for one := range result.Get("sessions").Items() {
		if one.Get("sessionId").Is(s.ID) {
			return nil
		}
	}
	return &scenarios.Skipped{Reason: "the agent keeps no session beyond its process"}
}

// spokenBefore reports whether the agent spoke of a session in a process before this one.
func spokenBefore(b *scenarios.Branch, conn int, id string) bool {
	return lists.Any(b.Transcript().All(), func(e transcript.Entry) bool {
		return e.Conn < conn && e.Source == transcript.Agent && e.Session == id
	})
}
