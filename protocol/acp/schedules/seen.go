package schedules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// permission and newTerminal are the names that patterns use for two requests of the agent.
const permission, newTerminal = "permission", "terminal/create"

// subagent is the name that patterns use for an update about a child session.
const subagent = "subagent"

// noted has the data about a turn that only ACP needs.
type noted struct {
	choice  string // answer to the first permission request, in the form that permit lines use
	asked   int    // number of permission requests
	works   bool   // background work continued after the turn
	refused bool   // this turn, or an earlier one of the session, did not end with end_turn
	effects []sweep.Effect
	owed    map[int][]sweep.Effect // effects that depend only on the n-th permission of the turn; n counts from 1
	session string                 // id of the turn's session
	mode    string                 // mode of the session at the prompt, or ""
	option  [2]string              // id and value of one option of the session at the prompt
}

func of(s *sweep.Seen) *noted { return s.Of.(*noted) }

// follower reads one turn from the log of a run.
type follower struct {
	*sweep.Seen
	*noted
	prompt int
}

// look reads one turn from the transcript of a baseline run: the turn whose prompt has the number turn.Nth, counted
// from 0. It returns false if the transcript has no such prompt.
func look(s *sweep.Script, turn sweep.Turn, t *transcript.Transcript, effects []sweep.Effect) (*sweep.Seen, bool) {
	n := &noted{choice: "reject_once", owed: map[int][]sweep.Effect{}}
	f := follower{&sweep.Seen{Turn: turn, Able: map[string]bool{}, Of: n,
		Model: sweep.Plain(s.Spoken.Turns[turn.Nth])}, n, 0}
	if f.prompted(t); n.session == "" {
		return nil, false
	}
	n.effects = slices.DeleteFunc(slices.Clone(effects), func(e sweep.Effect) bool { return s.Changes(e.File) })
	f.owes(t)
	for e := range t.From(f.prompt + 1) {
		if f.hear(t, e) {
			return f.Seen, true
		}
	}
	f.Requests, f.Model.Replies = 0, f.Model.Replies[:1] // the turn did not end, so it is unclear how far it came
	return f.Seen, true
}

// hear records an entry of the turn, and reports whether the entry ends the turn.
func (f *follower) hear(t *transcript.Transcript, e transcript.Entry) (over bool) {
	switch {
	case e.Source == transcript.Model && e.Kind == transcript.ModelRequest && e.JSON().Get("lane").Is("main"):
		f.Requests++
	case e.Source == transcript.Editor && e.Kind == transcript.Response && e.Method == "session/request_permission" &&
		f.asked == 1:
		f.choice = choiceOf(t.At(e.Ref), e)
	case e.Source != transcript.Agent || e.Session != f.session:
	case e.Ref == f.prompt && ends(e):
		f.End = stopOf(e)
		if e.JSON().Path("params.update.background").Len() > 0 {
			f.Made, f.works = nil, true // background work may change files at any time
		}
		f.Over()
		f.Text = scenarios.Said(t, f.session, f.prompt, e.Seq, asks, wordsOf)
		return true
	case e.Kind == transcript.Notification || e.Kind == transcript.Request:
		f.shown(e)
	}
	return false
}

// prompted finds the prompt of the turn. It also records what the agent can do, and whether an earlier prompt of the
// session did not end with end_turn.
func (s *follower) prompted(t *transcript.Transcript) {
	n := s.Nth
	s.Able["stdio"] = true
	for e := range t.All() {
		switch {
		case e.Source == transcript.Network && e.Kind == transcript.Opened:
			s.Able["stdio"], s.Able["http"] = false, s.Able["http"] || e.JSON().Get("form").Is("connection")
		case acpframe.Update(e) == "replay_complete": // an agent with replay_complete also supports idempotency keys
			s.Able["keys"] = true
		case e.Source == transcript.Agent && e.Kind == transcript.Response && e.Method == "initialize":
			s.advertised(e.JSON().Get("result"))
		case asks(e):
			if n == 0 {
				s.prompt, s.session = e.Seq, e.Session
			}
			n--
		}
	}
	s.settings(t)
	for e := range t.All() {
		before := e.Ref > 0 && e.Ref <= s.prompt && e.Session == s.session
		s.refused = s.refused || before && ends(e) && stopOf(e) != "end_turn"
	}
}

