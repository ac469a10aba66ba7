package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// systemGiven is the system prompt of a client for one session.
type systemGiven struct {
	seq          int
	mode         string
	kinds, texts []string // types and texts of its content blocks
}

// systemPrompts checks how an agent uses a client's system prompt. Each model request of the conversation must have
// the system prompt among the instructions. An agent that does not advertise system prompts may ignore it.
func systemPrompts(w *watch) {
	x := &systemWatch{watch: w, asking: map[int]systemGiven{}, opening: map[string]systemGiven{},
		now: map[string]systemGiven{}, before: map[string]systemGiven{}}
	w.On(x.given, setUps(asked)...)
	w.On(x.taken, setUps(answered)...)
	w.inSession(func(ev *event, s *session) {
		if s.window != nil || s.replay != nil {
			given := slices.Concat(x.opening[s.id].texts, x.now[s.id].texts)
			w.judge("replayed", slices.Contains(given, ev.text()), ev, "", nil,
				"The replay shows the system prompt as a message of the user.")
		}
	}, userChunk)
	w.On(x.told, modelEvent)
}

// systemWatch follows the system prompts of sessions.
type systemWatch struct {
	*watch
	asking               map[int]systemGiven    // by Seq of the request that opens a session
	opening, now, before map[string]systemGiven // by session
}

// given stores the system prompt of a request that opens a session.
func (x *systemWatch) given(ev *event) {
	if !ev.conn.has(rules.OfAgent, x.version.instructions) {
		return
	}
	g := systemGiven{seq: ev.Seq}
	if p := ev.params.Get("systemPrompt"); p.Kind() == wire.Object {
		g.mode = p.Get("mode").Str()
		for item := range p.Get("content").Items() {
			g.kinds = append(g.kinds, item.Get("type").Str())
			g.texts = append(g.texts, item.Get("text").Str())
		}
	}
	rules.Remember(x.asking, rememberedSessions, ev.Seq, g)
	rules.Remember(x.opening, rememberedSessions, ev.session.name(), g)
}

// taken checks that the agent opens a session only if it can apply the session's system prompt.
func (x *systemWatch) taken(ev *event) {
	g, had := x.asking[ev.request.seq]
	if !had || !ev.succeeded() {
		return
	}
	delete(x.asking, ev.request.seq)
	overrides := ev.conn.has(rules.OfAgent, x.version.instructions+".mode.override")
	supported := g.mode == "append" || g.mode == "override" && overrides
	x.judge("mode", g.mode != "" && !supported, ev, "", []int{ev.Ref},
		"The agent set up a session with a system prompt in mode %q, which it does not advertise.", g.mode)
	for _, kind := range g.kinds {
		x.judge("block", kind != "text", ev, "", []int{ev.Ref},
			"The agent set up a session with a system prompt that holds a block of type %q.", kind)
	}
	if ev.session == nil {
		return
	}
	if !supported {
		g.texts = nil
	}
	rules.Remember(x.before, rememberedSessions, ev.session.id, x.now[ev.session.id])
	rules.Remember(x.now, rememberedSessions, ev.session.id, g)
}

// told checks the instructions in a model request. Requests outside the conversation are skipped.
func (x *systemWatch) told(ev *event) {
	g, old := x.now[ev.Session], x.before[ev.Session]
	if ev.Kind != transcript.ModelRequest || ev.Session == "" || len(g.texts)+len(old.texts) == 0 {
		return
	}
	a, ok := ev.askedOfModel()
	if !ok || a.Partial || len(a.Offered) == 0 || !ev.converses() {
		return // outside the conversation: a request for a title, for example
	}
	system, user := unescaped(a.System()), strings.Builder{}
	for _, p := range a.Conversation() {
		if p.Who == "user" {
			user.WriteString(unescaped(p.Text))
		}
	}
	for _, text := range g.texts {
		as := strings.Contains(user.String(), bare(text))
		x.judge("as-user", as, ev, ev.Session, []int{g.seq},
			"The model request has the session's system prompt %q as a user message.", clip(text))
		x.judge("not-told", !as && !strings.Contains(system, bare(text)), ev, ev.Session, []int{g.seq},
			"The model request lacks the session's system prompt %q.", clip(text))
	}
	for _, text := range old.texts {
		stays := !slices.Contains(g.texts, text) && strings.Contains(system, bare(text))
		x.judge("kept", stays, ev, ev.Session, []int{old.seq, g.seq},
			"The model request has the system prompt %q, which a load or resume had replaced.", clip(text))
	}
}

// clientSystem checks the system prompts that a client gives. On a load, the client may change the system prompt, but
// must not omit it.
func clientSystem(w *watch) {
	asking, given := map[int]int{}, map[string]int{} // Seqs of requests with a system prompt, by Seq and by session
	w.On(func(ev *event) {
		content := ev.params.Path("systemPrompt.content")
		w.judge("empty", content.Kind() == wire.Array && content.Len() == 0, ev, "", nil, "The systemPrompt has no content.")
		if content.Exists() {
			rules.Remember(asking, rememberedSessions, ev.Seq, ev.Seq)
		}
	}, setUps(asked)...)
	w.inSession(func(ev *event, s *session) {
		at, without := given[s.id], !isSet(ev.params.Get("systemPrompt"))
		if ev.conn.has(rules.OfAgent, w.version.instructions) {
			w.judge("left-out", at > 0 && without, ev, s.id, []int{at},
				"The client sent %s without a systemPrompt, which session %q had been given.", ev.Method, s.id)
		}
		delete(given, s.id)
	}, asked(loadSession), asked(resumeSession))
	w.On(func(ev *event) {
		if at := asking[ev.request.seq]; at > 0 && ev.succeeded() && ev.session != nil {
			rules.Remember(given, rememberedSessions, ev.session.id, at)
		}
		delete(asking, ev.request.seq)
	}, setUps(answered)...)
}
