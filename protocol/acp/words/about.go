package words

import (
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// stories links the entries of a run that belong together: the chunks of one message, and the updates and permission
// requests about one tool call. The agent chooses how to cut a message into chunks, and in which update to report a
// part of a tool call. A permission request may name only the id of the call.
type stories struct {
	mu     sync.Mutex
	before map[int]transcript.Entry // by Seq, the earlier entry that the entry continues
	last   map[string]transcript.Entry
}

// newStories returns the two functions of scenarios.Protocol.Stories, which share one stories.
func newStories() (observe func(transcript.Entry), told func(transcript.Entry, string) (string, bool)) {
	s := &stories{before: map[int]transcript.Entry{}, last: map[string]transcript.Entry{}}
	return s.observe, s.told
}

// observe records a new entry of the transcript. It must not call the transcript.
func (s *stories) observe(e transcript.Entry) {
	if e.Source != transcript.Agent && e.Source != transcript.Editor {
		return
	}
	u := acpframe.Update(e)
	message := "message " + e.Session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch call := callOf(e); {
	case call.Exists():
		s.link(e, "call "+e.Session+" "+call.Get("toolCallId").Str(), true)
		delete(s.last, message)
	case e.Source == transcript.Agent && strings.HasSuffix(u, "_chunk"):
		before := s.last[message]
		s.link(e, message, acpframe.Update(before) == u && messageID(before) == messageID(e))
	case u == "" && (strings.HasPrefix(e.Method, "session/") || e.Session == ""):
		// A message ends at the beginning or end of a turn or load.
		delete(s.last, message)
	}
}

// link makes e the last entry of its kind. If goesOn is true, it records that e continues the previous last entry.
func (s *stories) link(e transcript.Entry, kind string, goesOn bool) {
	if before, ok := s.last[kind]; ok && goesOn && before.Conn == e.Conn {
		s.before[e.Seq] = before
	}
	s.last[kind] = e
}

// mostTold is the maximum length of the text that told joins, in bytes.
const mostTold = 64 << 10

// told returns more text for an entry than the entry itself has. For the path "text" it returns the text of a message
// up to and including the chunk e. For the path "about" it returns, as JSON, all that the agent has reported about a
// tool call up to e. ok is false for other paths and entries.
func (s *stories) told(e transcript.Entry, path string) (text string, ok bool) {
	part := func(e transcript.Entry) string { return e.JSON().Path("params.update.content.text").Str() }
	switch u := acpframe.Update(e); {
	case path == "about" && callOf(e).Exists():
		part = func(e transcript.Entry) string { return string(callOf(e).Raw()) }
	case path != "text" || e.Source != transcript.Agent || u != "agent_message_chunk" && u != "agent_thought_chunk":
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, size := []string{}, 0
	for more := true; more && size < mostTold; e, more = s.before[e.Seq] {
		parts = append(parts, part(e))
		size += len(parts[len(parts)-1])
	}
	var all strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		all.WriteString(parts[i])
	}
	return all.String(), true
}

func messageID(e transcript.Entry) string { return e.JSON().Path("params.update.messageId").Str() }

// callOf returns the tool call in an update or a permission request, or a missing value for other entries.
func callOf(e transcript.Entry) wire.Value {
	if e.Source != transcript.Agent {
		return wire.Value{}
	}
	if u := acpframe.Update(e); u == "tool_call" || u == "tool_call_update" {
		return e.JSON().Path("params.update")
	}
	if e.Method == "session/request_permission" && e.Kind == transcript.Request {
		if call := e.JSON().Path("params.subject.toolCall"); call.Exists() { // of version 2
			return call
		}
		return e.JSON().Path("params.toolCall")
	}
	return wire.Value{}
}
