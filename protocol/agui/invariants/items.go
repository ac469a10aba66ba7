package invariants

import (
	"maps"
	"slices"

	"github.com/acp-test/acp-test/wire"
)

// pair is what the rules of all streamed items have in common: three points, of an item
// that is opened twice, or continued or closed without being open.
type pair struct{ twice, none int }

func (r *rule) pairs(name string, twice, none []string) pair {
	return pair{
		r.Fail("twice", "a "+name+" is opened that is open", twice...),
		r.Fail("not-open", "a "+name+" is continued or closed that is not open", none...),
	}
}

// judge judges one event of a family.
func (p pair) judge(w *watch, s *stream, ev *event, f family, v verb) {
	i := s.items[key{f, ev.id}]
	switch {
	case i != nil && i.open && i.chunked:
		// For CHUNK-FORM.
	case v == opens:
		if w.Saw(p.twice); i != nil && i.open {
			w.find(p.twice, ev, ev.id, []int{i.at}, "%s opens %s %q, which is open.", ev.kind, called[f], ev.id)
		}
	case v == continues || v == closes:
		w.Saw(p.none)
		switch {
		case i == nil:
			w.find(p.none, ev, ev.id, nil, "%s is for %s %q, which was not opened.", ev.kind, called[f], ev.id)
		case !i.open:
			w.find(p.none, ev, ev.id, []int{i.at}, "%s is for %s %q, which is closed.", ev.kind, called[f], ev.id)
		}
	}
}

// textPair judges text messages.
func textPair() *rule {
	r := newRule("TEXT-PAIR", "A message is opened, continued and closed, each by its id.")
	p := r.pairs("message", []string{"TXT-001"}, []string{"TXT-002"})
	changed := r.Fail("changed", "a message is opened again with another role, name or owner", "TXT-003")
	empty := r.Lint("empty", "a piece of text is empty", "TXT-007")
	widget := r.Lint("activity", "a message has the id of an activity", "TXT-006")
	r.see = func(w *watch, s *stream, ev *event) {
		f, v := means(ev.kind)
		if f != text || v == other {
			return
		}
		p.judge(w, s, ev, f, v)
		i := s.items[key{text, ev.id}]
		if v == opens && i != nil {
			w.Saw(changed)
			role := func(name string) string {
				if name == "" {
					return "assistant"
				}
				return name
			}
			// An event without a subagent agrees with any.
			if role(i.role) != role(ev.v.Get("role").Str()) || i.name != ev.v.Get("name").Str() ||
				ev.owner != "" && i.owner != ev.owner {
				w.find(changed, ev, ev.id, []int{i.at}, "Message %q is opened again with another role, name or owner.", ev.id)
			}
		}
		if v == opens {
			if w.Saw(widget); s.widgets[ev.id] != nil {
				w.find(widget, ev, ev.id, nil, "Message %q has the id of an activity: the official client drops its text.", ev.id)
			}
		}
		if v == continues {
			if w.Saw(empty); ev.v.Get("delta").Is("") {
				w.find(empty, ev, ev.id, nil, "A piece of message %q is empty, which clients of 0.x refuse.", ev.id)
			}
		}
	}
	return r
}

// toolPair judges tool calls.
func toolPair() *rule {
	r := newRule("TOOL-PAIR", "A tool call is opened, continued and closed, each by its id.")
	p := r.pairs("tool call", []string{"TOOL-001"}, []string{"TOOL-001", "TOOL-012"})
	changed := r.Fail("changed", "a tool call is opened again with another name", "TOOL-001")
	owner := r.Fail("owner", "a tool call has another owner than its message", "TOOL-002")
	parent := r.Lint("parent", "a tool call is of a message that was not seen", "TOOL-002")
	r.see = func(w *watch, s *stream, ev *event) {
		f, v := means(ev.kind)
		if f != tool || v == other || v == chunks {
			return
		}
		p.judge(w, s, ev, f, v)
		if v != opens {
			return
		}
		if i := s.items[key{tool, ev.id}]; i != nil {
			if w.Saw(changed); i.name != ev.v.Get("toolCallName").Str() {
				w.find(changed, ev, ev.id, []int{i.at}, "Tool call %q is opened again as %q.", ev.id,
					ev.v.Get("toolCallName").Str())
			}
		}
		of := ev.v.Get("parentMessageId").Str()
		if of == "" {
			return
		}
		w.Saw(owner, parent)
		m := s.items[key{text, of}]
		switch {
		case m == nil && s.thread.opened[of] == 0 && !s.inputMessage(of).Exists():
			w.find(parent, ev, of, nil, "Tool call %q names message %q, which nobody has seen.", ev.id, of)
		case m != nil && ev.owner != "" && m.owner != ev.owner: // one without a subagent is its message's
			w.find(owner, ev, ev.id, []int{m.at}, "Tool call %q and its message %q have different owners.", ev.id, of)
		}
	}
	return r
}

