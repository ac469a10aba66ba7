package invariants

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// configComplete checks that config options are consistent and that each list is complete. SHAPE checks their shape.
func configComplete(w *watch) {
	w.On(func(ev *event) {
		ids := rules.Seen{}
		for _, o := range ev.options {
			w.judge("duplicate-id", ids.Again(o.id), ev, o.id, nil, "Two config options have the id %q.", o.id)
			if !o.selects {
				continue
			}
			values := rules.Seen{}
			for _, v := range o.values {
				if values.Again(v) {
					w.find("duplicate-id", ev, o.id+"\x00"+v, nil, "The config option %q has value %q twice.", o.id, v)
				}
			}
			w.judge("current-value", !values[o.current], ev, o.id, nil,
				"The current value %q of the config option %q is not one of its values.", o.current, o.id)
		}
	}, listings()...)
	w.On(func(ev *event) {
		r := ev.request
		if !ev.hasOptions || r.session == nil {
			return
		}
		w.Saw("option-missing", "not-applied")
		set := findOption(ev.options, r.option)
		switch {
		case set == nil:
			w.find("option-missing", ev, r.option, []int{ev.Ref}, "The response lacks the config option %q that was just set.",
				r.option)
		case set.current != r.value:
			w.find("not-applied", ev, r.option, []int{ev.Ref}, "The config option %q was set to %q, but the response shows %q.",
				r.option, r.value, set.current)
		}
		lost := lostOption(r.session.options, ev.options)
		// Another option may go with the value of the one that was set.
		point := pick(lost.category == "model" || lost.category == "mode", "model-missing", "partial-response")
		w.judge(point, lost.id != "" && lost.id != r.option, ev, "", []int{ev.Ref},
			"The response lacks the config option %q of the previous list; it must list all options.", lost.id)
	}, answered(setOption))
	partialLists(w)
}

// partialLists checks that no list of options is a part of the whole list. A missing option may be gone for good: then
// a config_option_update is partial-update, unless the model or the mode changed with it, or an option was added. The
// option is not gone if a later list has it again with its old value, and the same values of the other options. Then
// the point is update-dropped-option or response-dropped-option.
func partialLists(w *watch) {
	type partial struct {
		conn, seq    int
		at           time.Duration
		point        string // of the later list that has the lost option again
		lost         option
		before, list []option
		excused      bool // the model or the mode changed with the list, or an option was added
	}
	suspects := map[*session]partial{}
	gone := func(s *session, p partial) {
		if !p.excused {
			w.Report("partial-update", p.conn, s.id, "", []int{p.seq}, "The config_option_update lacks the option %q. The list "+
				"before it has that option; an update must list all options.", p.lost.id)
		}
	}
	w.On(func(ev *event) {
		if ev.session == nil || !ev.hasOptions {
			return
		}
		w.Saw("partial-update", "update-dropped-option", "response-dropped-option")
		set, update := "", ev.request == nil
		if !update && ev.request.verb == setOption {
			set = ev.request.option
		}
		if p, ok := suspects[ev.session]; ok {
			delete(suspects, ev.session)
			back := findOption(ev.options, p.lost.id)
			free := pick(sameValue(p.before, p.list, set), set, "") // the lost option may depend on the value of a changed one
			if back != nil && back.current == p.lost.current && ev.At-p.at < backWithin &&
				sameValues(p.list, ev.options, free) {
				w.Report(p.point, p.conn, ev.Session, "", []int{p.seq, ev.Seq}, "A list of config options lacks %q. The list "+
					"before it and the one after it have that option; each list must have all options.", p.lost.id)
			} else {
				gone(ev.session, p)
			}
		}
		told, without := lostOption(ev.session.options, ev.options), missing(ev.session.options, ev.options)
		if without.id != "" && without.id != set && (update || set != "" && told.id == "") {
			rules.Remember(suspects, rememberedSessions, ev.session, partial{ev.Conn, ev.Seq, ev.At,
				pick(update, "update-dropped-option", "response-dropped-option"), without, ev.session.options, ev.options,
				told.id == "" || !update})
		}
	}, slices.Concat(setUps(answered), []topic{answered(setOption), optionsUpdate})...)
	w.AtEnd(func(rules.End) {
		earliest := func(a, b *session) int { return suspects[a].seq - suspects[b].seq }
		for _, s := range slices.SortedFunc(maps.Keys(suspects), earliest) {
			gone(s, suspects[s])
		}
	})
}

// backWithin is how soon a lost option must be back for the list without it to be a part of a list. Later, the option
// may have been away.
const backWithin = 2 * time.Second

