package invariants

import "fmt"

// goesOn checks that the agent begins nothing new in a cancelled turn once it has read the cancel. It has read the
// cancel when it fails a tool call whose permission the editor denied after the cancel. Calls that run at the same
// time may still complete.
func goesOn(w *watch) {
	knows := map[*turn]int{} // Seq of the update that failed the call
	w.On(func(ev *event) { delete(knows, ev.turn) }, answered(prompt))
	open := func(ev *event) *turn {
		if t := ev.turn; t != nil && t.cancel != nil && t.alone() && !t.mixed && !t.like {
			return t
		}
		return nil
	}
	began := func(ev *event, t *turn, what string) {
		if at := knows[t]; at > 0 {
			w.find("goes-on", ev, fmt.Sprint(t.started), []int{t.cancel.seq, at},
				"The agent had failed the cancelled call, but then sent %s in the same turn.", what)
		}
	}
	w.On(func(ev *event) {
		t := open(ev)
		if t == nil {
			return
		}
		status, k := ev.update.Get("status"), ev.tool
		switch {
		case k != nil && !k.status.final() && status.Is("failed") && k.denied > t.cancel.seq:
			w.Saw("goes-on")
			if knows[t] == 0 {
				knows[t] = ev.Seq
			}
		case k == nil && status.Is("completed"), (k == nil || k.status < inProgress) && status.Is("in_progress"):
			began(ev, t, describe(ev))
		}
	}, toolCall, toolUpdate)
	w.On(func(ev *event) {
		if t := open(ev); t != nil {
			began(ev, t, ev.Method)
		}
	}, asked(permission), asked(readFile), asked(writeFile), asked(createTerminal))
}
