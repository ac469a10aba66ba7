package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// settingsHold checks that the user's settings persist. A load or resume must return them, and the agent must use
// another model after the user has chosen one, in that session alone.
func settingsHold(w *watch) {
	if !w.version.states {
		settingsApart(w)
	}
	all := &settingWatch{w, map[string]*settings{}}
	w.On(func(ev *event) { delete(all.of, ev.Session) }, asked(deleteSession))
	all.on(func(ev *event, s *settings) {
		if o := findOption(ev.options, ev.request.option); o != nil {
			s.options[o.id] = setting{o.current, ev.Seq}
			s.learn(ev)
		}
	}, answered(setOption))
	all.on(func(ev *event, s *settings) {
		s.mode = setting{ev.request.mode, ev.Seq}
		if o := modeOption(ev.session.options); o != nil && o.has(s.mode.value) {
			s.options[o.id] = s.mode
		}
	}, answered(setMode))
	all.on(func(ev *event, s *settings) {
		if s.mode.seq > 0 {
			s.mode = setting{ev.update.Get("currentModeId").Str(), ev.Seq}
		}
	}, modeUpdate)
	all.on(func(ev *event, s *settings) { s.learn(ev) }, optionsUpdate, answered(newSession))
	w.On(func(ev *event) {
		if s := all.of[ev.Session]; s != nil && ev.succeeded() {
			all.restored(ev, s)
		}
	}, answered(loadSession), answered(resumeSession))
	w.On(func(ev *event) {
		s := all.of[ev.Session]
		if s != nil && s.chosen != "" && ev.Kind == transcript.ModelRequest && ev.converses() {
			all.asked(ev, s)
		}
	}, modelEvent)
}

type settingWatch struct {
	*watch
	of map[string]*settings // by session id, over all connections
}

// setting is a value, with the Seq of the entry that set the value.
type setting struct {
	value string
	seq   int
}

// settings has the values that a session should have. Only values that the user set are judged.
type settings struct {
	options map[string]setting
	mode    setting
	chosen  string   // current value of the model option
	model   setting  // value of the model option at the latest model request
	named   string   // model named in that request
	models  []string // values of the model option
	fell    *turn    // turn in which the agent began to use another of these models of its own accord
}

// on calls note for updates and for successful answers in a session.
func (w *settingWatch) on(note func(*event, *settings), about ...topic) {
	w.On(func(ev *event) {
		if ev.session == nil || ev.request != nil && !ev.succeeded() {
			return
		}
		if w.of[ev.Session] == nil {
			rules.Remember(w.of, rememberedSessions, ev.Session, &settings{options: map[string]setting{}})
		}
		if s := w.of[ev.Session]; s != nil {
			note(ev, s)
		}
	}, about...)
}

// learn updates the known options from an entry of the agent.
func (s *settings) learn(ev *event) {
	for _, o := range ev.options {
		if old, known := s.options[o.id]; known && old.value != o.current {
			s.options[o.id] = setting{o.current, ev.Seq}
		}
		if o.category == "model" {
			s.chosen, s.models = o.current, o.values
		}
	}
}

// restored checks the settings in the answer to a load or resume.
func (w *settingWatch) restored(ev *event, s *settings) {
	if ev.modes != nil && s.mode.seq > 0 && ev.modes.has(s.mode.value) {
		w.judge("mode-lost", ev.modes.current != s.mode.value, ev, "", []int{s.mode.seq, ev.Ref},
			"The mode of the session was %q, but %s returned %q.", s.mode.value, ev.request.method, ev.modes.current)
	}
	for _, o := range ev.options {
		if held, set := s.options[o.id]; set && (!o.selects || o.has(held.value)) {
			w.judge("option-lost", o.current != held.value, ev, o.id, []int{held.seq, ev.Ref},
				"The option %q of the session was %q, but %s returned %q.",
				o.id, held.value, ev.request.method, o.current)
		}
	}
	s.learn(ev) // the agent has told that these values hold now
}

// asked checks the name of the model in a model request.
func (w *settingWatch) asked(ev *event, s *settings) {
	named := ev.body.Get("model").Str()
	if s.model.seq > 0 && s.model.value != s.chosen {
		w.judge("no-effect", named == s.named && s.among(named) != s.chosen, ev, s.chosen, []int{s.model.seq},
			"The model option was changed from %q to %q, but the agent still uses the model %q.", s.model.value,
			s.chosen, named)
	}
	if s.model.seq > 0 && s.model.value == s.chosen && strings.Contains(s.named, s.chosen) {
		other := w.chosenElsewhere(s, named)
		w.judge("other-session", named != s.named && other != "", ev, "", []int{s.model.seq},
			"The model option of the session is still %q, but the agent now uses the model %q, which the user chose in "+
				"the session %q.", s.chosen, named, other)
	}
	w.fallsBack(ev, s, named)
	s.model, s.named = setting{s.chosen, ev.Seq}, named
}

// fallsBack checks that the agent does not go on with another model in a later turn unless it has told so.
func (w *settingWatch) fallsBack(ev *event, s *settings, named string) {
	is, t := s.among(named), w.state.turnOf(ev)
	switch {
	case t == nil || is == "" || is == s.chosen:
		s.fell = nil
	case s.model.seq > 0 && s.model.value == s.chosen && s.among(s.named) == s.chosen:
		s.fell = t
	case s.fell != nil && s.fell != t:
		w.judge("untold", w.chosenElsewhere(s, named) == "", ev, "", []int{s.fell.started},
			"The model option of the session is still %q, but since another turn the agent uses the model %q.", s.chosen, named)
	}
}

// among returns the value of the model option that a name of a model contains, the longest one, or "".
func (s *settings) among(named string) (longest string) {
	for _, model := range s.models {
		if strings.Contains(named, model) && len(model) > len(longest) {
			longest = model
		}
	}
	return longest
}

// chosenElsewhere returns the id of a session other than s whose model option has the named model, or "".
func (w *settingWatch) chosenElsewhere(s *settings, named string) string {
	for id, other := range w.of {
		if other != s && other.chosen != "" && other.chosen != s.chosen && strings.Contains(named, other.chosen) {
			return id
		}
	}
	return ""
}
