package second

import (
	"slices"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

func ofClient(id, sentence string) *rule {
	r := newRule(id, sentence)
	r.Side, r.Family = rules.OfClient, "" // it may rest on what version 1 asks of clients too
	return r
}

// clientLogin judges that a client logs in only where and how it can.
func clientLogin() *rule {
	r := ofClient("V2-CLIENT-LOGIN",
		"A client logs in and out only where the agent offers a method, and by one that it offers.")
	none := r.Fail("no-method", "auth/login or auth/logout is called, and the agent offers no method", "V2-INIT-006")
	terminal := r.Fail("terminal", "auth/login names a method of type terminal", "V2-INIT-006")
	other := r.Lint("not-offered", "auth/login names a method that was not offered", "V2-INIT-006")
	r.see = func(w *watch, ev *event) {
		if !ev.asks("auth/login") && !ev.asks("auth/logout") || ev.conn.version != 2 {
			return
		}
		w.Saw(none)
		if len(ev.conn.methods) == 0 {
			w.find(none, ev, ev.Method, nil, "The client called %s, and the agent offers no method.", ev.Method)
			return
		}
		if ev.Method == "auth/logout" {
			return
		}
		w.Saw(terminal, other)
		id := ev.params.Get("methodId").Str()
		switch kind, offered := ev.conn.methods[id]; {
		case !offered:
			w.find(other, ev, id, nil, "The client logs in by %q, which was not offered.", id)
		case kind == "terminal":
			w.find(terminal, ev, id, nil, "The client logs in by %q, which is for a terminal.", id)
		}
	}
	return r
}

// clientPermission judges how a client answers permission requests. After a cancel of its
// own it may still let the user choose: the work that asks may go on in the background. What
// the agent itself took back is to be answered with cancelled, once the client has seen that.
func clientPermission() *rule {
	r := ofClient("V2-CLIENT-PERMISSION",
		"A client chooses what was offered, and nothing where the agent took its request back.")
	offered := r.Fail("not-offered", "the option was not offered", "V2-PER-003")
	back := r.Fail("taken-back", "an option was chosen for a request that the agent had taken back", "V2-CAN-003")
	late := r.Lint("after-cancel", "an option was chosen after the client had cancelled the work", "V2-CAN-003")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Response || ev.asked == nil ||
			ev.asked.method != "session/request_permission" || !ev.result.Path("outcome.outcome").Is("selected") {
			return
		}
		w.Saw(offered, back, late)
		if id := ev.result.Path("outcome.optionId").Str(); !slices.Contains(ev.asked.options, id) {
			w.find(offered, ev, "", []int{ev.Ref}, "The client chose %q, which was not offered.", id)
		}
		switch {
		case ev.asked.back > 0 && ev.conn.heard > ev.asked.back:
			w.find(back, ev, "", []int{ev.Ref, ev.asked.back},
				"The client chose an option, although the agent had taken the request back and the client has answered later ones.")
		case ev.asked.late:
			w.find(late, ev, "", []int{ev.Ref}, "The client chose an option after it had cancelled the work.")
		}
	}
	return r
}

// clientCancel judges that a client cancels only what it can.
func clientCancel() *rule {
	r := ofClient("V2-CLIENT-CANCEL", "A client cancels only a tool call or a terminal that can be cancelled.")
	never := r.Fail("not-offered", "no update has said that the item can be cancelled", "V2-CAN-005")
	over := r.Lint("over", "the item has ended, or can be cancelled no more", "V2-CAN-005")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if s == nil || !ev.asks("tool_call/cancel") && !ev.asks("terminal/cancel") {
			return
		}
		w.Saw(never, over)
		id := ev.params.Get("toolCallId").Str()
		t := s.tools[id]
		if ev.Method == "terminal/cancel" {
			id = ev.params.Get("terminalId").Str()
			t = s.terminals[id]
		}
		switch {
		case t == nil || !t.offered:
			w.find(never, ev, id, nil, "The client sent %s for %q, and no update had offered that.", ev.Method, id)
		case t.ended > 0 || !t.cancellable:
			w.find(over, ev, id, nil, "The client sent %s for %q, which has ended or offers it no more.", ev.Method, id)
		}
	}
	return r
}

// clientOrder judges the order of initialize, sessions and prompts.
func clientOrder() *rule {
	r := ofClient("V2-CLIENT-ORDER", "initialize comes first, and a session is set up before it is prompted.")
	first := r.Fail("initialize", "a request came before initialize was answered", "INIT-001", "SESSION-001")
	setup := r.Fail("session", "a prompt names a session that is not set up", "PROMPT-001")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Request {
			return
		}
		c := ev.conn
		if ev.Method == "initialize" {
			// A recording may begin after it: what came before counts once it is seen.
			w.Saw(first)
			if c.early > 0 && c.asked == 0 {
				w.find(first, ev, "", []int{c.early}, "The client sent a request before it sent initialize.")
			}
			return
		}
		if c.asked > 0 {
			w.Saw(first)
			if c.version == 0 {
				w.find(first, ev, ev.Method, []int{c.asked}, "The client sent %s before initialize was answered.", ev.Method)
				return
			}
		}
		if s := ev.session; ev.Method == "session/prompt" && s != nil && c.version == 2 {
			w.Saw(setup)
			if s.opened == 0 || s.closed > 0 {
				w.find(setup, ev, "", nil, "The client prompted session %q, which is not set up.", s.id)
			}
		}
	}
	return r
}

// optional is what an agent may advertise of sessions, by its path.
var optional = []string{"delete", "additionalDirectories", "prompt.image", "prompt.audio", "prompt.embeddedContext",
	"mcp.stdio", "mcp.http", "mcp.sse", "mcp.acp"}

// clientGate judges that a client uses only what the agent advertised.
func clientGate() *rule {
	r := ofClient("V2-CLIENT-GATE",
		"The client uses optional methods, folders, MCP transports and content only if the agent advertised them.")
	method := r.Fail("method", "session/delete is not advertised", "DELETE-001")
	folders := r.Fail("directories", "additional directories that are not advertised", "DIRS-001")
	servers := r.Fail("mcp-servers", "an MCP transport that is not advertised", "SESSION-014")
	content := r.Fail("content", "content of a prompt that is not advertised", "PROMPT-002")
	blocks := map[string]string{"image": "prompt.image", "audio": "prompt.audio", "resource": "prompt.embeddedContext"}
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Request || ev.conn.version != 2 {
			return
		}
		has := func(path string) bool { return ev.conn.offers[path] || !slices.Contains(optional, path) }
		if ev.Method == "session/delete" {
			w.Saw(method)
			if !has("delete") {
				w.find(method, ev, "", nil, "The client sent session/delete, which the agent did not advertise.")
			}
		}
		if ev.params.Get("additionalDirectories").Len() > 0 {
			w.Saw(folders)
			if !has("additionalDirectories") {
				w.find(folders, ev, "", nil, "The client names additional directories, which the agent did not advertise.")
			}
		}
		for s := range ev.params.Get("mcpServers").Items() {
			w.Saw(servers)
			if kind := s.Get("type").Str(); kind != "" && !has("mcp."+kind) {
				w.find(servers, ev, kind, nil,
					"The client hands over an MCP server of type %s, which the agent did not advertise.", kind)
			}
		}
		for b := range ev.params.Get("prompt").Items() {
			kind := b.Get("type").Str()
			if path := blocks[kind]; path != "" {
				w.Saw(content)
				if !has(path) {
					w.find(content, ev, kind, nil, "The prompt holds a block of type %s, which the agent did not advertise.", kind)
				}
			}
		}
	}
	return r
}