// toolResult judges results of tools.
func toolResult() *rule {
	r := newRule("TOOL-RESULT", "A result is a message of its own, for a call of the agent's own tools.")
	orphan := r.Warn("orphan", "a result is for no call of the thread", "TOOL-004")
	id := r.Fail("id", "a result has the id of another message", "TOOL-005")
	front := r.Fail("front-end", "the agent answers a call of the front end's tool", "TOOL-006")
	twice := r.Warn("twice", "a call is answered twice in a run", "TOOL-005")
	early := r.Warn("early", "a result comes before the end of its call", "TOOL-012")
	r.see = func(w *watch, s *stream, ev *event) {
		if f, v := means(ev.kind); f == text && v == opens && s.answers[ev.id] > 0 {
			w.find(id, ev, ev.id, []int{s.answers[ev.id]}, "A message is opened with the id %q, which is that of a result.",
				ev.id)
		}
		if ev.kind != "TOOL_CALL_RESULT" {
			return
		}
		w.Saw(orphan, id, front, twice, early)
		call := s.items[key{tool, ev.id}]
		own := ev.v.Get("messageId").Str()
		switch {
		case call == nil && s.thread.opened[ev.id] == 0 && !s.inputCall(ev.id):
			w.find(orphan, ev, ev.id, nil, "The result is for tool call %q, which was not made.", ev.id)
		case call != nil && call.open && !call.chunked:
			w.find(early, ev, ev.id, []int{call.at}, "The result of tool call %q comes before its end.", ev.id)
		}
		if call != nil && s.hasFrontTool(call.name) {
			w.find(front, ev, ev.id, []int{call.at}, "%q is a tool of the front end, and the agent answers its call.", call.name)
		}
		if first := s.results[ev.id]; first > 0 {
			w.find(twice, ev, ev.id, []int{first}, "Tool call %q is answered twice.", ev.id)
		} else if at := s.thread.opened[own]; own != "" && (at > 0 || s.inputMessage(own).Exists() && !s.inputMessage(own).
			Get("toolCallId").Is(ev.id)) {
			w.find(id, ev, own, []int{at}, "The result of tool call %q has the id %q, which is that of another message.",
				ev.id, own)
		}
	}
	return r
}

// pendingCalls judges what the end of a run says of calls without a result.
func pendingCalls() *rule {
	r := newRule("PENDING", "A run that called a tool of the front end is a success, with that call pending.")
	list := r.Fail("list", "pendingToolCallIds is not the list of the calls without a result", "TOOL-007")
	waits := r.Fail("interrupted", "a run that called a tool of the front end is interrupted for nothing else", "TOOL-006")
	none := r.Lint("no-list", "calls are pending, and are not named", "TOOL-007")
	silent := r.Lint("unanswered", "a tool of the agent has no result in the stream", "TOOL-008")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind != "RUN_FINISHED" || s.phase != active {
			return
		}
		var pending, front []string
		for _, id := range s.calls {
			if s.results[id] > 0 {
				continue
			}
			pending = append(pending, id)
			if s.hasFrontTool(s.items[key{tool, id}].name) {
				front = append(front, id)
			}
		}
		outcome := ev.v.Path("outcome.type").Str()
		named := ev.v.Path("outcome.pendingToolCallIds")
		if named.Kind() == wire.Array {
			var ids []string
			for id := range named.Items() {
				ids = append(ids, id.Str())
			}
			if w.Saw(list); !slices.Equal(ids, pending) && len(ids)+len(pending) > 0 {
				w.find(list, ev, "", nil, "pendingToolCallIds is %q, and the calls without a result are %q.", ids, pending)
			}
		}
		if len(front) > 0 {
			w.Saw(waits)
			if outcome == "interrupt" && !asksOther(ev.v, front) {
				w.find(waits, ev, "", nil, "The run only called a tool of the front end, and ends with the outcome interrupt.")
			}
		}
		if len(front) > 0 && outcome != "interrupt" && s.modern() {
			if w.Saw(none); named.Kind() != wire.Array {
				w.find(none, ev, "", nil, "Calls of the front end's tools are pending, and the run does not name them.")
			}
		}
		if outcome == "interrupt" || outcome == "cancelled" {
			return
		}
		for _, id := range pending {
			if w.Saw(silent); !slices.Contains(front, id) {
				w.find(silent, ev, id, nil, "Tool call %q of the agent's own has no result in the stream.", id)
			}
		}
	}
	return r
}

