package invariants

import "hash/maphash"

// loadStable judges that a session that nobody has touched is replayed alike.
// Only roles, text and tool call ids count, not how they are cut into chunks.
func loadStable(v *version) *rule {
	r := v.ofAgent("LOAD-STABLE", "Two loads of a session with no prompt between them replay the same history.")
	differs := r.Warn("differs", "two loads of a session replayed different histories", "LOAD-003")
	return r.Watching(func(w *watch) {
		type replay struct {
			hash  maphash.Hash
			topic topic
			seq   int
		}
		seed := maphash.MakeSeed()
		type past struct {
			sum uint64
			seq int
		}
		running := map[*session]*replay{}
		last := map[string]past{}
		w.On(func(ev *event) {
			if ev.session != nil {
				r := &replay{seq: ev.Seq}
				r.hash.SetSeed(seed)
				running[ev.session] = r
			}
		}, asked(loadSession))
		w.On(func(ev *event) { delete(last, ev.Session) }, asked(prompt), asked(deleteSession))
		w.On(func(ev *event) {
			r := running[ev.session]
			if r == nil || ev.session.window == nil {
				return
			}
			if r.topic != ev.topic || ev.topic == toolCall {
				r.topic = ev.topic
				r.hash.WriteByte(0)
				r.hash.WriteByte(byte(ev.topic))
			}
			text := ev.update.Get("content").Get("text")
			if ev.topic == toolCall {
				text = ev.update.Get("toolCallId")
			}
			r.hash.WriteString(text.Str())
		}, userChunk, agentChunk, thoughtChunk, toolCall)
		w.On(func(ev *event) {
			r := running[ev.session]
			delete(running, ev.session)
			if r == nil || !ev.succeeded() {
				return
			}
			sum := r.hash.Sum64()
			if before, ok := last[ev.Session]; ok {
				w.Saw(differs)
				if before.sum != sum {
					w.find(differs, ev, "", []int{before.seq, ev.Ref},
						"Two loads of the session replayed different histories, although nobody had prompted it in between.")
				}
			}
			if len(last) < rememberedSessions {
				last[ev.Session] = past{sum, ev.Seq}
			}
		}, answered(loadSession))
	})
}
