package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// amended is a writer that adds members to the agent's messages for which the SDK has no fields.
type amended struct {
	w io.Writer
}

// amends reports whether the agent adds something to messages.
func amends() bool {
	return fault("terminal-login-names-program") || fault("read-withdrawn-by-text-of-its-id") ||
		fault("code-of-model-error-is-its-type") || deletes() || confirms()
}

// Write adds these members to a message and writes it.
func (o *amended) Write(line []byte) (int, error) {
	var m map[string]any
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	if in.Decode(&m) != nil {
		return o.w.Write(line)
	}
	params, _ := m["params"].(map[string]any)
	result, _ := m["result"].(map[string]any)
	failure, _ := m["error"].(map[string]any)
	switch {
	case result["agentCapabilities"] != nil:
		amendHello(result)
	case m["method"] == "$/cancel_request" && fault("read-withdrawn-by-text-of-its-id"):
		if id, is := params["requestId"].(json.Number); is {
			params["requestId"] = id.String() // as in the table of open requests
		}
	case m["method"] == acp.ClientMethodElicitationCreate:
		meta, _ := params["_meta"].(map[string]any)
		params["sessionId"] = meta[sessionTag]
		delete(params, "_meta")
	case failure != nil && fault("code-of-model-error-is-its-type"):
		amendFailure(failure)
	default:
		return o.w.Write(line)
	}
	out, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	if _, err = o.w.Write(append(out, '\n')); err != nil {
		return 0, err
	}
	return len(line), nil
}

// amendHello completes the answer to initialize.
func amendHello(result map[string]any) {
	able, _ := result["agentCapabilities"].(map[string]any)
	sessions, _ := able["sessionCapabilities"].(map[string]any)
	if sessions != nil && deletes() {
		sessions["delete"] = map[string]any{}
	}
	program, err := os.Executable()
	methods, _ := result["authMethods"].([]any)
	for _, m := range methods {
		if login, is := m.(map[string]any); is && err == nil && fault("terminal-login-names-program") {
			login["command"] = program // the editor may have started a wrapper
		}
	}
}

// amendFailure gives an error that the model's server answered with the code of that server.
func amendFailure(failure map[string]any) {
	data, _ := failure["data"].(map[string]any)
	detail, _ := data["detail"].(string)
	var body struct {
		Error struct{ Type string }
	}
	if json.Unmarshal([]byte(detail), &body) == nil && body.Error.Type != "" {
		failure["code"] = body.Error.Type
	}
}

// deletes reports whether the client can delete sessions.
func deletes() bool { return fault("session-deleted-in-turn-comes-back") }

// remove deletes a session, and stops its turn. The caller holds the lock.
func (g *gofer) remove(sid string) {
	s := g.sessions[sid]
	if s == nil {
		return
	}
	delete(g.sessions, sid)
	s.closed = true
	if s.stop != nil {
		s.stop()
	}
	go s.disconnect()
}

// put keeps the state of a session in which a turn has ended. The caller holds the lock.
func (g *gofer) put(s *session) {
	if deletes() {
		g.sessions[s.id] = s
	}
}

const sessionTag = "gofer/session"

// confirms reports whether the agent asks before it forgets a conversation.
func confirms() bool {
	return fault("form-with-unknown-action-taken-as-accepted") || fault("reset-fails-where-editor-has-no-forms")
}

// confirmed asks the user in a form whether the conversation is to be forgotten.
func (t *turn) confirmed() (bool, error) {
	if !confirms() {
		return true, nil
	}
	if !t.g.forms {
		if fault("reset-fails-where-editor-has-no-forms") {
			return false, broken("The editor has no forms", "elicitation.form")
		}
		return true, nil
	}
	res, err := t.g.conn.UnstableCreateElicitation(t.ctx, acp.UnstableCreateElicitationRequest{
		Form: &acp.UnstableCreateElicitationForm{
			Meta: map[string]any{sessionTag: t.s.id}, Mode: "form", Message: "Forget the conversation so far?",
			RequestedSchema: acp.UnstableElicitationSchema{Type: "object", Properties: map[string]any{
				"answers": map[string]any{"type": "boolean", "title": "Forget my answers about commands as well"}}}}})
	if err != nil || res.Accept == nil {
		return false, nil
	}
	if res.Accept.Action != "accept" && !fault("form-with-unknown-action-taken-as-accepted") {
		return false, nil
	}
	if all, _ := res.Accept.Content["answers"].(bool); all {
		t.s.answers = map[string]bool{}
	}
	return true, nil
}

