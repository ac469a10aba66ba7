package invariants

import (
	"fmt"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// settingsHold judges that what a user has set holds: a load or resume tells it, and another
// model is asked when another one was chosen.
func settingsHold(v *version) *rule {
	r := v.ofAgent("SETTINGS", "A mode or option that was set is told, and holds until it is set again.")
	option := r.Warn("option-lost", "a session that is loaded or resumed tells another value of an option than the one that held",
		"CONFIG-008")
	mode := r.Warn("mode-lost", "a session that is loaded or resumed tells another mode than the one that held", "CONFIG-008")
	effect := r.Lint("no-effect", "another model was chosen, and the one before is asked", "CONFIG-008")
	return r.Watching(func(w *watch) {
		type setting struct {
			value string
			seq   int
		}
		type settings struct {
			options map[string]setting
			mode    setting
			model   setting // the option's value at the latest request, and the model asked
			asked   string
			chosen  string // the value of the option for models
		}
		all := map[string]*settings{} // by the id of a session, over all connections
		of := func(id string) *settings {
			if all[id] == nil {
				rules.Remember(all, rememberedSessions, id, &settings{options: map[string]setting{}})
			}
			return all[id]
		}
		learn := func(ev *event, s *settings) {
			for _, o := range ev.options {
				if old, known := s.options[o.id]; known && old.value != o.current {
					s.options[o.id] = setting{o.current, ev.Seq}
				}
				if o.category == "model" {
					s.chosen = o.current
				}
			}
		}
		w.On(func(ev *event) { delete(all, ev.Session) }, asked(deleteSession))
		w.On(func(ev *event) {
			s := of(ev.Session)
			if s == nil || !ev.succeeded() {
				return
			}
			now := findOption(ev.options, ev.request.option)
			if now == nil {
				return
			}
			s.options[now.id] = setting{now.current, ev.Seq}
			learn(ev, s)
		}, answered(setOption))
		w.On(func(ev *event) {
			if s := of(ev.Session); s != nil && ev.succeeded() {
				s.mode = setting{ev.request.mode, ev.Seq}
				if o := modeOption(ev.session.options); o != nil && o.has(s.mode.value) {
					s.options[o.id] = s.mode
				}
			}
		}, answered(setMode))
		w.On(func(ev *event) {
			if s := of(ev.Session); s != nil && s.mode.seq > 0 {
				s.mode = setting{ev.update.Get("currentModeId").Str(), ev.Seq}
			}
		}, modeUpdate)
		w.On(func(ev *event) {
			if s := of(ev.Session); s != nil {
				learn(ev, s)
			}
		}, optionsUpdate)
		w.On(func(ev *event) {
			s := all[ev.Session]
			if s == nil || !ev.succeeded() {
				return
			}
			if ev.modes != nil && s.mode.seq > 0 && ev.modes.has(s.mode.value) {
				w.judge(mode, ev.modes.current != s.mode.value, ev, "", []int{s.mode.seq, ev.Ref},
					"The mode of the session was %q, and %s tells %q.", s.mode.value, ev.request.method, ev.modes.current)
			}
			for _, o := range ev.options {
				if held, set := s.options[o.id]; set && (!o.selects || o.has(held.value)) {
					w.judge(option, o.current != held.value, ev, o.id, []int{held.seq, ev.Ref},
						"The option %q of the session was %q, and %s tells %q.", o.id, held.value, ev.request.method, o.current)
				}
			}
		}, answered(loadSession), answered(resumeSession))
		w.On(func(ev *event) {
			s := all[ev.Session]
			if ev.Kind != transcript.ModelRequest || !ev.body.Get("lane").Is("main") || s == nil || s.chosen == "" {
				return
			}
			asked := ev.body.Get("model").Str()
			if s.model.seq > 0 && s.model.value != s.chosen {
				w.judge(effect, asked == s.asked, ev, fmt.Sprint(s.chosen), []int{s.model.seq},
					"The option for the model was changed from %q to %q, and the agent asks %q as before.", s.model.value, s.chosen, asked)
			}
			s.model, s.asked = setting{s.chosen, ev.Seq}, asked
		}, modelEvent)
	})
}
