package grammar

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// turn is a turn while its lines are written.
type turn struct {
	*convo
	prompt string // the name of its prompt
	state  string
	// gate is the gate that holds the model, request the name of the agent's open request, and done the file that a
	// command waits for; "" for none.
	gate, request, done string
	next                string // the gate of a prompt that followed a cancel
	call                call
	told                string // asks whether the model is told what the user typed
	// stopped is the requirement that the turn must end as cancelled, set once the editor has stopped the turn.
	// contested: the turn may end in more than one way. loaded: a load was sent during the turn. lost: the turn's
	// process is gone, or the turn is over. allowed: the editor gave permission.
	stopped                          string
	contested, loaded, lost, allowed bool
	endless                          bool
	// later lists the names of requests that must be answered once the turn has ended.
	later []string
}

// state is a state in which a turn is held: it cannot end by itself.
type state struct {
	weight int
	name   string
	// can reports whether the agent can reach the state.
	can func(w *writer, c *convo) bool
	// ahead writes lines before the prompt; nil writes none.
	ahead func(w *writer, t *turn)
	// model returns the model's replies in the turn.
	model func(w *writer, t *turn) []reply
	// await writes lines that wait for the state.
	await func(w *writer, t *turn)
	// endless says that only a cancel ends the turn.
	endless bool
}

// unanswered returns a state in which the editor leaves a request unanswered that a call of the tool causes.
func unanswered(weight int, name, tool, method string) state {
	return state{weight, name, requests(tool, method), func(w *writer, _ *turn) {
		w.Add("hold %s once", method)
	}, func(w *writer, t *turn) []reply {
		c, _ := w.call(tool)
		return []reply{{c.step}, w.last()}
	}, atRequest(method), false}
}

// states are the states in which a turn can be held.
var states = []state{
	{2, "silent", anywhere, nil, func(w *writer, t *turn) []reply {
		return []reply{{gate(t.hold(w)), w.says("text")}}
	}, atGate, false},
	{5, "text held", anywhere, nil, func(w *writer, t *turn) []reply {
		return []reply{{w.says("text"), gate(t.hold(w)), w.says("text")}}
	}, atGate, false},
	{2, "thought held", anywhere, nil, func(w *writer, t *turn) []reply {
		return []reply{{w.says("thinking"), gate(t.hold(w)), w.says("text")}}
	}, atGate, false},
	{3, "call half said", uses("read_file"), nil, func(w *writer, t *turn) []reply {
		c, _ := w.call("read_file")
		return []reply{{tool("read_file", c.args, "args_gate: "+t.hold(w))}, w.last()}
	}, atGate, false},
	{2, "behind a call", anyTool, nil, func(w *writer, t *turn) []reply {
		return []reply{w.calls(), {gate(t.hold(w)), w.says("text")}}
	}, atGate, false},
	{7, "permission open", asksFirst, func(w *writer, t *turn) {
		w.Add("permit hold about=%s", t.call.mark)
	}, func(w *writer, t *turn) []reply {
		t.call = w.asking()
		return []reply{w.beside(t.call.step, ""), w.last()}
	}, func(w *writer, t *turn) {
		t.request = w.name("ASK")
		w.Add("needs await permission session=%s about~%s as %s", t.name, t.call.mark, t.request)
	}, false},
	unanswered(3, "file read open", "read_file", "fs/read_text_file"),
	unanswered(2, "read for an edit open", "edit_file", "fs/read_text_file"),
	unanswered(2, "read for a write open", "write_file", "fs/read_text_file"),
	unanswered(3, "file write open", "write_file", "fs/write_text_file"),
	unanswered(4, "terminal asked for", "run_shell", "terminal/create"),
	{3, "command running", uses("run_shell"), nil, func(w *writer, t *turn) []reply {
		w.n++
		t.done = w.name("go")
		run := tool("run_shell", object{"command": "touch $WORK/begun-" + t.done + "; while [ ! -e $WORK/" + t.done +
			" ]; do sleep 0.02; done"})
		return []reply{w.beside(run, "read_file"), w.last()}
	}, func(w *writer, t *turn) { w.Add("await file %s session=%s", "begun-"+t.done, t.name) }, false},
	{8, "server silent", func(w *writer, c *convo) bool {
		return w.served() && c.servers && w.Tools["mcp"].Works && uses("mcp")(w, c)
	}, nil,
		func(w *writer, _ *turn) []reply {
			w.hung = true
			sing := object{"server": w.server, "tool": "canary_sing", "args": object{"text": "hang"}}
			return []reply{w.beside(tool("mcp", sing), "read_file"), w.last()}
		}, func(w *writer, _ *turn) { w.Add("canary called text=hang else=skip") }, true},
	{3, "child at work", uses("delegate"), nil, func(w *writer, t *turn) []reply {
		c, _ := w.call("delegate")
		w.lanes = strings.TrimSuffix(w.lanes, lane(c.mark, "")) + lane(c.mark, t.hold(w))
		return []reply{{c.step}, w.last()}
	}, func(w *writer, t *turn) { w.Add("needs await gate %s", t.gate) }, false}, // it belongs to the child's session
	{2, "question open", asksUser, nil, func(w *writer, t *turn) []reply {
		return []reply{{tool("ask_user", object{"question": w.text()})}, w.last()}
	}, atRequest("elicitation/create"), false},
}