// sameValue reports whether both lists have the option with the given id, with the same value.
func sameValue(before, after []option, id string) bool {
	old, now := findOption(before, id), findOption(after, id)
	return old != nil && now != nil && old.current == now.current
}

// sameValues reports whether all options in before have the same values in after. The option with the id set may have
// another value, unless it is the model or the mode.
func sameValues(before, after []option, set string) bool {
	return !slices.ContainsFunc(before, func(o option) bool {
		now := findOption(after, o.id)
		return now == nil || now.current != o.current && (o.id != set || o.category == "model" || o.category == "mode")
	})
}

// lostOption returns an option that is missing from the new list, or the zero option. It also returns that if the new
// list adds an option, or if the model or the mode changed: such a change may replace other options.
func lostOption(before, after []option) option {
	for _, o := range after {
		old := findOption(before, o.id)
		if old == nil || (o.category == "model" || o.category == "mode") && old.current != o.current {
			return option{}
		}
	}
	return missing(before, after)
}

// missing returns the first option of before that after lacks, or the zero option.
func missing(before, after []option) option {
	return lists.First(before, func(o option) bool { return findOption(after, o.id) == nil })
}

// quiet is how long the mode state and the mode option may differ after an update. It is our convention.
const quiet = 500 * time.Millisecond

// modeSync checks that the mode state and the config option of category mode agree.
func modeSync(w *watch) {
	type change struct {
		seq int
		at  time.Duration
	}
	changed := map[*session]change{}
	setting := map[*session]int{}
	w.On(func(ev *event) {
		if ev.session == nil || !ev.succeeded() {
			return
		}
		delete(changed, ev.session)
		modes := ev.modes
		if modes == nil {
			return
		}
		w.judge("current-mode", !modes.has(modes.current), ev, "", nil, "The current mode %q is not an available mode.",
			modes.current)
		ids := rules.Seen{}
		for _, id := range modes.available {
			if ids.Again(id) {
				w.find("current-mode", ev, id, nil, "Two modes have the id %q.", id)
			}
		}
		if o := modeOption(ev.options); o != nil {
			why := disagree(modes, o)
			w.judge("mode-option", why != "", ev, "", nil, "%s", why)
		}
	}, setUps(answered)...)

	note := func(ev *event) {
		if ev.session != nil {
			changed[ev.session] = change{ev.Seq, ev.At}
		}
	}
	w.On(func(ev *event) {
		note(ev)
		id := ev.update.Get("currentModeId")
		if s := ev.session; s != nil && s.modes != nil {
			w.judge("updated-mode", id.Kind() == wire.String && !s.modes.has(id.Str()), ev, id.Str(), nil,
				"The mode %q is not an available mode.", id.Str())
		}
	}, modeUpdate)
	w.On(note, optionsUpdate)
	w.On(func(ev *event) { setting[ev.session]++ }, asked(setMode), asked(setOption))
	w.On(func(ev *event) { setting[ev.session]--; note(ev) }, answered(setMode), answered(setOption))

	judge := func(s *session, now time.Duration, seq int) {
		c, moved := changed[s]
		if !moved || s.modes == nil || setting[s] > 0 || now-c.at < quiet {
			return
		}
		delete(changed, s)
		o := modeOption(s.options)
		if o == nil {
			return
		}
		if w.Saw("drifted"); s.modes.current != o.current {
			w.Report("drifted", s.conn.n, s.id, "", []int{c.seq, seq},
				"The current mode is %q, but the mode option still says %q.", s.modes.current, o.current)
		}
	}
	w.On(func(ev *event) {
		if ev.session != nil {
			judge(ev.session, ev.At, ev.Seq)
		}
	}, asked(prompt), answered(prompt), asked(setMode), asked(setOption))
	w.AtEnd(func(rules.End) {
		for s := range changed {
			judge(s, w.Last().At, w.Last().Seq)
		}
	})
}

// disagree explains how the mode state and the mode option differ. It returns "" if they agree.
func disagree(m *modeState, o *option) string {
	if m.current != o.current {
		return fmt.Sprintf("The current mode is \"%s\", but the mode option says \"%s\".", clip(m.current), clip(o.current))
	}
	if i := slices.IndexFunc(m.available, func(id string) bool { return !o.has(id) }); i >= 0 {
		return fmt.Sprintf("The mode \"%s\" is available, but is not a value of the mode option.", clip(m.available[i]))
	}
	if i := slices.IndexFunc(o.values, func(value string) bool { return !m.has(value) }); i >= 0 {
		return fmt.Sprintf("The mode option has the value \"%s\", which is not an available mode.", clip(o.values[i]))
	}
	return ""
}