// asksOther reports whether an interrupt is about something else than some calls.
func asksOther(v wire.Value, calls []string) bool {
	for i := range v.Path("outcome.interrupts").Items() {
		if !slices.Contains(calls, i.Get("toolCallId").Str()) {
			return true
		}
	}
	return false
}

// chunkForm judges the short form of streamed items.
func chunkForm() *rule {
	r := newRule("CHUNK-FORM", "A chunk opens an item with all it needs, or continues the one it can mean.")
	first := r.Fail("first", "the first chunk of an item lacks its id or its name", "CHK-001")
	conflict := r.Fail("conflict", "a later chunk contradicts the first", "CHK-002")
	mixed := r.Fail("mixed", "an item comes in both forms", "CHK-003")
	many := r.Fail("ambiguous", "a chunk without an id may continue several items", "CHK-004")
	r.see = func(w *watch, s *stream, ev *event) {
		f, v := means(ev.kind)
		if v == other {
			return
		}
		if v != chunks {
			w.Saw(mixed)
			if i := s.items[key{f, ev.id}]; i != nil && i.chunked && v != opens {
				w.find(mixed, ev, ev.id, []int{i.at}, "%s is for %s %q, which came in chunks.", ev.kind, called[f], ev.id)
			}
			return
		}
		id, opening, ambiguous := s.chunk(f, ev)
		w.Saw(first, mixed, many)
		switch i := s.items[key{f, id}]; {
		case ambiguous:
			w.find(many, ev, "", nil, "%s has no id, and several items are open.", ev.kind)
		case id == "" && (ev.v.Get("delta").Str() != "" || f == tool):
			w.find(first, ev, "", nil, "%s opens an item, and has no id.", ev.kind)
		case id == "":
			// Nothing is open, and nothing is said: metadata at the end.
		case opening && f == tool && ev.v.Get("toolCallName").Str() == "":
			w.find(first, ev, id, nil, "The first %s of %q has no toolCallName.", ev.kind, id)
		case opening && i != nil && i.open && !i.chunked:
			w.find(mixed, ev, id, []int{i.at}, "%s is for %s %q, which was opened by a START.", ev.kind, called[f], id)
		case !opening && i != nil:
			w.Saw(conflict)
			for _, name := range conflicts(f, i, ev) {
				w.find(conflict, ev, id, []int{i.at}, "%s of %q has another %s than the first.", ev.kind, id, name)
			}
		}
	}
	return r
}

// conflicts are the members of a chunk that contradict the first of its item.
func conflicts(f family, i *item, ev *event) (names []string) {
	role, name := "role", "name"
	if f == tool {
		role, name = "parentMessageId", "toolCallName"
	}
	was := i.role
	if f == text && was == "" {
		was = "assistant"
	}
	if v := ev.v.Get(role); v.Kind() == wire.String && f != thought && v.Str() != was {
		names = append(names, role)
	}
	if v := ev.v.Get(name); v.Kind() == wire.String && v.Str() != i.name {
		names = append(names, name)
	}
	if ev.owner != "" && ev.owner != i.owner {
		names = append(names, "subagentRunId")
	}
	return names
}

