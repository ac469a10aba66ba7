package invariants

import (
	"fmt"
	"slices"
	"strings"
)

// clientPermCancel judges the answers to permission requests of a turn that
// was cancelled.
func clientPermCancel(w *watch) {
	w.On(func(ev *event) {
		t := ev.request.turn
		if t == nil || t.ended > 0 {
			return
		}
		if a, _ := t.stopper(); a == nil && !t.disturbed {
			if w.Saw("denied"); ev.request.back == nil && ev.outcome("cancelled") && ev.request.refusable() {
				w.find("denied", ev, fmt.Sprint(ev.Ref), []int{ev.Ref},
					"The client answered cancelled where nobody had cancelled the turn; the agent offered a way to reject.")
			}
		}
		if t.cancel != nil {
			told := ev.outcome("cancelled") || ev.request.back != nil && ev.code() == -32800
			w.judge("outcome", !told, ev, fmt.Sprint(ev.Ref), []int{t.cancel.seq, ev.Ref},
				"The client had cancelled the turn, but did not answer its permission request with cancelled.")
		}
	}, answered(permission))
}

// refusable reports whether a permission request has a way to reject.
func (r *request) refusable() bool {
	return slices.ContainsFunc(r.options, func(o permit) bool { return strings.HasPrefix(o.kind, "reject_") })
}

// clientPermOffered judges that a selected option was offered. After a cancel of its own a
// client of version 2 may still let the user choose: the work that asks may go on in the
// background. What the agent itself took back is to be answered with cancelled, once the
// client has seen that.
func clientPermOffered(w *watch) {
	w.On(func(ev *event) {
		if !ev.outcome("selected") {
			return
		}
		w.Saw("option", "taken-back", "after-cancel")
		if _, known := ev.chosen(); !known {
			w.find("option", ev, fmt.Sprint(ev.Ref), []int{ev.Ref}, "The client selected option %q, which was not offered.",
				ev.result.Path("outcome.optionId").Str())
		}
		switch gone := ev.request.back; {
		case gone != nil && ev.conn.heard > gone.seq:
			w.find("taken-back", ev, "", []int{ev.Ref, gone.seq},
				"The client chose an option, although the agent had taken the request back and the client has "+
					"answered later ones.")
		case ev.request.late:
			w.find("after-cancel", ev, "", []int{ev.Ref}, "The client chose an option after it had cancelled the work.")
		}
	}, answered(permission))
}