// beside returns a reply with the given call. Sometimes it adds a call of the tool named of before or after that one;
// of "" stands for any tool.
func (w *writer) beside(call fakellm.StepNode, of string) reply {
	if w.has("several") && !w.off("r") && w.one(3) {
		if other, ok := w.call(of); ok {
			if w.one(2) {
				w.covered("call", "before a held one")
				return reply{other.step, call}
			}
			w.covered("call", "after a held one")
			return reply{call, other.step}
		}
	}
	return reply{call}
}

func anywhere(*writer, *convo) bool { return true }

func anyTool(w *writer, _ *convo) bool {
	return w.has("tools") && slices.ContainsFunc(shapes(), func(s shape) bool {
		return s.Tool != "mcp" && w.works(s.Tool)
	})
}

// uses returns a condition: the agent carries out a tool, and the session is in the first mode.
func uses(tool string) func(*writer, *convo) bool {
	return func(w *writer, c *convo) bool {
		return w.has("tools") && w.works(tool) && c.mode == "" && w.asked[tool] == ""
	}
}

// requests returns a condition: the agent sends a request of a method when it carries out a tool.
func requests(tool, method string) func(*writer, *convo) bool {
	return func(w *writer, c *convo) bool {
		return w.has("tools") && !w.out["requests"] && uses(tool)(w, c) && slices.Contains(w.Tools[tool].Requests, method)
	}
}

func asksFirst(w *writer, c *convo) bool {
	return w.has("permissions") && c.mode == "" && len(w.askers()) > 0
}

func asksUser(w *writer, c *convo) bool {
	return w.has("asides") && c.mode == "" && w.works("ask_user") && !w.without("s")
}

// askers returns the tools for which the agent asks for permission. It omits tools for which the agent remembers an
// answer.
func (w *writer) askers() []string {
	all := []string{"write_file", "edit_file", "run_shell", "delete_file", "move_file", "mcp"}
	return lists.Where(all, func(name string) bool {
		return w.Tools[name].asks() && w.Tools[name].Tells && w.asked[name] == "" && (name != "mcp" || w.served())
	})
}

// remembers records an answer for always. An agent may treat all tools that change files as one, so it applies to all.
func (w *writer) remembers(tool, how string) {
	changes := []string{"write_file", "edit_file", "delete_file", "move_file"}
	if !slices.Contains(changes, tool) {
		changes = []string{tool}
	}
	for _, name := range changes {
		w.asked[name] = how
	}
}

// asking draws a call for which the agent asks for permission.
func (w *writer) asking() call {
	c, _ := w.callLike(pick(w.r, w.askers()), shape.marked)
	return c
}

// hold chooses the name of the gate that holds the turn, and returns it.
func (t *turn) hold(w *writer) string {
	t.gate = w.name("g")
	return t.gate
}

func atGate(w *writer, t *turn) { w.Add("needs await gate %s session=%s", t.gate, t.name) }

func atRequest(method string) func(w *writer, t *turn) {
	return func(w *writer, t *turn) {
		t.request = w.name("REQ")
		w.Add("needs await %s session=%s as %s", method, t.name, t.request)
	}
}

// model returns the model turn for a state, including the model's output before that state.
func (w *writer) model(t *turn, s state) fakellm.TurnNode {
	w.folder = t.folder()
	first, begun := w.before()
	if !slices.Contains([]string{"silent", "text held", "thought held", "behind a call"}, s.name) {
		first = nil // what a call before asks for would be taken for the request of the state, or it ends the server
	}
	replies := s.model(w, t)
	replies[0] = append(begun, replies[0]...)
	return turnOf(append(first, replies...)...)
}
