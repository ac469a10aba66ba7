package invariants

import (
	"fmt"

	"github.com/acp-test/acp-test/transcript"
)

// wireValid judges that the agent asks its model for nothing that the real API refuses. Such a
// conversation is dead: each further prompt sends it again. No sentence of the protocol speaks
// of models, so nothing here touches the verdict of a conformance run.
func wireValid(w *watch) {
	main := map[int64]int{} // Seq of a request of the conversation
	w.On(func(ev *event) {
		n, _ := ev.body.Get("n").Int()
		switch {
		case ev.Kind == transcript.ModelRequest && ev.body.Get("lane").Is("main"):
			main[n] = ev.Seq
		case ev.Kind == transcript.ModelDone && main[n] > 0:
			bad, _ := ev.body.Get("refused").Bool()
			because, after := []int{main[n]}, ""
			if act := ev.conn.lastAct; bad && act != nil {
				because, after = []int{act.seq, main[n]}, fmt.Sprintf(" The last act of the editor before it is #%d.", act.seq)
			}
			w.judge("refused", bad, ev, "", because, "The model's API refuses the request: %s.%s", ev.body.Get("why").Str(),
				after)
			delete(main, n)
		}
	}, modelEvent)
}
