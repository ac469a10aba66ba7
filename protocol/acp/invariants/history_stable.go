package invariants

import (
	"hash/maphash"

	"github.com/acp-test/acp-test/rules"
)

// loadStable judges that a session that nobody has touched is replayed alike.
// Only roles, text and the titles of tool calls count, not how they are cut into chunks.
func loadStable(w *watch) {
	type replay struct {
		hash  maphash.Hash
		topic topic
	}
	type past struct {
		sum uint64
		seq int
	}
	seed := maphash.MakeSeed()
	last := map[string]past{}
	w.On(func(ev *event) { delete(last, ev.Session) }, asked(prompt), asked(deleteSession))
	eachReplay(w, func(r *replay, ev *event) {
		text := ev.update.Path("content.text")
		switch ev.topic {
		case toolUpdate, planUpdate:
			return
		case toolCall:
			text = ev.update.Get("title")
		}
		if r.topic == nothing {
			r.hash.SetSeed(seed)
		}
		if r.topic != ev.topic || ev.topic == toolCall {
			r.topic = ev.topic
			r.hash.WriteByte(0)
			r.hash.WriteByte(byte(ev.topic))
		}
		r.hash.WriteString(text.Str())
	}, func(r *replay, ev *event) {
		if r.topic == nothing {
			r.hash.SetSeed(seed)
		}
		sum := r.hash.Sum64()
		if before, ok := last[ev.Session]; ok {
			w.judge("differs", before.sum != sum, ev, "", []int{before.seq, ev.Ref},
				"Two loads of the session replayed different histories, although nobody had prompted it in between.")
		}
		rules.Remember(last, rememberedSessions, ev.Session, past{sum, ev.Seq})
	})
}
