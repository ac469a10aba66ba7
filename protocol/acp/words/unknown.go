package words

import (
	"context"
	"fmt"
	"regexp"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

var longRun = regexp.MustCompile(`[0-9A-Za-z]{8,}[^0-9A-Za-z]*$`)

// unlike returns an id that looks like id but that no session has. It changes the first character of the last run of
// letters and digits, if that run has at least eight. Otherwise it appends zeros, because agents may number their
// sessions.
func unlike(id string) string {
	at := longRun.FindStringIndex(id)
	if at == nil {
		return id + "00000"
	}
	first := id[at[0]]
	switch {
	case first >= '0' && first < '9', first >= 'a' && first < 'f', first >= 'A' && first < 'F':
		first++
	case first == '9':
		first = '1'
	case first >= 'a':
		first = 'a'
	default:
		first = 'A'
	}
	return id[:at[0]] + string(first) + id[at[0]+1:]
}

// untaken returns a Skipped error if a version 2 agent does not support the transport of one of the MCP servers.
// Version 1 agents always support stdio.
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

// unknownSession is the error code for a session that does not exist.
const unknownSession = -32002

// unkept returns a Skipped error if a version 2 agent keeps no sessions after its process has ended, which the
// protocol allows. The agent then does not know a session of an earlier process, and session/list does not show that
// session.
func (a *sessionAct) unkept(ctx context.Context, b *scenarios.Branch, s *scenarios.Session, e transcript.Entry) error {
	code, _ := e.JSON().Path("error.code").Int()
	if of(b).version != v2 || code != unknownSession || !spokenBefore(b, e.Conn, s.ID) {
		return nil
	}
	list, err := call(ctx, b, scenarios.Implied("session list"), nil, "session/list", map[string]any{}, true)
	if err != nil {
		return nil // the agent is judged by its answer to the load or resume
	}
	result := list.JSON().Get("result")
	if result.Get("nextCursor").Str() != "" || result.Get("sessions").Find("sessionId", s.ID).Exists() {
		return nil
	}
	return &scenarios.Skipped{Reason: "the agent keeps no sessions after its process has ended"}
}

// spokenBefore reports whether the agent sent messages about a session in an earlier process.
func spokenBefore(b *scenarios.Branch, conn int, id string) bool {
	return lists.Any(b.Transcript().All(), func(e transcript.Entry) bool {
		return e.Conn < conn && e.Source == transcript.Agent && e.Session == id
	})
}