// settings records the mode and one option that the session has when the prompt is sent.
func (s *follower) settings(t *transcript.Transcript) {
	for e := range t.Between(0, s.prompt) {
		v := e.JSON()
		switch {
		case e.Session != s.session || s.session == "":
		case e.Source == transcript.Agent && e.Kind == transcript.Response && v.Path("result.modes").Exists():
			s.mode = v.Path("result.modes.currentModeId").Str()
		case e.Source == transcript.Agent && acpframe.Update(e) == "current_mode_update":
			s.mode = v.Path("params.update.currentModeId").Str()
		case e.Method == "session/set_mode" || e.Method == "session/set_config_option":
			s.mode, s.option = "", [2]string{} // the answer may not say which settings apply now
			return
		}
		for o := range v.Path("result.configOptions").Items() {
			if value := o.Get("currentValue"); e.Session == s.session && value.Kind() == wire.String {
				s.option = [2]string{cmp.Or(o.Get("id").Str(), o.Get("configId").Str()), value.Str()}
				break
			}
		}
	}
}

// end returns how the turn ends if nothing disturbs it.
func end(s *sweep.Seen) string { return cmp.Or(s.End, "any|error") }

// anyEnd returns a pattern for any end. It includes an error only if the undisturbed turn may end with one.
func anyEnd(s *sweep.Seen) string {
	if s.End == "" || s.End == "error" {
		return "any|error"
	}
	return "any"
}

// advertised records the capabilities that the agent advertises.
func (s *follower) advertised(greeting wire.Value) {
	if session := greeting.Path("capabilities.session"); session.Kind() == wire.Object { // of version 2
		for _, what := range []string{"load", "resume", "close", "list"} {
			s.Able[what] = true
		}
		s.Able["delete"] = session.Get("delete").Kind() == wire.Object
		return
	}
	caps := greeting.Get("agentCapabilities")
	s.Able["load"], _ = caps.Get("loadSession").Bool()
	for _, c := range []string{"close", "resume", "delete", "list"} {
		v := caps.Path("sessionCapabilities." + c)
		s.Able[c] = v.Exists() && !v.IsNull()
	}
}

// steps has, by kind of message, the kind of model step whose text the message shows.
var steps = map[string]string{"agent_message": "text", "agent_thought": "thinking"}

// shown records a message of the turn.
func (s *follower) shown(e transcript.Entry) {
	kind := kindOf(e)
	if e.JSON().Path("params.update.capabilities.cancel").Kind() == wire.Object {
		s.Able["cancel "+kind] = true
	}
	if kind == "" {
		return
	}
	if kind == permission {
		s.asked++
	}
	// The frames that a reply causes come before the next reply begins.
	s.Follow(kind, steps[kind], textOf(e), max(s.Requests, 1))
	s.Frames[len(s.Frames)-1].Asks = e.Kind == transcript.Request
}

// kindOf returns the kind of a message by the name that patterns use. It returns "" for updates of the session's
// state, which may come at any time and create no new situation.
func kindOf(e transcript.Entry) string {
	if e.Kind == transcript.Request {
		if e.Method == "session/request_permission" {
			return permission
		}
		return e.Method
	}
	switch u := acpframe.Update(e); u {
	case "agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought":
		return strings.TrimSuffix(u, "_chunk")
	case "tool_call", "tool_call_update", "plan", "plan_update", "terminal_update":
		return u
	case "subagent_update":
		return subagent
	}
	return ""
}

// ends reports whether an entry that refers to a prompt ends the turn. In version 1 this is the answer. In version 2
// it is the idle state that completes the prompt, or an error.
func ends(e transcript.Entry) bool {
	return e.Source == transcript.Agent && (e.Kind == transcript.Notification ||
		e.Kind == transcript.Response && e.Method == "session/prompt" && !e.JSON().Path("result.messageId").Exists())
}

// stopOf returns the stop reason at the end of a turn, or "" after an error.
func stopOf(e transcript.Entry) string {
	if e.Kind == transcript.Notification {
		return e.JSON().Path("params.update.stopReason").Str()
	}
	return e.JSON().Path("result.stopReason").Str()
}

// asks reports whether an entry is a prompt.
func asks(e transcript.Entry) bool {
	return e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt"
}

// wordsOf returns the text of an entry if it is part of the agent's message.
func wordsOf(e transcript.Entry) string {
	if kindOf(e) != "agent_message" {
		return ""
	}
	return textOf(e)
}

// textOf returns the text of an update: of a chunk or of a whole message.
func textOf(e transcript.Entry) string {
	content := e.JSON().Path("params.update.content")
	text := content.Get("text").Str()
	for block := range content.Items() {
		text += block.Get("text").Str()
	}
	return text
}

// choiceOf returns the kind of the option that an answer chose, or "cancelled".
func choiceOf(asked, answer transcript.Entry) string {
	id := answer.JSON().Path("result.outcome.optionId").Str()
	if o := asked.JSON().Path("params.options").Find("optionId", id); o.Exists() {
		return o.Get("kind").Str()
	}
	return "cancelled"
}
