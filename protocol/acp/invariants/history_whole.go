package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/transcript"
)

// Of one session so many bytes of text are remembered; what is said after that is not
// looked for.
const rememberedText = 64 << 10

// loadWhole judges that a replay has what was said in the turns that this transcript holds:
// whole messages and thoughts, whatever the white space and the pieces. What the model said
// belongs to the conversation; of notices that the agent makes itself, and of thoughts, no
// sentence says it.
func loadWhole() *rule {
	r := ofAgent("LOAD-WHOLE", "A replay has each message and thought of the turns that have ended.")
	message := r.Warn("message", "a replay leaves out a message of the model that the agent had passed on", "LOAD-003")
	notice := r.Lint("notice", "a replay leaves out a message that the agent had sent", "LOAD-003")
	thought := r.Lint("thought", "a replay leaves out thoughts that the agent had sent", "LOAD-003")
	r.Versions = []int{1}
	return r.watching(func(w *watch) {
		type said struct {
			topic topic
			id    string // of the message
			seq   int
			text  strings.Builder
		}
		type talk struct {
			turn  []*said // of the turn that is open
			past  []*said // of those that have ended
			bytes int
		}
		var model strings.Builder // what it said
		w.on(func(ev *event) {
			if ev.Kind == transcript.ModelChunk && model.Len() < 4*rememberedText {
				model.WriteString(bare(ev.body.Get("data").Str()))
			}
		}, modelEvent)
		talks := map[string]*talk{}                          // by the id of a session
		replays := map[*session]map[topic]*strings.Builder{} // what a load has brought
		w.on(func(ev *event) {
			if ev.session != nil {
				replays[ev.session] = map[topic]*strings.Builder{agentChunk: {}, thoughtChunk: {}}
			}
		}, asked(loadSession))
		w.on(func(ev *event) { delete(talks, ev.Session) }, asked(deleteSession))
		w.on(func(ev *event) {
			s := ev.session
			if s == nil {
				return
			}
			text := bare(ev.update.Get("content").Get("text").Str())
			if r := replays[s]; r != nil && s.window != nil {
				if b := r[ev.topic]; b != nil && b.Len() < 4*rememberedText {
					b.WriteString(text)
				}
				return
			}
			if len(s.open) != 1 || s.open[0].mixed || s.open[0].concurrent {
				return
			}
			k := talks[ev.Session]
			if k == nil && len(talks) < rememberedSessions {
				k = &talk{}
				talks[ev.Session] = k
			}
			if k == nil || k.bytes > rememberedText {
				return
			}
			k.bytes += len(text)
			id := ev.update.Get("messageId").Str()
			last := len(k.turn) - 1
			if last < 0 || k.turn[last].topic != ev.topic || k.turn[last].id != id {
				k.turn, last = append(k.turn, &said{topic: ev.topic, id: id, seq: ev.Seq}), last+1
			}
			k.turn[last].text.WriteString(text)
		}, contentUpdates()...)
		w.on(func(ev *event) {
			k := talks[ev.Session]
			if k == nil || ev.turn == nil {
				return
			}
			if ev.turn.leavesHistory(ev.stop) && !ev.turn.concurrent && !ev.turn.mixed {
				k.past = append(k.past, k.turn...)
			}
			k.turn = nil
		}, answered(prompt))
		w.on(func(ev *event) {
			r := replays[ev.session]
			delete(replays, ev.session)
			k := talks[ev.Session]
			if r == nil || k == nil || !ev.succeeded() || r[agentChunk].Len() == 0 {
				return // LOAD-WINDOW names a replay without anything
			}
			for _, x := range k.past {
				b := r[x.topic]
				if b == nil || x.text.Len() == 0 || b.Len() >= 4*rememberedText {
					continue
				}
				p, what := notice, "message"
				switch {
				case x.topic == thoughtChunk:
					p, what = thought, "thought"
				case strings.Contains(model.String(), x.text.String()):
					p = message
				}
				w.Saw(p)
				if !strings.Contains(b.String(), x.text.String()) {
					w.find(p, ev, "", []int{x.seq, ev.request.seq}, "session/load did not replay the %s that began with #%d.", what,
						x.seq)
				}
			}
		}, answered(loadSession))
	})
}

// bare is a text without its white space.
func bare(text string) string { return strings.Join(strings.Fields(text), "") }
