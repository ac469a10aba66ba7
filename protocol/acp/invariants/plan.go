package invariants

// planSize is the maximum number of entries of a plan that are compared.
const planSize = 1000

// planFull checks that each plan update has the whole plan. SHAPE judges its shape.
func planFull(w *watch) {
	written := planTold(w)
	type plan struct {
		seq      int
		turn     *turn
		statuses map[string]string
		size     int
	}
	last := map[*session]*plan{}
	// In a replay, a message of the user begins a turn.
	w.On(func(ev *event) { delete(last, ev.session) }, asked(loadSession), asked(resumeSession), answered(loadSession),
		userChunk)
	w.inSession(func(ev *event, s *session) {
		next := &plan{seq: ev.Seq, turn: ev.turn, statuses: map[string]string{}}
		for e := range ev.update.Get("entries").Items() {
			next.size++
			if len(next.statuses) < planSize {
				next.statuses[e.Get("content").Str()] = e.Get("status").Str()
			}
		}
		before := last[ev.session]
		last[ev.session] = next
		if before == nil || before.turn != next.turn { // a new turn may have a new plan
			return
		}
		w.Saw("delta", "shrunk", "back")
		lost := 0
		for content, status := range before.statuses {
			now, kept := next.statuses[content]
			if !kept && status != "completed" {
				lost++
			}
			if kept && status == "completed" && now != "completed" {
				w.find("back", ev, content, []int{before.seq}, "The plan entry %q went from completed back to %s.", content,
					clip(now))
			}
		}
		switch {
		case next.size == 1 && before.size > 1 && lost > 0:
			w.find("delta", ev, "", []int{before.seq},
				"The plan update has one entry, but the plan before had %d: an update must be the whole plan.",
				before.size)
		case next.size < before.size && lost > 0 && next.turn != nil && !written(next.turn): // the model may drop steps
			w.find("shrunk", ev, "", []int{before.seq},
				"The plan update has %d entries instead of %d, and lacks %d unfinished ones.", next.size, before.size,
				lost)
		}
	}, planUpdate)
}
