package invariants

import (
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// Of one session so many bytes of text are remembered; what is said after that is not
// looked for.
const rememberedText = 64 << 10

// loadWhole judges that a replay has what was said in the turns that this transcript holds:
// whole messages and thoughts, whatever the white space and the pieces. What the model said
// belongs to the conversation; of notices that the agent makes itself, and of thoughts, no
// sentence says it.
func loadWhole(v *version) *rule {
	r := v.ofAgent("LOAD-WHOLE", "A replay has each message and thought of the turns that have ended.")
	message := r.Warn("message", "a replay leaves out a message of the model that the agent had passed on", "LOAD-003")
	notice := r.Lint("notice", "a replay leaves out a message that the agent had sent", "LOAD-003")
	thought := r.Lint("thought", "a replay leaves out thoughts that the agent had sent", "LOAD-003")
	return r.Watching(func(w *watch) {
		var model strings.Builder // what it said
		w.On(func(ev *event) {
			if ev.Kind == transcript.ModelChunk && model.Len() < 4*rememberedText {
				model.WriteString(bare(fakellm.ChunkText(ev.body)))
			}
		}, modelEvent)
		talks := map[string]*talk{} // by the id of a session
		w.On(func(ev *event) { delete(talks, ev.Session) }, asked(deleteSession))
		w.On(func(ev *event) {
			if s := ev.session; !s.speaksAlone() || s.window != nil {
				return
			}
			if talks[ev.Session] == nil {
				rules.Remember(talks, rememberedSessions, ev.Session, &talk{})
			}
			talks[ev.Session].hear(ev)
		}, contentUpdates()...)
		w.On(func(ev *event) {
			k, t := talks[ev.Session], ev.turn
			if k != nil && t != nil {
				k.end(t.leavesHistory(ev.stop) && !t.concurrent && !t.mixed)
			}
		}, answered(prompt))
		type replay struct{ said, thought strings.Builder }
		of := func(r *replay, t topic) *strings.Builder {
			return map[topic]*strings.Builder{agentChunk: &r.said, thoughtChunk: &r.thought}[t]
		}
		eachReplay(w, func(r *replay, ev *event) {
			if b := of(r, ev.topic); b != nil && b.Len() < 4*rememberedText {
				b.WriteString(bare(ev.text()))
			}
		}, func(r *replay, ev *event) {
			k := talks[ev.Session]
			if k == nil || r.said.Len() == 0 {
				return // LOAD-WINDOW names a replay without anything
			}
			for _, x := range k.past {
				b, text := of(r, x.topic), x.text.String()
				if b == nil || text == "" || b.Len() >= 4*rememberedText {
					continue
				}
				p, what := pick(strings.Contains(model.String(), text), message, notice), "message"
				if x.topic == thoughtChunk {
					p, what = thought, "thought"
				}
				w.judge(p, !strings.Contains(b.String(), text), ev, "", []int{x.seq, ev.request.seq},
					"session/load did not replay the %s that began with #%d.", what, x.seq)
			}
		})
	})
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
	turn  []*spoken // of the turn that is open
	past  []*spoken // of those that have ended
	bytes int
}

// end ends the open turn; kept says that it is part of the history.
func (k *talk) end(kept bool) {
	if kept {
		k.past = append(k.past, k.turn...)
	}
	k.turn = nil
}

// hear adds a piece to the open turn.
func (k *talk) hear(ev *event) {
	if k == nil || k.bytes > rememberedText {
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

// bare is a text without its white space, and without the characters that nobody sees.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
}
