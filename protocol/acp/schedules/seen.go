package schedules

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// seen is what a baseline run showed of one turn.
type seen struct {
	session string
	frames  []frame
	choice  string // how the first permission was answered, as permit says it
	asked   int    // permissions
	text    string
	stop    string
	works   bool             // in the background, when the turn was over
	refused bool             // this turn, or one of the session before it, did not end by itself
	effects []effect         // files that the run changed
	owed    map[int][]effect // those that wait for the n-th permission of the turn alone, from 1
	made    []effect         // those that a tool call of the turn is about, and no other call
	able    map[string]bool
	// requests is how often the model was asked in the turn.
	requests int
	mode     string    // that the session is in, "" if there is none
	option   [2]string // one of its options and its value
}

type frame struct {
	kind string // as patterns name it
	hold *fakellm.Place
	held bool // nothing but the gate can come after it
	// reply is which reply of the model it came after the request for.
	reply int
}

// kinds is how many kinds of frames the agent sent.
func (s seen) kinds() int {
	kinds := map[string]bool{}
	for _, f := range s.frames {
		kinds[f.kind] = true
	}
	return len(kinds)
}

// look reads one turn out of a baseline's transcript: the n-th prompt of the
// run, from 0.
func look(t *transcript.Transcript, n int, m fakellm.TurnNode, effects []effect) seen {
	s := seen{able: map[string]bool{}, choice: "reject_once"}
	s.owed = map[int][]effect{}
	prompt := s.prompted(t, n)
	if prompt == 0 {
		return s
	}
	s.effects = effects
	s.owes(t, prompt)
	f := follower{turn: m}
	for e := range t.From(prompt + 1) {
		switch {
		case e.Source == transcript.Model && e.Kind == transcript.ModelRequest && e.JSON().Get("lane").Is("main"):
			f.requests++
		case e.Source == transcript.Model && e.Kind == transcript.ModelDone:
			f.done++
		case e.Source == transcript.Editor && e.Kind == transcript.Response && e.Method == "session/request_permission" &&
			s.asked == 1:
			s.choice = choiceOf(t.At(e.Ref), e)
		case e.Source != transcript.Agent || e.Session != s.session:
		case e.Ref == prompt && over(e):
			s.stop = stopOf(e)
			if e.JSON().Path("params.update.background").Len() > 0 {
				s.made, s.works = nil, true // what goes on changes files when it likes
			}
			s.reached(f.requests)
			s.text = scenarios.Said(t, s.session, prompt, e.Seq, asks, wordsOf)
			return s
		case e.Kind == transcript.Notification || e.Kind == transcript.Request:
			s.shown(&f, e)
		}
	}
	return s
}

// prompted finds the n-th prompt, 0 if there is none, and notes what came before it: what
// the agent is able to do, and whether it refused an earlier prompt of the session.
func (s *seen) prompted(t *transcript.Transcript, n int) (prompt int) {
	for e := range t.All() {
		switch {
		case e.Source == transcript.Agent && e.Kind == transcript.Response && e.Method == "initialize":
			s.advertised(e.JSON().Get("result"))
		case asks(e):
			if n == 0 {
				prompt, s.session = e.Seq, e.Session
			}
			n--
		}
	}
	s.settings(t, prompt)
	for e := range t.All() {
		s.refused = s.refused || e.Ref > 0 && e.Ref <= prompt && e.Session == s.session && over(e) && stopOf(e) != "end_turn"
	}
	return prompt
}

