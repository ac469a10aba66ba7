package invariants

import (
	"fmt"
	"slices"
)

// busyPromised judges what becomes of a prompt in a session that is busy, where the
// profile or the scenario says what the agent promises: the specification leaves it open.
func busyPromised() *rule {
	r := ofAgent("BUSY-PROMISED", "A prompt in a session that is busy fares as the profile says that the agent promises.")
	refused := r.Lint("refused", "a second prompt was refused, although it should wait or take over", "PROMPT-018")
	taken := r.Lint("taken", "a second prompt was worked on, although it should be refused", "PROMPT-018")
	return r.watching(func(w *watch) {
		promise := w.Config().Busy
		if promise == "" {
			return
		}
		w.on(func(ev *event) {
			t := ev.turn
			if t == nil || !t.concurrent {
				return
			}
			w.Saw(refused, taken)
			if t.cancel != nil || t.close != nil || t.request.back != nil {
				return
			}
			busy := slices.ContainsFunc(ev.conn.pending(t.request.by), func(r *request) bool {
				return r.verb == prompt && r.session == t.session && r.seq < t.started
			})
			denied := ev.err.Exists() || ev.stop == "refusal"
			switch object := fmt.Sprint(t.started); {
			case promise == "reject" && !denied && ev.stop != "cancelled":
				w.find(taken, ev, object, []int{t.started},
					"The prompt came while the session was busy, and ended with %s; the profile says that the agent refuses it.",
					ev.stop)
			case promise != "reject" && denied && busy:
				w.find(refused, ev, object, []int{t.started},
					"The prompt came while the session was busy, and was refused; the profile says %s.", promise)
			}
		}, answered(prompt))
	})
}
