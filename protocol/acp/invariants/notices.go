package invariants

import (
	"slices"

	"github.com/acp-test/acp-test/rules"
)

// notices checks that a replay contains no notice, and that a turn whose only content is an error notice does not end
// with end_turn.
func notices(w *watch) {
	told := map[*turn]int{} // Seq of the notice that reported an error
	w.inSession(func(ev *event, s *session) {
		if ev.update.Get("severity").Is("error") && len(s.open) == 1 && !w.version.states {
			told[s.open[0]] = ev.Seq
		}
		window := s.window != nil || s.replay != nil && s.replay.history
		w.judge("replayed", window && !s.active && len(s.open) == 0, ev, "", nil,
			"The replay of the session has a notice.")
	}, noticeUpdate)
	w.inTurn(func(ev *event, t *turn) {
		at := told[t]
		if delete(told, t); at == 0 || !t.alone() || t.cancel != nil || t.command() {
			return
		}
		w.judge("alone", ev.stop == "end_turn" && !t.spoke && !t.acted, ev, "", []int{t.started, at},
			"The turn ended with end_turn, and only a notice says what failed.")
	}, answered(prompt))
}

var compactionEnds = []string{"completed", "failed", "cancelled"}

// compactions checks the order and the content of the updates of a compaction.
func compactions(w *watch) {
	v := w.version
	type key struct{ session, id string }
	type life struct {
		key
		conn, first, ended int
		status             string
	}
	live := map[key]*life{}
	var order []*life
	shown := map[string]map[string]bool{} // ids in the replay of each session
	w.On(func(ev *event) { shown[ev.Session] = map[string]bool{} }, asked(loadSession), asked(resumeSession))
	w.inSession(func(ev *event, s *session) {
		id := ev.update.Get("compactionId").Str()
		if s.window != nil || s.replay != nil {
			if shown[s.id] != nil {
				shown[s.id][id] = true
			}
			return
		}
		if len(live) >= rememberedSessions {
			return
		}
		k, status := key{s.id, id}, ev.update.Get("status").Str()
		c := live[k]
		if c == nil {
			c = &life{key: k, conn: ev.Conn, first: ev.Seq}
			live[k], order = c, append(order, c)
		}
		w.judge("after-end", c.ended > 0 && (ev.tag() == "compaction_summary_chunk" || status != c.status), ev, id,
			[]int{c.ended}, "The agent updated compaction %q after it had ended with %s.", id, c.status)
		if slices.Contains(compactionEnds, status) {
			c.ended, c.status = ev.Seq, status
		}
	}, compactionUpdate)
	w.inSession(func(ev *event, s *session) {
		if v.states && (s.replay == nil || !s.replay.history || s.replay.busy) {
			return
		}
		for _, c := range order {
			if c.session == s.id && c.status == "completed" && ev.succeeded() {
				w.judge("not-replayed", !shown[s.id][c.id], ev, c.id, []int{c.ended},
					"The replay leaves out compaction %q, which had completed.", c.id)
			}
		}
	}, answered(pick(v.states, resumeSession, loadSession)))
	w.AtEnd(func(end rules.End) {
		for _, c := range order {
			if w.Saw("open"); end.Clean && c.ended == 0 {
				w.Report("open", c.conn, c.session, c.id, []int{c.first}, "Compaction %q began and never ended.", c.id)
			}
		}
	})
}
