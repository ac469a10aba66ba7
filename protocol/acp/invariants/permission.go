package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// permGuard judges permission requests, and that a tool waits for the answer
// and obeys it.
func permGuard() *rule {
	r := ofAgent("PERM-GUARD", "A tool call for which permission is asked does not run before the answer, nor against it.")
	early := r.Warn("early-status", "a tool call began while its permission was not answered", "PERM-006")
	ranEarly := r.Fail("early-effect",
		"the operation of a tool call was carried out while its permission was not answered", "PERM-006")
	rejected := r.Fail("rejected", "a tool call was completed although its permission was rejected", "PERM-007")
	cancelled := r.Fail("cancelled",
		"a tool call was completed although its permission was cancelled", "PERM-007", "CANCEL-016")
	refused := r.Fail("error-answer",
		"a tool call was completed although its permission request failed", "PERM-007", "PERM-013")
	duplicate := r.Fail("duplicate-option", "two options of a permission request have the same id", "PERM-005")
	choice := r.Lint("no-choice", "a permission request does not let the user both allow and reject", "PERM-004")
	deniedEffect := r.Fail("effect-after-denial",
		"the operation of a tool call was carried out although its permission was denied", "PERM-007")
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			w.Saw(duplicate, choice)
			ids := map[string]bool{}
			var allow, reject bool
			for o := range ev.params.Get("options").Items() {
				id, kind := o.Get("optionId").Str(), o.Get("kind").Str()
				if ids[id] {
					w.find(duplicate, ev, id, nil, "Two options of the permission request have the id %q.", id)
				}
				ids[id] = true
				allow = allow || strings.HasPrefix(kind, "allow_")
				reject = reject || strings.HasPrefix(kind, "reject_")
			}
			if !allow || !reject {
				w.find(choice, ev, "", nil, "The permission request offers %d options, and no way to %s.", len(ids),
					pick(allow, "reject", pick(reject, "allow", "choose")))
			}
		}, asked(permission))

		w.on(func(ev *event) {
			t, next := ev.tool, readStatus(ev.update.Get("status"))
			if t == nil {
				return
			}
			switch {
			case t.asked != nil:
				w.Saw(early)
				if next == inProgress || next == completed {
					w.find(early, ev, t.id, []int{t.asked.seq},
						"Tool call %q became %s while its permission request was not answered.", t.id, next)
				}
			case t.denied > 0 && next.final():
				point := rejected
				if t.denial == "cancelled" {
					point = cancelled
				} else if t.denial == "an error" {
					point = refused
				}
				w.Saw(point)
				if next == completed {
					w.find(point, ev, t.id, []int{t.first, t.denied},
						"Tool call %q was completed although its permission was answered with %s.", t.id, t.denial)
				}
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
	w.on(func(ev *event) {
		call := ev.params.Get("toolCall")
		if t := ev.tool; t != nil && len(marks) < rememberedTools {
			marks[t] = appendMarks(nil, call)
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
	w.on(func(ev *event) {
		t := ev.request.tool
		if t != nil && denial(ev) != "" && ev.session != nil {
			forbidden[ev.session] = append(forbidden[ev.session], denied{t, ev.Seq, marks[t]})
		}
		delete(marks, t)
	}, answered(permission))
	w.on(func(ev *event) { delete(forbidden, ev.session) }, toolCall, asked(permission), answered(prompt))
	effect := func(mark string) func(*event) {
		return func(ev *event) {
			for _, d := range forbidden[ev.session] {
				w.Saw(deniedEffect)
				subject := ev.params.Get(mark).Str()
				if subject != "" && slices.Contains(d.of, subject) && aloneIn(ev.session, d.tool) {
					w.find(deniedEffect, ev, d.tool.id, []int{d.tool.first, d.seq},
						"%s was called for %q although the permission for it was denied.", ev.Method, subject)
				}
			}
			for t, about := range marks {
				if t.asked == nil || t.asked.session != ev.session {
					continue
				}
				w.Saw(ranEarly)
				subject := ev.params.Get(mark).Str()
				if subject != "" && slices.Contains(about, subject) && aloneIn(ev.session, t) {
					w.find(ranEarly, ev, t.id, []int{t.first, t.asked.seq},
						"%s was called for %q while the permission for it was not answered.", ev.Method, subject)
				}
			}
		}
	}
	w.on(effect("path"), asked(writeFile))
	w.on(effect("command"), asked(createTerminal))
}

// aloneIn reports whether no other tool call is at work in the session, which
// could be the one that acts.
func aloneIn(s *session, t *tool) bool {
	turn := s.turn()
	if turn == nil {
		return false
	}
	for _, other := range turn.tools {
		if other != t && !other.status.final() {
			return false
		}
	}
	return true
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
