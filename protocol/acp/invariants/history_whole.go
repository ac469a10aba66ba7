package invariants

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// Of one session so many bytes of text are remembered; what is said after that is not
// looked for.
const rememberedText = hearing.Remembered

// loadWhole judges that a replay has what was said in the turns that this transcript holds:
// whole messages and thoughts in their order, whatever the white space and the pieces, and the
// tool calls with their ends. Of notices that the agent makes itself, and of thoughts, no
// sentence says it.
func loadWhole(w *watch) {
	model := w.modelWords()
	talks := map[string]*talk{} // by the id of a session
	of := func(id string) *talk {
		if talks[id] == nil {
			rules.Remember(talks, rememberedSessions, id, &talk{ends: map[string]status{}})
		}
		return talks[id]
	}
	w.On(func(ev *event) { delete(talks, ev.Session) }, asked(deleteSession))
	w.On(func(ev *event) { of(ev.Session).ask(ev) }, asked(prompt))
	w.On(func(ev *event) {
		if from := talks[ev.request.session.name()]; from != nil && len(talks) < rememberedSessions {
			talks[ev.result.Get("sessionId").Str()] = &talk{past: slices.Clone(from.past), ends: maps.Clone(from.ends)}
		}
	}, answered(forkSession))
	w.On(func(ev *event) {
		if s := ev.session; s.speaksAlone() && s.window == nil {
			of(ev.Session).hear(ev)
		}
	}, contentUpdates()...)
	w.On(func(ev *event) {
		if k, t := talks[ev.Session], ev.turn; k != nil && t != nil {
			k.end(t, t.leavesHistory(ev.stop) && !t.concurrent && !t.mixed)
		}
	}, answered(prompt))
	eachReplay(w, func(r *replayed, ev *event) { r.hear(ev) }, func(r *replayed, ev *event) {
		// LOAD-WINDOW names a replay without anything of the agent.
		if k := talks[ev.Session]; k != nil && r.answered && r.all.Len() < 8*rememberedText {
			w.compare(k, r, ev, model.String())
		}
	})
}

// modelWords gathers what the model says, without white space.
func (w *watch) modelWords() *strings.Builder {
	var words strings.Builder
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelChunk && words.Len() < 4*rememberedText {
			words.WriteString(bare(fakellm.ChunkText(ev.body)))
		}
	}, modelEvent)
	return &words
}

// replayed is what a load brought.
type replayed struct {
	user, said, thought, all strings.Builder
	topic                    topic // of the latest piece
	calls                    int
	answered                 bool // it has something of the agent
}

func (r *replayed) of(t topic) *strings.Builder {
	return map[topic]*strings.Builder{userChunk: &r.user, agentChunk: &r.said, thoughtChunk: &r.thought}[t]
}

func (r *replayed) hear(ev *event) {
	r.answered = r.answered || ev.topic != userChunk
	if ev.topic == toolCall {
		r.calls++
	}
	b := r.of(ev.topic)
	if b == nil || r.all.Len() >= 8*rememberedText {
		return
	}
	if r.topic != ev.topic {
		r.all.WriteByte(0)
	}
	r.topic = ev.topic
	text := bare(ev.text())
	b.WriteString(text)
	r.all.WriteString(text)
}

// compare judges a replay by what was said and done before it.
func (w *watch) compare(k *talk, r *replayed, ev *event, model string) {
	const tellsApart = 8 // bytes that are not a part of another message by chance
	all, at, before, said := r.all.String(), 0, 0, map[string]bool{}
	for _, x := range k.past {
		text := x.text.String()
		if text == "" || x.topic == userChunk && r.user.Len() == 0 { // LOAD-WINDOW names a user who said nothing
			continue
		}
		point, what := pick(strings.Contains(model, text), "message", "notice"), "message"
		switch x.topic {
		case thoughtChunk:
			point, what = "thought", "thought"
		case userChunk:
			point, what = "user", "prompt"
		}
		if w.judge(point, !strings.Contains(r.of(x.topic).String(), text), ev, "", []int{x.seq, ev.request.seq},
			"session/load did not replay the %s that began with #%d.", what, x.seq) != nil || x.topic == thoughtChunk {
			continue
		}
		i := strings.Index(all[at:], text)
		moved := i < 0 && !said[text] && strings.Count(all, text) == 1 &&
			(len(text) >= tellsApart || strings.Contains("\x00"+all+"\x00", "\x00"+text+"\x00"))
		w.judge("order", moved, ev, "", []int{before, x.seq, ev.request.seq},
			"session/load replayed the %s that began with #%d before that of #%d.", what, x.seq, before)
		if said[text] = true; i >= 0 {
			at, before = at+i+len(text), x.seq
		}
	}
	w.compareCalls(k, r, ev)
}

// compareCalls judges the tool calls of a replay: by their ids where it keeps them, else by
// their number.
func (w *watch) compareCalls(k *talk, r *replayed, ev *event) {
	kept := 0
	for _, t := range ev.session.order {
		before, known := k.ends[t.id]
		if !known || t.first < ev.request.seq {
			continue
		}
		if t.by == byCall {
			kept++
		}
		w.judge("status", t.status.final() && t.status != before, ev, t.id, []int{t.seq},
			"The tool call %q had ended %s, and session/load shows it as %s.", t.id, before, t.status)
	}
	if r.calls == 0 && kept == 0 {
		return // an agent may keep none
	}
	w.judge("call", max(kept, r.calls) < len(k.ends), ev, "", []int{ev.request.seq},
		"session/load replayed %s, and %d had ended before it.", count(max(kept, r.calls), "tool call"), len(k.ends))
}

// speaksAlone reports whether what the session says now belongs to one turn.
func (s *session) speaksAlone() bool {
	return s != nil && len(s.open) == 1 && !s.open[0].mixed && !s.open[0].concurrent
}

// spoken is a message or thought of a turn.
type spoken struct {
	topic topic
	id    string // of the message
	seq   int
	text  strings.Builder
}

// talk is what a session has said.
type talk struct {
	turn  []*spoken         // of the turn that is open
	past  []*spoken         // of those that have ended
	ends  map[string]status // of the tool calls of those, by their ids
	bytes int
}

// ask notes what the user says.
func (k *talk) ask(ev *event) {
	if k == nil || len(ev.Redacted) > 0 || len(ev.Raw) > promptText || k.bytes > rememberedText {
		return
	}
	k.bytes += len(ev.Raw)
	for block := range ev.params.Get("prompt").Items() { // what is no text may be replayed as some
		if block.Get("type").Is("text") {
			k.turn = append(k.turn, newSpoken(userChunk, ev.Seq, bare(block.Get("text").Str())))
		}
	}
}

// end ends the open turn; kept says that it is part of the history.
func (k *talk) end(t *turn, kept bool) {
	if kept {
		k.past = append(k.past, k.turn...)
		for _, c := range t.tools {
			if c.status.final() && len(k.ends) < rememberedTools {
				k.ends[c.id] = c.status
			}
		}
	}
	k.turn = nil
}

// hear adds a piece to the open turn.
func (k *talk) hear(ev *event) {
	if k == nil || k.bytes > rememberedText || ev.topic == userChunk { // an echo
		return
	}
	text := bare(ev.text())
	k.bytes += len(text)
	id := ev.update.Get("messageId").Str()
	last := len(k.turn) - 1
	if last < 0 || k.turn[last].topic != ev.topic || k.turn[last].id != id {
		k.turn, last = append(k.turn, &spoken{topic: ev.topic, id: id, seq: ev.Seq}), last+1
	}
	k.turn[last].text.WriteString(text)
}