// reasoningPair judges reasoning.
func reasoningPair() *rule {
	r := newRule("REASONING-PAIR", "Spans and messages of reasoning are opened, continued and closed, each by its id.")
	twice := r.Fail("twice", "what is open is opened", "RSN-001")
	none := r.Fail("not-open", "what is not open is continued or closed", "RSN-001")
	entity := r.Warn("entity", "an encrypted value is of something that nobody knows", "RSN-002")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind == "REASONING_ENCRYPTED_VALUE" {
			id := ev.v.Get("entityId").Str()
			w.Saw(entity)
			if s.thread.opened[id] == 0 && !s.inputMessage(id).Exists() && !s.inputCall(id) {
				w.find(entity, ev, id, nil, "The encrypted value is of %q, which nobody knows.", id)
			}
			return
		}
		if f, v := means(ev.kind); (f == thought || f == span) && v != other {
			pair{twice, none}.judge(w, s, ev, f, v)
		}
	}
	return r
}

// subagents judges invocations of subagents, and who owns what.
func subagents() *rule {
	r := newRule("SUBAGENT", "A subagent is announced once, before its events, and what it opened is its own.")
	late := r.Fail("late", "an invocation is announced after its first event", "SUB-001")
	twice := r.Fail("twice", "an invocation is announced twice", "SUB-001")
	unknown := r.Fail("unknown", "an invocation ends that was not announced, or has ended", "SUB-001")
	owner := r.Fail("owner", "what continues an item has another owner", "SUB-002")
	parent := r.Fail("parent", "the parent of an invocation was not announced", "SUB-003")
	suspended := r.Warn("suspended", "an invocation is suspended in a run that is not interrupted", "SUB-004")
	r.see = func(w *watch, s *stream, ev *event) {
		a := s.agents[ev.owner]
		switch ev.kind {
		case "SUBAGENT_STARTED":
			w.Saw(late, twice)
			switch {
			case a != nil && a.announced:
				w.find(twice, ev, ev.owner, nil, "Subagent %q is announced twice in this run.", ev.owner)
			case a != nil:
				w.find(late, ev, ev.owner, nil, "Subagent %q is announced after its first event.", ev.owner)
			}
			if of := ev.v.Get("parentSubagentRunId").Str(); of != "" {
				if w.Saw(parent); s.agents[of] == nil || !s.agents[of].announced {
					w.find(parent, ev, of, nil, "The parent %q of subagent %q was not announced.", of, ev.owner)
				}
			}
			return
		case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
			if w.Saw(unknown); a == nil || !a.announced || a.over {
				w.find(unknown, ev, ev.owner, nil, "Subagent %q ends, and is not active.", ev.owner)
			}
			return
		case "RUN_FINISHED":
			for _, id := range slices.Sorted(maps.Keys(s.agents)) {
				if !s.agents[id].suspended {
					continue
				}
				if w.Saw(suspended); !ev.v.Path("outcome.type").Is("interrupt") {
					w.find(suspended, ev, id, nil, "Subagent %q is suspended, and the run is not interrupted.", id)
				}
			}
			return
		}
		if f, v := means(ev.kind); (v == continues || v == closes) && ev.owner != "" {
			w.Saw(owner)
			if i := s.items[key{f, ev.id}]; i != nil && i.owner != ev.owner {
				w.find(owner, ev, ev.id, []int{i.at}, "%s of %q names subagent %q, and it was opened by %q.", ev.kind, ev.id,
					ev.owner,
					i.owner)
			}
		}
	}
	return r
}

// apart judges that streams that run at the same time do not mix.
func apart() *rule {
	r := newRule("APART", "What one thread's stream has opened is not continued in another's.")
	mixed := r.Fail("mixed", "an event is for an item of another thread", "RUN-016")
	r.see = func(w *watch, s *stream, ev *event) {
		f, v := means(ev.kind)
		if v == other || ev.id == "" || len(s.others) < 2 {
			return
		}
		w.Saw(mixed)
		if s.items[key{f, ev.id}] != nil {
			return
		}
		for id, t := range s.others {
			if at := t.opened[ev.id]; t != s.thread && at > 0 && v != opens {
				w.find(mixed, ev, ev.id, []int{at}, "%s is for %q, which was opened in thread %q.", ev.kind, ev.id, id)
			}
		}
	}
	return r
}
