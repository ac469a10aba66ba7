package invariants

import (
	"bytes"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// usageSane checks the values in usage updates. SHAPE checks their shape.
func usageSane(w *watch) {
	type price struct {
		amount   float64
		currency string
		seq      int
	}
	last := map[*session]*price{}
	w.On(func(ev *event) { delete(last, ev.session) }, asked(loadSession), asked(resumeSession))
	w.On(func(ev *event) {
		used, okUsed := ev.update.Get("used").Int()
		size, okSize := ev.update.Get("size").Int()
		if okUsed && okSize {
			w.judge("size", size == 0 || used > size, ev, "", nil,
				"The usage is %d of a context of %d tokens; send no usage_update while the size is unknown.",
				used, size)
		}
		c := ev.update.Get("cost")
		if c.Kind() != wire.Object || ev.session == nil {
			return
		}
		w.Saw("currency")
		unit := c.Get("currency")
		if unit.Kind() == wire.String && !isCurrency(unit) {
			w.find("currency", ev, unit.Str(), nil, "The currency is %q, and must be a three-letter ISO 4217 code.", unit.Str())
		}
		amount, ok := c.Get("amount").Float()
		if !ok || ev.session.window != nil {
			return
		}
		w.Saw("cost")
		before := rules.Entry(last, ev.session)
		if before.seq > 0 && (amount < before.amount || !unit.Is(before.currency)) {
			w.find("cost", ev, "", []int{before.seq}, "The cost of the session went from %g %s to %g %s.", before.amount,
				before.currency, amount, clip(unit.Str()))
		}
		if !unit.Is(before.currency) {
			before.currency = unit.Str()
		}
		before.amount, before.seq = amount, ev.Seq
	}, usageUpdate)
}

func isCurrency(v wire.Value) bool {
	code, _ := v.Plain()
	return len(code) == 3 && len(bytes.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) == 0
}
