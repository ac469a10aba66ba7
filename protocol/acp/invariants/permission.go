package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// permGuard judges permission requests, and that a tool waits for the answer
// and obeys it.
func permGuard(v *version) *rule {
	r := v.ofAgent("PERM-GUARD",
		"A tool call for which permission is asked does not run before the answer, nor against it.", 1, 2)
	early := r.In(1).Warn("early-status", "a tool call began while its permission was not answered", "PERM-006")
	ranEarly := r.In(1).Fail("early-effect",
		"the operation of a tool call was carried out while its permission was not answered", "PERM-006")
	rejected := r.In(1).Fail("rejected", "a tool call was completed although its permission was rejected", "PERM-007")
	cancelled := r.In(1).Fail("cancelled",
		"a tool call was completed although its permission was cancelled", "PERM-007", "CANCEL-016")
	refused := r.In(1).Fail("error-answer",
		"a tool call was completed although its permission request failed", "PERM-007", "PERM-013")
	duplicate := r.Fail("duplicate-option", "two options of a permission request have the same id",
		pick(v.number == 1, "PERM-005", "V2-PER-001"))
	choice := r.In(1).Lint("no-choice", "a permission request does not let the user both allow and reject", "PERM-004")
	deniedEffect := r.In(1).Fail("effect-after-denial",
		"the operation of a tool call was carried out although its permission was denied", "PERM-007")
	return r.Watching(func(w *watch) {
		w.On(func(ev *event) {
			ids := rules.Seen{}
			var allow, reject bool
			for o := range ev.params.Get("options").Items() {
				id, kind := o.Get("optionId").Str(), o.Get("kind").Str()
				if w.Saw(duplicate); ids.Again(id) {
					w.find(duplicate, ev, id, nil, "Two options of the permission request have the id %q.", id)
				}
				allow = allow || strings.HasPrefix(kind, "allow_")
				reject = reject || strings.HasPrefix(kind, "reject_")
			}
			if w.Saw(choice); !allow || !reject {
				w.find(choice, ev, "", nil, "The permission request offers %d options, and no way to %s.", len(ids),
					pick(allow, "reject", pick(reject, "allow", "choose")))
			}
		}, asked(permission))

		w.On(func(ev *event) {
			t, next := ev.tool, readStatus(ev.update.Get("status"))
			if t == nil {
				return
			}
			switch {
			case t.asked != nil:
				w.judge(early, next == inProgress || next == completed, ev, t.id, []int{t.asked.seq},
					"Tool call %q became %s while its permission request was not answered.", t.id, next)
			case t.denied > 0 && next.final():
				point := rejected
				switch t.denial {
				case dismissed:
					point = cancelled
				case failedAnswer:
					point = refused
				}
				w.judge(point, next == completed, ev, t.id, []int{t.first, t.denied},
					"Tool call %q was completed although its permission was answered with %s.", t.id, t.denial)
			}
		}, toolUpdate, toolCall)

		w.watchEffects(ranEarly, deniedEffect)
	})
}

// watchEffects judges what the agent does for a tool call whose permission is not
// answered, or was denied.
func (w *watch) watchEffects(ranEarly, deniedEffect int) {
	// marks are the paths and commands a waiting tool call is about.
	marks := map[*tool][]string{}
	w.On(func(ev *event) {
		call := ev.params.Get("toolCall")
		if ev.tool != nil {
			rules.Remember(marks, rememberedTools, ev.tool, appendMarks(nil, call))
		}
	}, asked(permission))
	// forbidden are the marks of denied tool calls, until the agent
	// begins another call, which may be allowed without a question.
	type denied struct {
		tool *tool
		seq  int
		of   []string
	}
	forbidden := map[*session][]denied{}
	w.On(func(ev *event) {
		t := ev.request.tool
		if t != nil && denial(ev) != granted && ev.session != nil {
			forbidden[ev.session] = append(forbidden[ev.session], denied{t, ev.Seq, marks[t]})
		}
		delete(marks, t)
	}, answered(permission))
	w.On(func(ev *event) { delete(forbidden, ev.session) }, toolCall, asked(permission), answered(prompt))
	effect := func(mark string) func(*event) {
		return func(ev *event) {
			subject := ev.params.Get(mark).Str()
			does := func(t *tool, about []string) bool {
				return subject != "" && slices.Contains(about, subject) && aloneIn(ev.session, t)
			}
			for _, d := range forbidden[ev.session] {
				w.judge(deniedEffect, does(d.tool, d.of), ev, d.tool.id, []int{d.tool.first, d.seq},
					"%s was called for %q although the permission for it was denied.", ev.Method, subject)
			}
			for t, about := range marks {
				if t.asked != nil && t.asked.session == ev.session {
					w.judge(ranEarly, does(t, about), ev, t.id, []int{t.first, t.asked.seq},
						"%s was called for %q while the permission for it was not answered.", ev.Method, subject)
				}
			}
		}
	}
	w.On(effect("path"), asked(writeFile))
	w.On(effect("command"), asked(createTerminal))
}

// aloneIn reports whether no other tool call is at work in the session, which
// could be the one that acts.
func aloneIn(s *session, t *tool) bool {
	turn := s.turn()
	return turn != nil && !slices.ContainsFunc(turn.tools, func(o *tool) bool { return o != t && !o.status.final() })
}

// appendMarks collects the paths and the command of a tool call.
func appendMarks(marks []string, call wire.Value) []string {
	for l := range call.Get("locations").Items() {
		marks = append(marks, l.Get("path").Str())
	}
	for c := range call.Get("content").Items() {
		if c.Get("type").Is("diff") {
			marks = append(marks, c.Get("path").Str())
		}
	}
	for _, key := range []string{"command", "path", "file_path", "filePath"} {
		if v := call.Get("rawInput").Get(key); v.Kind() == wire.String {
			marks = append(marks, v.Str())
		}
	}
	return marks
}
