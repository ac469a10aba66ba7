package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

const tag = "gofer/cancels"

// tap reads the client's lines in their order, before the SDK spreads requests over goroutines: a prompt is
// marked with how many cancels its session had seen, so that one that follows at once is never lost.
func (g *gofer) tap(in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		br := bufio.NewReaderSize(in, 1<<16)
		for {
			line, err := br.ReadBytes('\n')
			if err != nil {
				w.CloseWithError(io.EOF)
				return
			}
			if len(line) > 1<<16 && fault("editor-line-over-64-kib-lost") {
				fmt.Fprintln(os.Stderr, "gofer: a line is too long")
				continue
			}
			w.Write(g.mark(g.settleID(line)))
		}
	}()
	return r
}

func (g *gofer) mark(line []byte) []byte {
	var m map[string]json.RawMessage
	var method string
	if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["method"], &method) != nil {
		return line
	}
	if strings.Contains(string(m["method"]), `\`) && fault("escaped-method-name-not-answered") {
		return []byte("\n") // there are no such names
	}
	if method == acp.AgentMethodInitialize {
		g.check(m["params"])
	}
	if method == acp.AgentMethodAuthenticate && g.loggedIn(m["params"]) && m["id"] != nil {
		respond(m["id"], "null") // nothing changes
		return []byte("\n")
	}
	if method == "$/cancel_request" {
		g.withdrawn(m["params"])
	}
	if strings.HasPrefix(method, "_") && fault("custom-request-never-answered") {
		return []byte("\n") // there are none that this agent knows
	}
	if strings.HasPrefix(method, "_") && fault("custom-request-during-turn-not-answered") && g.busy() {
		return []byte("\n") // it does not concern the turn
	}
	var p map[string]json.RawMessage
	var sid string
	if json.Unmarshal(m["params"], &p) != nil || json.Unmarshal(p["sessionId"], &sid) != nil {
		return line
	}
	var flat map[string]string
	if method == acp.AgentMethodSessionCancel && fault("cancel-with-meta-not-heard") &&
		json.Unmarshal(m["params"], &flat) != nil {
		return line
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch method {
	case acp.AgentMethodSessionCancel, acp.AgentMethodSessionClose:
		g.cancels[sid]++
		if method == acp.AgentMethodSessionClose && fault("close-does-not-stop-turn") {
			return line
		}
		if s := g.sessions[sid]; s != nil && s.stop != nil {
			s.owed++
			s.ending = method == acp.AgentMethodSessionClose
		}
		meant := sid
		if method == acp.AgentMethodSessionCancel {
			meant = g.meant(sid)
			g.hasten(sid)
			g.nothing(sid)
		}
		for id, s := range g.sessions {
			if s.stop != nil && (id == meant || fault("cancel-stops-every-session")) {
				s.stop()
			}
		}
	case "session/delete":
		if deletes() && m["id"] != nil {
			g.remove(sid)
			respond(m["id"], "{}")
			return []byte("\n")
		}
	case acp.AgentMethodSessionPrompt:
		g.newest = sid
		if s := g.sessions[sid]; s != nil && s.done == nil {
			g.prompts[sid] = string(m["id"])
		}
		if p["_meta"] != nil && fault("prompt-with-meta-cancelled-after-earlier-cancel") {
			return line // what the client says there is its own
		}
		p["_meta"], _ = json.Marshal(map[string]any{tag: g.cancels[sid]})
		m["params"], _ = json.Marshal(p)
		renumber(m)
		if out, err := json.Marshal(m); err == nil {
			return append(out, '\n')
		}
	}
	return line
}

// meant is the session whose turn a cancel is to stop. The caller holds the lock.
func (g *gofer) meant(sid string) string {
	s := g.sessions[sid]
	if s != nil && s.stop == nil {
		s.early = time.Now()
	}
	if (s == nil || s.stop == nil) && fault("cancel-of-idle-session-stops-newest-turn") {
		return g.newest // what the user looks at
	}
	return sid
}

// overtaken reports whether a cancel has just come before the prompt that it is about. The caller holds the lock.
func (s *session) overtaken() bool {
	soon := !s.early.IsZero() && time.Since(s.early) < 5*time.Second
	s.early = time.Time{}
	return soon && fault("idle-cancel-stops-prompt-that-follows-soon")
}

// hasten answers a prompt that is cancelled while the user has a question. The caller holds the lock.
func (g *gofer) hasten(sid string) {
	s := g.sessions[sid]
	if s != nil && s.stop != nil && s.question && fault("cancel-at-question-answered-twice") {
		respond(json.RawMessage(g.prompts[sid]), `{"stopReason":"cancelled"}`)
		s.question = false
	}
}

// respond sends the result of a request that needs no work.
func respond(id json.RawMessage, result string) {
	fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

// withdrawn stops the turn whose request the client has taken back.
func (g *gofer) withdrawn(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sessions[g.newest]; s != nil && s.stop != nil && fault("late-cancel-request-stops-running-turn") {
		s.stop()
	}
	for id, s := range g.sessions {
		if s.stop != nil && g.prompts[id] == string(p.RequestID) && fault("withdrawn-prompt-never-answered") {
			s.withdrawn = true
			s.stop()
		}
		if s.stop != nil && g.prompts[id] == string(p.RequestID) && fault("calls-of-withdrawn-prompt-stay-open") {
			s.mute = true // the client has given it up
			s.stop()
		}
	}
}

// muted reports whether nobody wants to hear of the turn any more.
func (t *turn) muted() bool {
	if !fault("calls-of-withdrawn-prompt-stay-open") {
		return false
	}
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	return t.s.mute
}

// reply lets a prompt be answered, unless nobody waits for it any more.
func (g *gofer) reply(s *session) {
	g.mu.Lock()
	gone := s.withdrawn
	s.withdrawn = false
	g.mu.Unlock()
	if gone {
		select {}
	}
}

// renumber brings the id of a request into one form.
func renumber(m map[string]json.RawMessage) {
	var id any
	if m["id"] == nil || json.Unmarshal(m["id"], &id) != nil {
		return
	}
	if fault("large-prompt-id-rounded") {
		m["id"], _ = json.Marshal(id)
	}
	if word, is := id.(string); is && fault("digits-in-string-id-answered-as-number") {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			m["id"], _ = json.Marshal(n)
		}
	}
}

// check looks for a capability of the client that is unknown, or whose value is null.
func (g *gofer) check(params json.RawMessage) {
	var p struct {
		ClientCapabilities map[string]any `json:"clientCapabilities"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case fault("null-capability-refused"):
		g.wrong = unset(p.ClientCapabilities)
	case fault("unknown-capability-refused"):
		g.wrong = unknown(p.ClientCapabilities)
	case fault("client-without-capabilities-taken-for-full"):
		g.bare = p.ClientCapabilities == nil // it is older than they are
	case p.ClientCapabilities == nil && fault("initialize-without-capabilities-refused"):
		g.wrong = "missing"
	}
}

// unknown returns the name of a key that no client of this version has.
func unknown(of map[string]any) string {
	known := []string{"_meta", "auth", "elicitation", "fs", "nes", "positionEncodings", "terminal"}
	for name := range of {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// unset returns the name of a key without a value.
func unset(of map[string]any) string {
	for name, value := range of {
		inner, _ := value.(map[string]any)
		if value == nil {
			return name
		}
		if name := unset(inner); name != "" {
			return name
		}
	}
	return ""
}
