package invariants

import (
	"maps"
	"slices"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// capGate checks that the agent uses only capabilities that the client advertised. It also checks that the agent
// supports the capabilities that the agent itself advertised. Recordings that begin after initialize are skipped,
// because they show no capabilities.
func capGate(w *watch) {
	v := w.version
	need := func(point string, ev *event, gate, object, what string) *rules.Finding {
		if ev.conn.initAsked == 0 {
			return nil
		}
		if w.Saw(point); ev.conn.has(rules.OfClient, gate) {
			return nil
		}
		return w.find(point, ev, object, []int{ev.conn.initAsked},
			"The agent sent %s, but the client did not advertise %s.", what, capability(gate))
	}
	for point, about := range map[string][]topic{"read-file": {asked(readFile)}, "write-file": {asked(writeFile)},
		"terminal": append(terminalUses(), asked(createTerminal))} {
		w.On(func(ev *event) { need(point, ev, v.gate(ev.Method), ev.Method, ev.Method) }, about...)
	}
	modes := v.gates("CreateElicitationRequest")
	w.On(func(ev *event) {
		mode := ev.params.Get("mode").Str()
		if gate := modes[mode]; gate != "" {
			f := need("elicitation", ev, gate, mode, "an elicitation in mode "+mode)
			w.Narrow(f, "ELICIT-001", "INIT-009")
		}
	}, asked(elicit))
	gated := map[string]string{"plan": "plan-update", "session.compaction": "compaction", "session.notices": "notice",
		"subagents": "subagents"}
	w.On(func(ev *event) {
		update, _ := v.schema.Update(ev.update.Get("sessionUpdate").Str())
		if point, ok := gated[capability(update.Gate)]; ok {
			need(point, ev, update.Gate, update.Kind, update.Kind)
		}
	}, noticeUpdate, compactionUpdate, subagentUpdate, sessionMessage, otherUpdate)
	session := v.gates("ToolCallContent")["session"]
	w.On(func(ev *event) {
		w.Saw("notice", "compaction", "subagents") // silence is what a client without them wants
		for item := range ev.update.Get("content").Items() {
			if item.Get("type").Is("session") {
				need("subagents", ev, session, "session", "tool content of type session")
			}
		}
	}, toolCall, toolUpdate)
	gate := v.gates("SessionConfigOption")["boolean"]
	w.On(func(ev *event) {
		for _, o := range ev.options {
			need("boolean-option", ev, pick(o.boolean, gate, ""), o.id, "the boolean config option "+clip(o.id))
		}
	}, listings()...)

	exists := func(point string, why string, promised func(*event) bool, about ...topic) {
		w.On(func(ev *event) {
			if ev.conn.initDone > 0 && promised(ev) {
				w.judge(point, ev.code() == -32601, ev, ev.Method, []int{ev.conn.initDone, ev.Ref},
					"The agent answered %s with \"method not found\" (-32601), although %s.", ev.Method, why)
			}
		}, about...)
	}
	for _, o := range v.optional {
		exists("advertised", "the agent advertises it",
			func(ev *event) bool { return ev.conn.has(rules.OfAgent, v.gate(ev.Method)) }, answered(o.verb))
	}
	exists("advertised", "the agent advertises it",
		func(ev *event) bool { return ev.session != nil && ev.session.modes != nil }, answered(setMode))
	exists("advertised", "the agent advertises it",
		func(ev *event) bool { return ev.session != nil && len(ev.session.options) > 0 }, answered(setOption))
	exists("baseline", "every agent must have it", func(*event) bool { return true }, answered(newSession),
		answered(prompt))
}

// clientGate checks that the client uses only capabilities that the agent advertised.
func clientGate(w *watch) {
	v := w.version
	ids := map[verb]string{}
	for _, o := range v.optional {
		ids[o.verb] = o.requirement
	}
	w.On(func(ev *event) {
		w.Saw("served", "refused")
		switch has := ev.conn.has(rules.OfClient, v.gate(ev.Method)); {
		case ev.conn.initDone == 0:
		case has && ev.code() == -32601:
			w.find("refused", ev, ev.Method, []int{ev.Ref}, "The client advertised %s, but answered the request with "+
				"\"method not found\" (-32601).", ev.Method)
		case !has && ev.succeeded():
			w.find("served", ev, ev.Method, []int{ev.Ref}, "The client carried out %s, which it had not advertised.", ev.Method)
		}
	}, answered(readFile), answered(writeFile), answered(createTerminal))
	need := func(point string, ev *event, gate, object, what string) *rules.Finding {
		if ev.conn.initDone == 0 {
			return nil
		}
		return w.judge(point, !ev.conn.has(rules.OfAgent, gate), ev, object, []int{ev.conn.initDone},
			"The client sent %s, which the agent did not advertise.", what)
	}
	for _, verb := range append(slices.Collect(maps.Keys(ids)), forkSession) {
		w.On(func(ev *event) {
			if f := need("method", ev, v.gate(ev.Method), ev.Method, ev.Method); ids[verb] != "" {
				w.Narrow(f, ids[verb])
			}
		}, asked(verb))
	}
	transports, blocks := v.gates("McpServer"), v.gates("ContentBlock")
	w.On(func(ev *event) {
		if ev.params.Get("additionalDirectories").Len() > 0 {
			need("directories", ev, v.folders, "", "additionalDirectories")
		}
		if system := ev.params.Get("systemPrompt"); system.Kind() == wire.Object {
			need("system-prompt", ev, v.instructions, "", "a systemPrompt")
			if ev.conn.has(rules.OfAgent, v.instructions) && system.Get("mode").Is("override") {
				need("override", ev, v.instructions+".mode.override", "", "a systemPrompt in mode override")
			}
		}
		for server := range ev.params.Get("mcpServers").Items() {
			kind := server.Get("type").Str()
			need("mcp-servers", ev, transports[kind], kind, "an MCP server of type "+kind)
		}
	}, setUps(asked)...)
	w.On(func(ev *event) {
		for block := range ev.params.Get("prompt").Items() {
			kind := block.Get("type").Str()
			need("content", ev, blocks[kind], kind, "a block of type "+kind)
		}
	}, asked(prompt))
}
