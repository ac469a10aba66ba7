package invariants

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// permGuard checks permission requests. It also checks that the tool call waits for the answer and obeys the answer.
func permGuard(w *watch) {
	w.On(func(ev *event) {
		ids := rules.Seen{}
		var allow, reject bool
		for o := range ev.params.Get("options").Items() {
			id, kind := o.Get("optionId").Str(), o.Get("kind").Str()
			if w.Saw("duplicate-option"); ids.Again(id) {
				w.find("duplicate-option", ev, id, nil, "Two options of the permission request have the id %q.", id)
			}
			allow = allow || strings.HasPrefix(kind, "allow_")
			reject = reject || strings.HasPrefix(kind, "reject_")
		}
		if t := ev.tool; t != nil {
			w.judge("early-start", t.status == inProgress, ev, t.id, []int{t.seq},
				"The agent asks for permission for tool call %q but shows it as in_progress; a waiting call is "+
					"pending.", t.id)
		}
		if w.Saw("no-choice"); !allow || !reject {
			w.find("no-choice", ev, "", nil, "The permission request offers %d options, but no way to %s.", len(ids),
				pick(allow, "reject", pick(reject, "allow", "choose")))
		}
	}, asked(permission))

	w.On(func(ev *event) {
		t, next := ev.tool, w.version.readStatus(ev.update.Get("status"))
		if t == nil {
			return
		}
		switch {
		case t.asked != nil:
			w.judge("early-status", next == inProgress || next == completed, ev, t.id, []int{t.asked.seq},
				"Tool call %q became %s while its permission request was not answered.", t.id, next)
		case t.denied > 0 && next.final():
			point := "rejected"
			switch t.denial {
			case dismissed:
				point = "cancelled"
			case failedAnswer:
				point = "error-answer"
			}
			w.judge(point, next == completed, ev, t.id, []int{t.first, t.denied},
				"Tool call %q was completed although its permission was answered with %s.", t.id, t.denial)
		}
	}, toolUpdate, toolCall)

	w.notAwaited()
	w.watchEffects()
	w.watchNames()
}

// notAwaited finds tool calls that the agent reports as failed while the user thinks, and that the user then allows.
func (w *watch) notAwaited() {
	const soon = time.Minute // an agent may give up a question after a long time
	failures := map[*request]int{}
	w.On(func(ev *event) {
		if t := ev.tool; t != nil && t.asked != nil && w.version.readStatus(ev.update.Get("status")) == failed {
			rules.Remember(failures, rememberedRequests, t.asked, ev.Seq)
		}
	}, toolUpdate, toolCall)
	w.On(func(ev *event) {
		r, at := ev.request, failures[ev.request]
		delete(failures, r)
		if r.tool == nil || r.turn == nil || !allows(ev) {
			return
		}
		denied := slices.ContainsFunc(r.turn.tools, func(t *tool) bool { return t.denied > 0 })
		gone := at > 0 && r.back == nil && r.turn.alone() && !r.turn.excused() && !denied && ev.At-r.at < soon &&
			w.state.models.failedIn(r.turn) == 0
		w.judge("not-awaited", gone, ev, r.tool.id, []int{r.seq, at},
			"The user allowed tool call %q, but the agent had reported the call as failed before this answer.", r.tool.id)
	}, answered(permission))
}

// watchNames finds permission requests that name the wrong tool call: the request has the path or command of another
// call of the turn, and the named call has different ones.
func (w *watch) watchNames() {
	type call struct {
		of *session
		id string
	}
	type wrong struct {
		seq   int
		about []string
		other *tool
	}
	shown, named := map[call][]string{}, map[call]wrong{} // paths and commands of each call, from its own updates
	meet := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(mark string) bool { return slices.Contains(b, mark) })
	}
	settle := func(ev *event, c call) {
		if n, ok := named[c]; ok && len(shown[c]) > 0 {
			w.judge("other-call", !meet(shown[c], n.about), ev, c.id, []int{n.seq, n.other.first},
				"A permission request names tool call %q about %q, but asks about %q, the subject of tool call %q.",
				c.id, shown[c][0], n.about[0], n.other.id)
			delete(named, c)
		}
	}
	w.On(func(ev *event) {
		if c := (call{ev.session, ev.update.Get("toolCallId").Str()}); ev.session != nil {
			rules.Remember(shown, rememberedTools, c, appendTexts(shown[c], ev.update))
			settle(ev, c)
		}
	}, toolCall, toolUpdate)
	w.On(func(ev *event) {
		if ev.tool == nil || ev.session.turn() == nil {
			return
		}
		c, about := call{ev.session, ev.tool.id}, appendTexts(nil, ev.params.Path(w.version.call))
		for _, t := range ev.session.turn().tools {
			if t != ev.tool && !meet(shown[c], about) && meet(shown[call{ev.session, t.id}], about) {
				rules.Remember(named, rememberedTools, c, wrong{ev.Seq, about, t})
				settle(ev, c)
				return
			}
		}
	}, asked(permission))
}

// watchEffects reports an effect of a tool call whose permission is unanswered or denied.
func (w *watch) watchEffects() {
	// marks has the paths and commands of tool calls that wait for a permission.
	marks := map[*tool][]string{}
	w.On(func(ev *event) {
		call := ev.params.Get("toolCall")
		if ev.tool != nil {
			rules.Remember(marks, rememberedTools, ev.tool, appendMarks(nil, call))
		}
	}, asked(permission))
	// forbidden has the paths and commands of denied tool calls. When the agent announces another call, forbidden is
	// cleared, because that call may need no permission.
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
				w.judge("effect-after-denial", does(d.tool, d.of), ev, d.tool.id, []int{d.tool.first, d.seq},
					"The agent called %s for %q although its permission was denied.", ev.Method, subject)
			}
			for t, about := range marks {
				if t.asked != nil && t.asked.session == ev.session {
					w.judge("early-effect", does(t, about), ev, t.id, []int{t.first, t.asked.seq},
						"The agent called %s for %q before its permission request was answered.", ev.Method, subject)
				}
			}
		}
	}
	w.On(effect("path"), asked(writeFile))
	w.On(effect("command"), asked(createTerminal))
}

// aloneIn reports whether t is the only unfinished tool call of the session's turn. If another call is unfinished,
// that call may have caused the effect.
func aloneIn(s *session, t *tool) bool {
	turn := s.turn()
	return turn != nil && !slices.ContainsFunc(turn.tools, func(o *tool) bool { return o != t && !o.status.final() })
}

// appendMarks appends the paths and the command of a tool call to marks.
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

// appendTexts is like appendMarks, but takes each text of the call's input.
func appendTexts(texts []string, call wire.Value) []string {
	for key, v := range call.Get("rawInput").Members() {
		if text := v.Str(); len(text) >= tellsApart && len(text) <= wholeText && key != "cwd" {
			texts = append(texts, text)
		}
	}
	return appendMarks(texts, call)
}
