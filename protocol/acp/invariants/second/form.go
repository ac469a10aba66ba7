package second

import (
	"slices"
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// firstOnly are the updates of version 1 that version 2 does not have.
var firstOnly = []string{"tool_call", "plan", "current_mode_update"}

// shape judges the form of messages.
func shape() *rule {
	r := newRule("V2-SHAPE", "Every message of the agent has the form of the schema.")
	other := r.Fail("broken", "a message breaks the schema", "SHAPE-001")
	greet := r.Fail("initialize", "the answer to initialize breaks the schema", "INIT-002")
	prompt := r.Fail("prompt", "the answer to a prompt breaks the schema", "PRM-001")
	stop := r.Fail("stop-reason", "the answer to a prompt has what that of version 1 has", "PRM-001")
	update := r.Fail("update", "an update breaks the schema", "UPD-001")
	ask := r.Fail("permission", "a permission request breaks the schema", "PER-001")
	tag := r.Fail("first-version", "an update is one of version 1", "UPD-002")
	lossy := r.Warn("lossy", "a value does not fit, and readers lose it", "SHAPE-001")
	style := r.Lint("unknown", "a message has what the schema does not know", "SHAPE-001")
	r.see = func(w *watch, ev *event) {
		if !ev.agent() || ev.Kind == transcript.Malformed {
			return
		}
		point := other
		switch {
		case ev.answers("initialize"):
			point = greet
		case ev.answers("session/prompt"):
			point = prompt
		case ev.kind != "":
			point = update
		case ev.Method == "session/request_permission":
			point = ask
		}
		w.Saw(point, lossy, style)
		if ev.kind != "" {
			w.Saw(tag)
			if slices.Contains(firstOnly, ev.kind) {
				w.find(tag, ev, ev.kind, nil, "The update %s is one of version 1; version 2 does not have it.", ev.kind)
				return
			}
		}
		if ev.answers("session/prompt") && ev.result.Exists() {
			w.Saw(stop)
			if ev.result.Get("stopReason").Exists() {
				w.find(stop, ev, "", nil, "The answer to the prompt has a stopReason, which version 2 tells by state_update.")
			}
		}
		schema.V2().Check(direction(ev.Entry), ev.Message(), ev.Method, func(p schema.Problem) {
			switch {
			case p.Severity == schema.Fatal:
				w.find(point, ev, p.Path, nil, "%s does not fit %s: %s.", p.Path, p.Type, p.Message)
			case p.Severity == schema.Lossy:
				w.find(lossy, ev, p.Path, nil, "%s does not fit %s, and readers lose it: %s.", p.Path, p.Type, p.Message)
			case p.Path == "id" && ev.Kind == transcript.Request: // V2-IDS says it
			case point != prompt || p.Path != "result.stopReason":
				w.find(style, ev, p.Path, nil, "%s %s.", p.Path, p.Message)
			}
		})
	}
	return r
}

// removed judges that the agent asks for nothing that version 2 has no more.
func removed() *rule {
	r := newRule("V2-REMOVED", "The agent asks the client for nothing that version 2 does not have.")
	files := r.Fail("files", "the agent asks for a file of the client", "RPC-004")
	terminal := r.Fail("terminal", "the agent asks for a terminal of the client", "RPC-004")
	elicit := r.Fail("elicitation", "the agent asks for an elicitation that the client did not advertise", "SHAPE-001")
	r.see = func(w *watch, ev *event) {
		if !ev.agent() || ev.Kind != transcript.Request {
			return
		}
		w.Saw(files, terminal)
		switch {
		case strings.HasPrefix(ev.Method, "fs/"):
			w.find(files, ev, ev.Method, nil, "The agent sent %s, which version 2 does not have.", ev.Method)
		case strings.HasPrefix(ev.Method, "terminal/"):
			w.find(terminal, ev, ev.Method, nil, "The agent sent %s, which version 2 does not have.", ev.Method)
		case ev.Method == "elicitation/create":
			w.Saw(elicit)
			if !ev.conn.elicits {
				w.find(elicit, ev, "", nil, "The agent sent elicitation/create, but the client did not advertise elicitation.")
			}
		}
	}
	return r
}

// requestIDs judges the ids of the agent's requests.
func requestIDs() *rule {
	r := newRule("V2-IDS", "The ids of the agent's requests are not null, and not in use.")
	null := r.Fail("null", "a request has the id null", "RPC-002")
	twice := r.Fail("in-use", "the id is that of a request that is open", "RPC-002")
	r.see = func(w *watch, ev *event) {
		if !ev.agent() || ev.Kind != transcript.Request {
			return
		}
		w.Saw(null, twice)
		if ev.ID == "null" {
			w.find(null, ev, "", nil, "The request %s has the id null.", ev.Method)
		}
		if before := ev.conn.ids[ev.ID]; before > 0 {
			w.find(twice, ev, "", []int{before}, "The id %s is that of a request that is still open.", ev.ID)
		}
	}
	return r
}

// commands judges the names of commands.
func commands() *rule {
	r := newRule("V2-COMMANDS", "The names of commands are words, and unique.")
	word := r.Fail("word", "a name has white space in it, or is empty", "CMD-001")
	twice := r.Fail("twice", "two commands have one name", "CMD-001")
	r.see = func(w *watch, ev *event) {
		list := ev.u.Get("availableCommands")
		if ev.agent() && ev.Kind == transcript.Response {
			list = ev.result.Get("availableCommands")
		}
		seen := map[string]bool{}
		for c := range list.Items() {
			w.Saw(word, twice)
			name := c.Get("name").Str()
			if name == "" || strings.ContainsFunc(name, unicode.IsSpace) {
				w.find(word, ev, name, nil, "The command %q is not called by a word.", name)
			}
			if seen[name] {
				w.find(twice, ev, name, nil, "There are two commands %q.", name)
			}
			seen[name] = true
		}
	}
	return r
}

// selects judges options that are chosen from a list.
func selects() *rule {
	r := newRule("V2-OPTIONS", "The value of a select is one of its values, and options and values are there once.")
	value := r.Fail("value", "the current value is not on offer", "CFG-002")
	twice := r.Fail("twice", "a value is there twice", "CFG-002")
	id := r.Fail("id", "two options have one id", "CFG-002")
	r.see = func(w *watch, ev *event) {
		list := ev.u.Get("configOptions")
		if ev.agent() && ev.Kind == transcript.Response {
			list = ev.result.Get("configOptions")
		}
		ids := map[string]bool{}
		for o := range list.Items() {
			name := o.Get("configId").Str()
			w.Saw(id)
			if ids[name] {
				w.find(id, ev, name, nil, "Two options have the id %q.", name)
			}
			ids[name] = true
			if !o.Get("type").Is("select") {
				continue
			}
			w.Saw(value, twice)
			values := map[string]bool{}
			add := func(v wire.Value) {
				if values[v.Get("value").Str()] {
					w.find(twice, ev, name, nil, "The option %q has the value %q twice.", name, v.Get("value").Str())
				}
				values[v.Get("value").Str()] = true
			}
			for v := range o.Get("options").Items() {
				if group := v.Get("options"); group.Exists() {
					for v := range group.Items() {
						add(v)
					}
					continue
				}
				add(v)
			}
			if current := o.Get("currentValue").Str(); !values[current] {
				w.find(value, ev, name, nil, "The option %q has the value %q, which is not on offer.", name, current)
			}
		}
	}
	return r
}

// permissions judges what a user is asked.
func permissions() *rule {
	r := newRule("V2-PERMISSION", "The options of a permission request have ids of their own.")
	twice := r.Fail("twice", "two options have one id", "PER-001")
	r.see = func(w *watch, ev *event) {
		if !ev.agent() || ev.Kind != transcript.Request || ev.Method != "session/request_permission" {
			return
		}
		seen := map[string]bool{}
		for o := range ev.params.Get("options").Items() {
			w.Saw(twice)
			id := o.Get("optionId").Str()
			if seen[id] {
				w.find(twice, ev, id, nil, "Two options have the id %q.", id)
			}
			seen[id] = true
		}
	}
	return r
}