// settings notes the mode and an option of the session, as they were at the prompt.
func (s *seen) settings(t *transcript.Transcript, prompt int) {
	for e := range t.Between(0, prompt) {
		v := e.JSON()
		switch {
		case e.Session != s.session || s.session == "":
		case e.Source == transcript.Agent && e.Kind == transcript.Response && v.Path("result.modes").Exists():
			s.mode = v.Path("result.modes.currentModeId").Str()
		case e.Source == transcript.Agent && acpframe.Update(e) == "current_mode_update":
			s.mode = v.Path("params.update.currentModeId").Str()
		case e.Method == "session/set_mode" || e.Method == "session/set_config_option":
			s.mode, s.option = "", [2]string{} // what is so now, the answer may not say
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

// reached forgets the places in replies of the model that the agent did not ask for: it
// may have a limit of its own.
func (s *seen) reached(requests int) {
	s.requests = requests
	for i, f := range s.frames {
		if f.hold != nil && f.hold.Reply >= requests {
			s.frames[i].hold, s.frames[i].held = nil, false
		}
	}
}

// heard is the turn of the model as far as the agent asked for it.
func (s seen) heard(t fakellm.TurnNode) fakellm.TurnNode {
	t.Replies = t.Replies[:min(max(s.requests, 1), len(t.Replies))]
	return t
}

// end is how the turn ends when nothing is done to it.
func (s seen) end() string { return cmp.Or(s.stop, "any|error") }

// anyEnd is any end, and an error where the turn ended with one when nothing was done.
func (s seen) anyEnd() string {
	if s.stop == "" || s.stop == "error" {
		return "any|error"
	}
	return "any"
}

// advertised notes what the agent is able to do.
func (s *seen) advertised(greeting wire.Value) {
	if second := greeting.Path("capabilities.session"); second.Kind() == wire.Object {
		for _, what := range []string{"load", "resume", "close", "list"} {
			s.able[what] = true
		}
		s.able["delete"] = second.Get("delete").Kind() == wire.Object
		return
	}
	caps := greeting.Get("agentCapabilities")
	s.able["load"], _ = caps.Get("loadSession").Bool()
	for _, c := range []string{"close", "resume", "delete", "list"} {
		v := caps.Path("sessionCapabilities." + c)
		s.able[c] = v.Exists() && !v.IsNull()
	}
}

// shown notes a frame of the turn.
func (s *seen) shown(f *follower, e transcript.Entry) {
	kind := kindOf(e)
	u := e.JSON().Path("params.update")
	if u.Path("capabilities.cancel").Kind() == wire.Object {
		s.able["cancel "+kind] = true
	}
	switch kind {
	case "":
		return
	case "permission":
		s.asked++
	}
	hold, held := f.after(kind, e)
	s.frames = append(s.frames, frame{kind, hold, held, max(f.requests-1, 0)})
}

// kindOf is the kind of a frame as patterns name it; "" for state, which may
// come at any time and makes no situation of its own.
func kindOf(e transcript.Entry) string {
	if e.Kind == transcript.Request {
		if e.Method == "session/request_permission" {
			return "permission"
		}
		return e.Method
	}
	switch u := acpframe.Update(e); u {
	case "agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought":
		return strings.TrimSuffix(u, "_chunk")
	case "tool_call", "tool_call_update", "plan", "plan_update", "terminal_update":
		return u
	}
	return ""
}

// over reports whether an entry with a Ref ends the turn of a prompt: its answer, and in
// version 2, where that comes when it is part of the conversation, the state that completes it.
func over(e transcript.Entry) bool {
	return e.Source == transcript.Agent && (e.Kind == transcript.Notification ||
		e.Kind == transcript.Response && e.Method == "session/prompt" && !e.JSON().Path("result.messageId").Exists())
}

// stopOf is the stop reason of the end of a turn, "" if it ended with an error.
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

// wordsOf are the words of an entry that are part of the agent's answer.
func wordsOf(e transcript.Entry) string {
	if kindOf(e) != "agent_message" {
		return ""
	}
	return textOf(e)
}

// textOf is the text of an update: of a piece of a message, or of one that is told as a whole.
func textOf(e transcript.Entry) string {
	content := e.JSON().Path("params.update.content")
	text := content.Get("text").Str()
	for block := range content.Items() {
		text += block.Get("text").Str()
	}
	return text
}

// choiceOf is the kind of option an answer chose.
func choiceOf(asked, answer transcript.Entry) string {
	id := answer.JSON().Path("result.outcome.optionId").Str()
	for o := range asked.JSON().Path("params.options").Items() {
		if o.Get("optionId").Str() == id {
			return o.Get("kind").Str()
		}
	}
	return "cancelled"
}

// follower finds for each frame the earliest place of the model at which it
// must have come.
type follower struct {
	turn           fakellm.TurnNode
	requests, done int
	text, thought  int // bytes shown
}

func (f *follower) after(kind string, e transcript.Entry) (*fakellm.Place, bool) {
	reply := max(f.requests-1, 0)
	field, shown := "", 0
	switch kind {
	case "agent_message":
		f.text += len(textOf(e))
		field, shown = "text", f.text
	case "agent_thought":
		f.thought += len(textOf(e))
		field, shown = "thinking", f.thought
	}
	if field != "" {
		at := sweep.After(f.turn, field, shown)
		return at, at != nil
	}
	// What comes of a whole reply comes before the next one begins.
	if reply+1 < len(f.turn.Replies) && f.turn.Replies[reply+1].Raw == "" {
		return &fakellm.Place{Reply: reply + 1}, true
	}
	return nil, false
}
