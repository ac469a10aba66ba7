package prompt

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// child is a subagent, which is shown below the session that delegates to it.
type child struct {
	depth int // of the session's own children: 1
	title string
	text  strings.Builder // what it has said and no line shows yet
}

// announce shows what a session tells of its child.
func (s *screen) announce(depth int, u wire.Value) {
	id := u.Get("sessionId").Str()
	c := s.children[id]
	if c == nil {
		c = &child{depth: depth + 1}
		s.children[id] = c
	}
	c.title = cmp.Or(u.Get("title").Str(), c.title, id)
	s.flush(c)
	if state := u.Get("state"); state.Get("state").Exists() {
		how := strings.TrimSpace(state.Get("state").Str() + " " + state.Get("stopReason").Str())
		s.below(c.depth, "subagent", OneLine(c.title)+": "+OneLine(how))
	}
}

// ofChild shows an update in the session of a child: whole lines of its text, and its tool calls.
func (s *screen) ofChild(session string, c *child, u wire.Value) {
	switch u.Get("sessionUpdate").Str() {
	case "agent_message_chunk":
		c.text.WriteString(u.Path("content.text").Str())
	case "subagent_update":
		s.announce(c.depth, u)
	case "tool_call", "tool_call_update":
		if status := u.Get("status").Str(); status == "completed" || status == "failed" {
			s.flush(c)
			s.below(c.depth, "tool", s.calls.get(session, u.Get("toolCallId").Str()).line(status))
		}
	}
}

// flush shows what a child has said.
func (s *screen) flush(c *child) {
	for line := range strings.Lines(c.text.String()) {
		s.below(c.depth, OneLine(c.title), OneLine(line))
	}
	c.text.Reset()
}

// below is aside for a child of some depth.
func (s *screen) below(depth int, what, line string) {
	s.indent = strings.Repeat("  ", depth)
	s.aside(what, line)
	s.indent = ""
}
