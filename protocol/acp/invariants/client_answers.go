package invariants

import (
	"fmt"
	"slices"
	"strings"
)

// clientPermCancel judges the answers to permission requests of a turn that
// was cancelled.
func clientPermCancel() *rule {
	r := ofClient("C-PERM-CANCEL", "Permission requests of a cancelled turn, and no others, are answered with cancelled.")
	answer := r.Fail("outcome",
		"a permission request of a cancelled turn got another answer than cancelled", "CANCEL-006", "PERM-011")
	denied := r.Lint("denied", "a permission was denied with cancelled, although a rejection was on offer", "PERM-011")
	r.Versions = []int{1}
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			t := ev.request.turn
			if t == nil || t.ended > 0 {
				return
			}
			if a, _ := t.stopper(); a == nil && !t.disturbed {
				w.Saw(denied)
				if ev.request.back == nil && ev.result.Get("outcome").Get("outcome").Is("cancelled") &&
					slices.ContainsFunc(ev.request.options, func(o permit) bool { return strings.HasPrefix(o.kind, "reject_") }) {
					w.find(denied, ev, fmt.Sprint(ev.Ref), []int{ev.Ref},
						"The client answered cancelled where nobody had cancelled the turn; the agent offered a way to reject.")
				}
			}
			if t.cancel == nil {
				return
			}
			w.Saw(answer)
			if ev.result.Get("outcome").Get("outcome").Is("cancelled") || ev.request.back != nil && ev.code() == -32800 {
				return
			}
			w.find(answer, ev, fmt.Sprint(ev.Ref), []int{t.cancel.seq, ev.Ref},
				"The client had cancelled the turn, but did not answer its permission request with cancelled.")
		}, answered(permission))
	})
}

// clientPermOffered judges that a selected option was offered.
func clientPermOffered() *rule {
	r := ofClient("C-PERM-OFFERED", "The option selected in a permission's answer was offered in the request.")
	offered := r.Fail("option", "the selected option was not offered", "PERM-010")
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			outcome := ev.result.Get("outcome")
			if !outcome.Get("outcome").Is("selected") {
				return
			}
			w.Saw(offered)
			id := outcome.Get("optionId").Str()
			for _, o := range ev.request.options {
				if o.id == id {
					return
				}
			}
			w.find(offered, ev, fmt.Sprint(ev.Ref), []int{ev.Ref}, "The client selected option %q, which was not offered.", id)
		}, answered(permission))
	})
}
