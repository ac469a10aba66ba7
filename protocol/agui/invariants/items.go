package invariants

import (
	"cmp"
	"maps"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// paired has the checks for all streamed items: an event must not open an item that is open, and must not continue or
// close an item that is not open.
func (w *watch) paired(ev *event) {
	i, name := ev.item, called[ev.family]
	switch {
	case i != nil && i.open && i.chunked || ev.verb == chunks:
		// CHUNK-FORM judges chunks.
	case ev.verb == opens:
		w.judge("twice", i != nil && i.open, ev, ev.id, i.begun(),
			"%s opens %s %q, which is already open.", ev.kind, name, ev.id)
	case i == nil:
		w.judge("not-open", true, ev, ev.id, nil, "%s is for %s %q, which was never opened.", ev.kind, name, ev.id)
	default:
		w.judge("not-open", !i.open, ev, ev.id, i.begun(), "%s is for %s %q, which is closed.", ev.kind, name, ev.id)
	}
}

// textPair checks the events of text messages.
func textPair(w *watch) {
	w.On(w.paired, "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END")
	w.On(func(ev *event) {
		if i := ev.item; i != nil {
			// An event without a subagent agrees with any.
			w.judge("changed", cmp.Or(i.role, "assistant") != cmp.Or(ev.v.Get("role").Str(), "assistant") ||
				i.name != ev.v.Get("name").Str() || ev.owner != "" && i.owner != ev.owner, ev, ev.id, i.begun(),
				"Message %q is opened again with another role, name or subagent.", ev.id)
		}
		w.judge("reasoning", ev.items[key{thought, ev.id}] != nil, ev, ev.id, ev.items[key{thought, ev.id}].begun(),
			"The assistant's message %q has the id of a reasoning message.", ev.id)
		w.judge("activity", ev.widgets[ev.id] != nil, ev, ev.id, nil,
			"Message %q has the id of an activity: the official client drops its text.", ev.id)
	}, "TEXT_MESSAGE_START")
	w.On(func(ev *event) {
		w.judge("empty", ev.v.Get("delta").Is(""), ev, ev.id, nil,
			"A piece of message %q is empty, which clients of 0.x refuse.", ev.id)
	}, "TEXT_MESSAGE_CONTENT")
}

// toolPair checks the events of tool calls.
func toolPair(w *watch) {
	w.On(w.paired, "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END")
	w.On(func(ev *event) {
		name := ev.v.Get("toolCallName").Str()
		if i := ev.item; i != nil {
			w.judge("changed", i.name != name, ev, ev.id, i.begun(), "Tool call %q is opened again as %q.", ev.id, name)
		}
		of := ev.v.Get("parentMessageId").Str()
		if of == "" {
			return
		}
		w.Saw("owner", "parent")
		m := ev.items[key{text, of}]
		switch {
		case m == nil && ev.thread.opened[of] == 0 && !ev.inputMessage(of).Exists():
			w.find("parent", ev, of, nil,
				"Tool call %q names message %q, which neither input nor stream has.", ev.id, of)
		case m != nil && ev.owner != "" && m.owner != ev.owner: // without a subagent, the call belongs to that of its message
			w.find("owner", ev, ev.id, m.begun(), "Tool call %q and message %q have different subagents.", ev.id, of)
		}
	}, "TOOL_CALL_START")
}

// toolResult checks the results of tool calls.
func toolResult(w *watch) {
	w.On(func(ev *event) {
		if at := ev.answers[ev.id]; at > 0 {
			w.find("id", ev, ev.id, []int{at}, "A message is opened with the id %q of a tool result.", ev.id)
		}
	}, "TEXT_MESSAGE_START")
	w.On(func(ev *event) {
		w.Saw("orphan", "id", "front-end", "twice", "early")
		call, own := ev.items[key{tool, ev.id}], ev.v.Get("messageId").Str()
		switch {
		case call == nil && ev.thread.opened[ev.id] == 0 && !ev.inputCall(ev.id).Exists():
			w.find("orphan", ev, ev.id, nil, "The result is for tool call %q, which the agent never made.", ev.id)
		case call != nil && call.open && !call.chunked:
			w.find("early", ev, ev.id, call.begun(),
				"The result of tool call %q comes before the call's TOOL_CALL_END.", ev.id)
		}
		if call != nil && ev.hasFrontTool(call.name) {
			w.find("front-end", ev, ev.id, call.begun(),
				"%q is a tool of the front end, but the agent sent the call's result.", call.name)
		}
		posted, at := ev.inputMessage(own), ev.thread.opened[own]
		if first := ev.results[ev.id]; first > 0 {
			w.find("twice", ev, ev.id, []int{first}, "Tool call %q has two results.", ev.id)
		} else if own != "" && (at > 0 || posted.Exists() && !posted.Get("toolCallId").Is(ev.id)) {
			w.find("id", ev, own, []int{at}, "The result of tool call %q has the id %q of another message.",
				ev.id, own)
		}
	}, "TOOL_CALL_RESULT")
	toldModelOnly(w)
}

// toldModelOnly checks that the front end gets each result that the model gets. A stream without any results is not
// judged. The check comes at the end of the run: the log may have the model request before events that the agent sent
// earlier.
func toldModelOnly(w *watch) {
	w.On(func(ev *event) {
		if a, ok := fakellm.ReadAsked(ev.Entry); ok && ev.Kind == transcript.ModelRequest && !ev.heard.Unclear {
			for _, p := range a.Conversation() {
				if p.Who == "result" {
					ev.told[p.Call] = ev.Seq
				}
			}
		}
	}, modelSide)
	w.On(func(ev *event) {
		for _, id := range ev.calls {
			w.judge("untold", ev.phase == finished && ev.untold(id), ev, id, []int{ev.told[id]},
				"The model has the result of tool call %q, but the stream has no result of the call.", id)
		}
	}, ended)
}

// pendingCalls checks the end of a run in which some calls have no result.
func pendingCalls(w *watch) {
	w.On(func(ev *event) {
		if ev.phase != active {
			return
		}
		pending := slices.DeleteFunc(slices.Clone(ev.calls), func(id string) bool { return ev.results[id] > 0 })
		front := slices.DeleteFunc(slices.Clone(pending), func(id string) bool {
			return !ev.hasFrontTool(ev.items[key{tool, id}].name)
		})
		var ids []string
		outcome, named := ev.v.Path("outcome.type").Str(), ev.v.Path("outcome.pendingToolCallIds")
		if named.Kind() == wire.Array {
			ids = lists.Collect(named.Items(), wire.Value.Str)
			w.judge("list", !slices.Equal(ids, pending), ev, "", nil,
				"pendingToolCallIds is %q, but the calls without a result are %q.", ids, pending)
		}
		if len(front) > 0 {
			w.judge("interrupted", outcome == "interrupt" && !asksOther(ev.v, front), ev, "", nil,
				"The run only called a tool of the front end, but ends with outcome interrupt instead of success.")
		}
		if len(front) > 0 && outcome != "interrupt" && ev.modern() {
			w.judge("no-list", named.Kind() != wire.Array, ev, "", nil,
				"Calls of the front end's tools are pending, but RUN_FINISHED has no pendingToolCallIds.")
		}
		if outcome == "interrupt" || outcome == "cancelled" {
			return
		}
		for _, id := range pending {
			if ev.untold(id) { // TOOL-RESULT reports it
				continue
			}
			w.judge("unanswered", !slices.Contains(front, id) && !slices.Contains(ids, id), ev, id, nil,
				"The agent's own tool call %q has no result in the stream.", id)
		}
	}, "RUN_FINISHED")
}

// untold reports whether the model has the result of a call and the front end does not. It returns false if the front
// end has no results at all.
func (s *stream) untold(id string) bool {
	return s.told[id] > 0 && s.results[id] == 0 && len(s.results) > 0 && !s.hasFrontTool(s.items[key{tool, id}].name)
}

// asksOther reports whether some interrupt is about none of the given calls.
func asksOther(v wire.Value, calls []string) bool {
	return lists.Any(v.Path("outcome.interrupts").Items(), func(i wire.Value) bool {
		return !slices.Contains(calls, i.Get("toolCallId").Str())
	})
}

// chunkForm checks items that the agent streams in chunks instead of START, CONTENT and END events.
func chunkForm(w *watch) {
	w.On(func(ev *event) {
		f := ev.family
		if i := ev.item; ev.verb != chunks {
			w.judge("mixed", i != nil && i.chunked && ev.verb != opens, ev, ev.id, i.begun(),
				"%s is for %s %q, which the agent sends in chunks.", ev.kind, called[f], ev.id)
			return
		}
		id, opening, ambiguous := ev.chunk(ev)
		w.Saw("first", "mixed", "ambiguous")
		switch i := ev.items[key{f, id}]; {
		case ambiguous:
			w.find("ambiguous", ev, "", nil, "%s has no id, but several items are open.", ev.kind)
		case id == "" && (ev.v.Get("delta").Str() != "" || f == tool):
			w.find("first", ev, "", nil, "%s opens an item but has no id.", ev.kind)
		case id == "":
			// A chunk that opens nothing and has no text is allowed: it may have metadata at the end.
		case opening && f == tool && ev.v.Get("toolCallName").Str() == "":
			w.find("first", ev, id, nil, "The first %s of %q has no toolCallName.", ev.kind, id)
		case opening && i != nil && i.open && !i.chunked:
			w.find("mixed", ev, id, i.begun(), "%s is for %s %q, which a START event opened.", ev.kind, called[f], id)
		case !opening && i != nil:
			w.Saw("conflict")
			for _, name := range conflicts(f, i, ev) {
				w.find("conflict", ev, id, i.begun(), "%s of %q has another %s than its first event.", ev.kind, id, name)
			}
		}
	}, anyItem)
}

// conflicts returns the names of the members of a chunk that contradict the event that opened its item.
func conflicts(f family, i *item, ev *event) (names []string) {
	role, name, was := "role", "name", i.role
	switch f {
	case tool:
		role, name = "parentMessageId", "toolCallName"
	case text:
		was = cmp.Or(was, "assistant")
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

// reasoningPair checks reasoning events.
func reasoningPair(w *watch) {
	w.On(func(ev *event) {
		id := ev.v.Get("entityId").Str()
		known := ev.thread.opened[id] > 0 || ev.inputMessage(id).Exists() || ev.inputCall(id).Exists()
		w.judge("entity", !known, ev, id, nil, "The encrypted value refers to the unknown id %q.", id)
	}, "REASONING_ENCRYPTED_VALUE")
	w.On(func(ev *event) {
		if ev.family == thought || ev.family == span {
			w.paired(ev)
		}
	}, anyItem)
}

// subagents checks the events of subagents, and the owners of items.
func subagents(w *watch) {
	w.On(func(ev *event) {
		a := ev.agents[ev.owner]
		w.judge("twice", a != nil && a.announced, ev, ev.owner, nil, "Subagent %q is announced twice in this run.", ev.owner)
		w.judge("late", a != nil && !a.announced, ev, ev.owner, nil,
			"Subagent %q is announced after its first event.", ev.owner)
		if of := ev.v.Get("parentSubagentRunId").Str(); of != "" {
			w.judge("parent", ev.agents[of] == nil || !ev.agents[of].announced, ev, of, nil,
				"The parent %q of subagent %q was not announced.", of, ev.owner)
		}
	}, "SUBAGENT_STARTED")
	w.On(func(ev *event) {
		a := ev.agents[ev.owner]
		w.judge("unknown", a == nil || !a.announced || a.over, ev, ev.owner, nil,
			"Subagent %q ends, but is not active.", ev.owner)
	}, "SUBAGENT_FINISHED", "SUBAGENT_ERROR")
	w.On(func(ev *event) {
		for _, id := range slices.Sorted(maps.Keys(ev.agents)) {
			if ev.agents[id].suspended {
				w.judge("suspended", !ev.v.Path("outcome.type").Is("interrupt"), ev, id, nil,
					"Subagent %q is suspended, but the run's outcome is not interrupt.", id)
			}
		}
	}, "RUN_FINISHED")
	w.On(func(ev *event) {
		if i := ev.item; (ev.verb == continues || ev.verb == closes) && ev.owner != "" {
			if w.Saw("owner"); i != nil && i.owner != ev.owner {
				w.find("owner", ev, ev.id, i.begun(),
					"%s of %q names subagent %q, but the item was opened by %q.", ev.kind, ev.id, ev.owner, i.owner)
			}
		}
	}, anyItem)
}

// apart checks that a stream has no events about items of other threads.
func apart(w *watch) {
	w.On(func(ev *event) {
		if ev.id == "" || len(ev.others) < 2 {
			return
		}
		if w.Saw("mixed"); ev.item != nil || ev.verb == opens {
			return
		}
		for id, t := range ev.others {
			if at := t.opened[ev.id]; t != ev.thread && at > 0 {
				w.find("mixed", ev, ev.id, []int{at}, "%s is for %q, which was opened in thread %q.", ev.kind, ev.id, id)
			}
		}
	}, anyItem)
}

// restated checks that the agent does not stream again an item that the input already has.
func restated(w *watch) {
	w.On(func(ev *event) {
		i, m := ev.item, ev.inputMessage(ev.id)
		if i != nil && i.text.Len() > 0 && m.Exists() {
			w.judge("again", m.Get("content").Str() == i.text.String(), ev, ev.id, []int{ev.ref, i.at},
				"The agent streams message %q again, which the input already has.", ev.id)
		}
	}, "TEXT_MESSAGE_END")
	w.On(func(ev *event) {
		i := ev.item
		if i != nil && i.text.Len() > 0 && ev.inputCall(ev.id).Exists() && ev.thread.called < ev.ref {
			// A later model reply may use the id for another call.
			w.judge("call", true, ev, ev.id, []int{ev.ref, i.at},
				"The agent streams the arguments of tool call %q again, which the input already has.", ev.id)
		}
	}, "TOOL_CALL_END")
}
