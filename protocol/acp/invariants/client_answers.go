package invariants

import "fmt"

// clientPermCancel judges the answers to permission requests of a turn that
// was cancelled.
func clientPermCancel() *rule {
	r := ofClient("C-PERM-CANCEL", "Permission requests of a cancelled turn are answered with outcome cancelled.")
	answer := r.fail("outcome",
		"a permission request of a cancelled turn got another answer than cancelled", "CANCEL-006", "PERM-011")
	r.Versions = []int{1}
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			t := ev.request.turn
			if t == nil || t.cancel == nil || t.ended > 0 {
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
	offered := r.fail("option", "the selected option was not offered", "PERM-010")
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
