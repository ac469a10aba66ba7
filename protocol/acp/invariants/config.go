package invariants

import (
	"maps"
	"slices"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// configComplete judges config options: consistent in themselves, and always
// the complete list; their shape is for SHAPE.
func configComplete() *rule {
	r := ofAgent("CONFIG-COMPLETE", "Config options always come as the complete and consistent list.")
	lacks := r.Fail("option-missing",
		"the response to session/set_config_option lacks the option that was set", "CONFIG-007")
	duplicate := r.Fail("duplicate-id", "two config options, or two values of one, have the same id", "CONFIG-004")
	value := r.Warn("current-value", "the current value of a config option is none of its values", "CONFIG-003")
	partialAnswer := r.Warn("partial-response",
		"the response to session/set_config_option lacks options known before", "CONFIG-007")
	partialUpdate := r.Warn("partial-update", "a config_option_update lacks options known before", "CONFIG-009")
	echo := r.Lint("not-applied",
		"the response to session/set_config_option does not show the value that was set", "CONFIG-008")
	return r.watching(func(w *watch) {
		consistent := func(ev *event) {
			ids := map[string]bool{}
			for _, o := range ev.options {
				w.Saw(duplicate)
				if ids[o.id] {
					w.find(duplicate, ev, o.id, nil, "Two config options have the id %q.", o.id)
				}
				ids[o.id] = true
				if !o.selects {
					continue
				}
				w.Saw(value)
				values := map[string]bool{}
				for _, v := range o.values {
					if values[v] {
						w.find(duplicate, ev, o.id+"\x00"+v, nil, "Two values of the config option %q are %q.", o.id, v)
					}
					values[v] = true
				}
				if !values[o.current] {
					w.find(value, ev, o.id, nil, "The current value %q of the config option %q is none of its values.", o.current,
						o.id)
				}
			}
		}
		w.on(consistent, optionsUpdate, answered(newSession), answered(loadSession), answered(resumeSession),
			answered(forkSession), answered(setOption))

		w.on(func(ev *event) {
			r := ev.request
			if !ev.hasOptions || r.session == nil {
				return
			}
			w.Saw(lacks, echo)
			set := findOption(ev.options, r.option)
			switch {
			case set == nil:
				w.find(lacks, ev, r.option, []int{ev.Ref}, "The response lacks the config option %q that was just set.", r.option)
			case set.current != r.value:
				w.find(echo, ev, r.option, []int{ev.Ref}, "The config option %q was set to %q, but the response shows %q.",
					r.option, r.value, set.current)
			}
			w.Saw(partialAnswer)
			if lost := lostOption(r.session.options, ev.options); lost != "" && lost != r.option {
				w.find(partialAnswer, ev, "", []int{ev.Ref},
					"The response lacks the config option %q that was there before; it must be the complete list.", lost)
			}
		}, answered(setOption))
		w.on(func(ev *event) {
			if !ev.hasOptions || ev.session == nil {
				return
			}
			w.Saw(partialUpdate)
			if lost := lostOption(ev.session.options, ev.options); lost != "" {
				w.find(partialUpdate, ev, "", nil,
					"The config_option_update lacks the config option %q that was there before; it must be the complete list.", lost)
			}
		}, optionsUpdate)
	})
}

// lostOption is an option that a new list lacks for no reason: another model
// or mode may bring other options with it.
func lostOption(before, after []option) string {
	for _, o := range after {
		old := findOption(before, o.id)
		if old == nil || (o.category == "model" || o.category == "mode") && old.current != o.current {
			return ""
		}
	}
	for _, o := range before {
		if findOption(after, o.id) == nil {
			return o.id
		}
	}
	return ""
}

// quiet is how long no state update must have come before two views of one
// state have to agree. A convention.
const quiet = 500 * time.Millisecond

// modeSync judges that the mode state and the config option of category mode
// say the same.
func modeSync() *rule {
	r := ofAgent("MODE-SYNC", "The current mode is one of the available ones, and the mode option agrees with it.")
	current := r.Warn("current-mode",
		"the current mode is none of the available ones, or two modes have the same id", "MODE-002")
	update := r.Warn("updated-mode", "a mode update names a mode that is not available", "MODE-007")
	option := r.Warn("mode-option", "modes and the mode option differ when the session is set up", "MODE-009")
	later := r.Warn("drifted", "modes and the mode option differ after a change", "MODE-009", "MODE-010")
	r.Versions = []int{1}
	return r.watching(func(w *watch) {
		type change struct {
			seq int
			at  time.Duration
		}
		changed := map[*session]change{}
		setting := map[*session]int{}
		w.on(func(ev *event) {
			if ev.session == nil || !ev.succeeded() {
				return
			}
			modes, options := ev.modes, ev.options
			if modes != nil {
				w.Saw(current)
				if !modes.has(modes.current) {
					w.find(current, ev, "", nil, "The current mode %q is none of the available modes.", modes.current)
				}
				ids := map[string]bool{}
				for _, id := range modes.available {
					if ids[id] {
						w.find(current, ev, id, nil, "Two modes have the id %q.", id)
					}
					ids[id] = true
				}
			}
			if o := modeOption(options); o != nil && modes != nil {
				w.Saw(option)
				if why := disagree(modes, o); why != "" {
					w.find(option, ev, "", nil, "%s", why)
				}
			}
			delete(changed, ev.session)
		}, answered(newSession), answered(loadSession), answered(resumeSession), answered(forkSession))

		note := func(ev *event) {
			if ev.session != nil {
				changed[ev.session] = change{ev.Seq, ev.At}
			}
		}
		w.on(func(ev *event) {
			note(ev)
			if s := ev.session; s != nil && s.modes != nil {
				w.Saw(update)
				if id := ev.update.Get("currentModeId"); id.Kind() == wire.String && !s.modes.has(id.Str()) {
					w.find(update, ev, id.Str(), nil, "The mode %q is none of the available modes.", id.Str())
				}
			}
		}, modeUpdate)
		w.on(note, optionsUpdate)
		w.on(func(ev *event) { setting[ev.session]++ }, asked(setMode), asked(setOption))
		w.on(func(ev *event) { setting[ev.session]--; note(ev) }, answered(setMode), answered(setOption))

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
			w.Saw(later)
			if s.modes.current != o.current {
				w.Report(later, s.conn.n, s.id, "", []int{c.seq, seq}, "The current mode is %q, but the mode option still says %q.",
					s.modes.current, o.current)
			}
		}
		w.on(func(ev *event) {
			if ev.session != nil {
				judge(ev.session, ev.At, ev.Seq)
			}
		}, asked(prompt), answered(prompt), asked(setMode), asked(setOption))
		w.finish(func(rules.End) {
			left := slices.SortedFunc(maps.Keys(changed), func(a, b *session) int { return changed[a].seq - changed[b].seq })
			for _, s := range left {
				judge(s, w.Last().At, w.Last().Seq)
			}
		})
	})
}

// disagree says how the two views of the mode differ, "" if they do not.
func disagree(m *modeState, o *option) string {
	if m.current != o.current {
		return "The current mode is \"" + clip(m.current) + "\", but the mode option says \"" + clip(o.current) + "\"."
	}
	for _, id := range m.available {
		if !o.has(id) {
			return "The mode \"" + clip(id) + "\" is available, but is no value of the mode option."
		}
	}
	for _, v := range o.values {
		if !m.has(v) {
			return "The mode option has the value \"" + clip(v) + "\", which is no available mode."
		}
	}
	return ""
}
