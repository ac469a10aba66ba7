package prompt

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// callBook has what updates and permission requests have said about the tool calls of all sessions. One message may
// give only the id of a call.
type callBook struct {
	mu    sync.Mutex
	known map[[2]string]*toolCall // by session and id
}

// observe records a new entry of the transcript, under the transcript's lock.
func (b *callBook) observe(e transcript.Entry) {
	var said wire.Value
	switch {
	case e.Source == transcript.Agent && e.Kind == transcript.Notification && e.Method == "session/update":
		said = e.JSON().Path("params.update")
		if kind := said.Get("sessionUpdate"); !kind.Is("tool_call") && !kind.Is("tool_call_update") {
			return
		}
	case e.Source == transcript.Agent && e.Kind == transcript.Request && e.Method == "session/request_permission":
		said = e.JSON().Path("params.toolCall")
	default:
		return
	}
	key := [2]string{e.Session, said.Get("toolCallId").Str()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[key] == nil {
		b.known[key] = &toolCall{id: key[1], kind: "other", status: "pending"} // the schema's defaults
	}
	b.known[key].learn(said)
}

// get returns a copy of the data about a tool call. An unknown call has the kind "other".
func (b *callBook) get(session, id string) toolCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.known[[2]string{session, id}]
	if known == nil {
		return toolCall{id: id, kind: "other"}
	}
	c := *known
	c.paths, c.diffs = slices.Clone(c.paths), slices.Clone(c.diffs)
	return c
}

// pathKeys are the members of rawInput in which known agents name a file.
var pathKeys = []string{"path", "file_path", "filePath", "filepath", "abs_path", "absolute_path", "notebook_path", "to"}

// toolCall is the data about one tool call so far. paths has all paths named in messages about the call. diffs and
// words are from the latest content.
type toolCall struct {
	id, title, kind, status string
	words                   string
	paths                   []string
	diffs                   []mockclient.FileDiff
}

// line returns a tool call as one line, with the reason if the call failed. If status is "", the latest status is
// shown.
func (c toolCall) line(status string) string {
	status = cmp.Or(status, c.status)
	line := fmt.Sprintf("%s (%s, %s)", OneLine(cmp.Or(c.title, c.id)), OneLine(c.kind), OneLine(status))
	if status == "failed" && c.words != "" {
		line += ": " + OneLine(c.words)
	}
	return line
}

// learn stores the members of a tool_call, a tool_call_update or a permission request.
func (c *toolCall) learn(v wire.Value) {
	set := func(to *string, key string) {
		if v := v.Get(key); v.Kind() == wire.String {
			*to = v.Str()
		}
	}
	set(&c.title, "title")
	set(&c.kind, "kind")
	set(&c.status, "status")
	add := func(v wire.Value) {
		if v.Kind() == wire.String && !slices.Contains(c.paths, v.Str()) {
			c.paths = append(c.paths, v.Str())
		}
	}
	for l := range v.Get("locations").Items() {
		add(l.Get("path"))
	}
	if v.Get("content").Exists() {
		c.diffs, c.words = nil, ""
	}
	set(&c.words, "rawOutput") // replaced below by content, which is preferred
	for x := range v.Get("content").Items() {
		if text := x.Path("content.text").Str(); text != "" && v.Get("status").Exists() {
			c.words = text
		}
		if x.Get("type").Is("diff") {
			c.diffs = append(c.diffs, mockclient.FileDiff{Path: x.Get("path").Str(), OldText: x.Get("oldText").Str(),
				NewText: x.Get("newText").Str()})
			add(x.Get("path"))
		}
	}
	for _, key := range pathKeys {
		add(v.Get("rawInput").Get(key))
	}
}