// recording keeps a recording of the user in a file, and tells the model of it.
func recording(a *acp.ContentBlockAudio) ([]block, error) {
	if a.MimeType != "audio/wav" && a.MimeType != "audio/x-wav" {
		return nil, acp.NewInvalidParams("a recording of a kind that this agent does not take: " + a.MimeType)
	}
	f, err := os.CreateTemp("", "gofer-*.wav.base64")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err = f.WriteString(a.Data); err != nil {
		return nil, err
	}
	return text("The user has recorded something. It is in " + f.Name() + "."), nil
}

// span returns the first line of the selection that a link leads to, and how many lines it has.
func span(fragment string) (line, limit *int) {
	var from, to int
	for _, form := range []string{"L%d-L%d", "L%d-%d", "L%d:%d"} {
		if n, _ := fmt.Sscanf(fragment, form, &from, &to); n == 2 && from > 0 && to > 0 {
			return acp.Ptr(from), acp.Ptr(to - from + 1)
		}
	}
	if from > 0 {
		return acp.Ptr(from), acp.Ptr(1)
	}
	return nil, nil
}

// unread returns the text that the model gets for a link whose file the editor could not read.
func unread(uri string, err error) []block {
	var why any
	if fault("read-error-without-data-ends-agent") {
		why = err.(*acp.RequestError).Data.(map[string]any)["details"]
	}
	if why == nil {
		why = err.Error()
	}
	return text(fmt.Sprintf("%s could not be read: %v", uri, why))
}

// look tells on the error output how far a command is that takes long. What it returns ends the wait for that.
func (t *turn) look(sid acp.SessionId, term string) func() bool {
	if !fault("look-at-slow-terminal-outlives-release") {
		return func() bool { return true }
	}
	return time.AfterFunc(time.Second, func() {
		for {
			res, err := t.g.conn.TerminalOutput(context.Background(),
				acp.TerminalOutputRequest{SessionId: sid, TerminalId: term})
			if err != nil || res.ExitStatus != nil {
				return
			}
			fmt.Fprintf(os.Stderr, "gofer: %s has written %d bytes\n", term, len(res.Output))
			time.Sleep(500 * time.Millisecond)
		}
	}).Stop
}

// later tells a little later that a call has failed which had not begun when the turn was cancelled.
func (t *turn) later(c *call, out string) bool {
	if !fault("waiting-calls-of-cancelled-turn-end-late") {
		return false
	}
	time.AfterFunc(200*time.Millisecond, func() { t.fails(c, out) }) // the running one comes first
	return true
}

// relative shows folders as the filter of the list sees them.
func relative(list []acp.SessionInfo, filter *string) {
	for i := range list {
		if filter == nil || !fault("filtered-list-has-relative-folders") {
			return
		}
		if way, err := filepath.Rel(filepath.Clean(*filter), list[i].Cwd); err == nil {
			list[i].Cwd = way
		}
	}
}

// gauges reports whether the agent tells how full the context is.
func gauges() bool {
	return fault("usage-after-reset-has-null") || fault("window-of-chosen-model-told-as-zero")
}

// gauge tells how full the context is.
func (t *turn) gauge() {
	var u struct {
		Kind string `json:"sessionUpdate"`
		Used *int   `json:"used"`
		Size int    `json:"size"`
	}
	u.Kind, u.Size = "usage_update", 200000
	if t.s.used > 0 || !fault("usage-after-reset-has-null") {
		u.Used = acp.Ptr(t.s.used)
	}
	if fault("window-of-chosen-model-told-as-zero") {
		u.Size = map[string]int{models()[0]: 200000}[t.model()]
	}
	raw(t.s.id, u)
}

// emptied tells that nothing is in the context any more.
func (t *turn) emptied() {
	if gauges() {
		t.s.used = 0
		t.gauge()
	}
}

// pathOfOutput is where the whole of a long output is kept, if the editor writes files.
func (t *turn) pathOfOutput(name string) string {
	switch {
	case t.g.writes && fault("long-output-kept-under-relative-path"):
		return filepath.Join(".gofer", name)
	case t.g.files && fault("output-kept-by-editor-that-only-reads"):
		return filepath.Join(t.s.cwd, ".gofer", name)
	}
	return ""
}
