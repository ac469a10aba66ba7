package grammar

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// turn is a turn of the conversation that is being written.
type turn struct {
	*convo
	prompt string // name of the prompt
	state  string
	// gate is the gate that holds the model, request the name of the agent's open request, and done the file for which
	// a command waits. Each is "" if there is none.
	gate, request, done string
	next                string // gate of a prompt that was sent after a cancel
	call                call
	told                string // line that checks whether the model is told what the user typed, or ""
	// stopped is the requirement that a stopped turn must end as cancelled; "" while the editor has not stopped the
	// turn. contested says that the turn may end in more than one way, and loaded that a load was sent during the
	// turn. lost says that the agent's process is gone or the turn is over. allowed says that the editor gave
	// permission.
	stopped                          string
	contested, loaded, lost, allowed bool
	endless                          bool
	chooses                          bool // the user is asked to choose between answers
	lists                            bool // the sessions are listed when the turn has ended
	several                          bool // the model calls another tool in the same reply
	// later has the names of requests that must be answered when the turn has ended.
	later []string
}

// state is a point at which something holds a turn, so that the turn cannot end by itself.
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

// unanswered returns a state in which a call of one of the tools has caused a request to the editor, which the editor
// leaves unanswered.
func unanswered(weight int, name, method string, tools ...string) state {
	of := func(w *writer, c *convo) []string {
		return lists.Where(tools, func(tool string) bool { return requests(tool, method)(w, c) })
	}
	return state{weight, name, func(w *writer, c *convo) bool { return len(of(w, c)) > 0 }, func(w *writer, _ *turn) {
		w.Add("hold %s once", method)
	}, func(w *writer, t *turn) []reply {
		c, _ := w.call(pick(w.r, of(w, t.convo)))
		return []reply{{c.step}, w.last()}
	}, atRequest(method), false}
}

// states has the states in which a turn can be held.
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
	unanswered(3, "file read open", "fs/read_text_file", "read_file"),
	unanswered(2, "read for an edit open", "fs/read_text_file", "edit_file"),
	unanswered(2, "read for a write open", "fs/read_text_file", "write_file"),
	unanswered(3, "file write open", "fs/write_text_file", "write_file"),
	unanswered(4, "terminal asked for", "terminal/create", "run_shell", "list_folder", "read_file", "delete_file",
		"move_file"),
	{3, "command running", uses("run_shell"), nil, func(w *writer, t *turn) []reply {
		w.n++
		t.done = w.name("go")
		run := tool("run_shell", object{"command": "touch $WORK/begun-" + t.done + "; while [ ! -e $WORK/" + t.done +
			" ]; do sleep 0.02; done; touch $WORK/ended-" + t.done})
		first := w.beside(run, "read_file")
		t.several = len(first) > 1
		return []reply{first, w.last()}
	}, func(w *writer, t *turn) { w.Add("await file %s session=%s", "begun-"+t.done, t.name) }, false},
	{10, "server silent", func(w *writer, c *convo) bool {
		return w.served() && c.servers && w.Tools["mcp"].Works && uses("mcp")(w, c)
	}, nil,
		func(w *writer, _ *turn) []reply {
			w.hung = true
			sing := object{"server": w.server, "tool": "canary_sing", "args": object{"text": "hang"}}
			return []reply{w.beside(tool("mcp", sing), "read_file"), w.last()}
		}, func(w *writer, _ *turn) { w.Add("canary called text=hang else=skip") }, true},
	{3, "child at work", waits, nil, func(w *writer, t *turn) []reply {
		c, _ := w.call("delegate")
		w.lanes = strings.TrimSuffix(w.lanes, lane(c.mark, "")) + lane(c.mark, t.hold(w))
		return []reply{{c.step}, w.last()}
	}, func(w *writer, t *turn) { w.Add("needs await gate %s", t.gate) }, false}, // of the child's session
	{2, "question open", asksUser, nil, func(w *writer, t *turn) []reply {
		ask := object{"question": w.text()}
		if t.chooses = w.one(3); t.chooses {
			ask["options"] = pick(w.r, choices)
		}
		return []reply{{tool("ask_user", ask)}, w.last()}
	}, atRequest("elicitation/create"), false},
	{2, "page open", opensPages, nil, func(w *writer, t *turn) []reply {
		page := "https://example.com/" + w.name("page")
		return []reply{{tool("ask_user", object{"question": w.text(), "url": page})}, w.last()}
	}, atRequest("elicitation/create"), false},
}

// choices has lists of answers between which the model lets the user choose.
var choices = [][]string{{"ja"}, {"yes", "Yes, always"}, {"rot", "grün, dunkel", "🙂"},
	{"1", "2", "3", "4", "5", "6", "7", "8"}}

// opensPages reports whether the agent asks the user, and the editor shows pages.
func opensPages(w *writer, c *convo) bool { return !w.out["pages"] && asksUser(w, c) }

// beside returns a reply with the given call. Sometimes it adds a call of the tool named of, or of any tool if of is
// "", before or after the given call.
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

// uses returns the condition that the agent can carry out a tool and that the session is in the initial mode.
func uses(tool string) func(*writer, *convo) bool {
	return func(w *writer, c *convo) bool {
		return w.has("tools") && w.works(tool) && c.mode == "" && w.asked[tool] == ""
	}
}

// waits reports whether a turn of the session can wait for a subagent.
func waits(w *writer, c *convo) bool { return w.Waits && uses("delegate")(w, c) }

// requests returns the condition that the agent sends a request of the given method when it carries out a tool.
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

// askers returns the tools about which the agent asks the user. It omits tools for which the user has already answered
// for always.
func (w *writer) askers() []string {
	all := []string{"write_file", "edit_file", "run_shell", "delete_file", "move_file", "mcp"}
	return lists.Where(all, func(name string) bool {
		return w.Tools[name].asks() && w.Tools[name].Tells && w.asked[name] == "" && (name != "mcp" || w.served())
	})
}

// remembers records an answer for always. An agent may treat all tools that change files as one tool, so an answer for
// one of them counts for all of them.
func (w *writer) remembers(tool, how string) {
	changes := []string{"write_file", "edit_file", "delete_file", "move_file"}
	if !slices.Contains(changes, tool) {
		changes = []string{tool}
	}
	for _, name := range changes {
		w.asked[name] = how
	}
}

// asking draws a call about which the agent asks the user.
func (w *writer) asking() call {
	c, _ := w.callLike(pick(w.r, w.askers()), shape.marked)
	return c
}

// hold chooses a name for the gate that holds the turn, stores it and returns it.
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

// model returns the model's part of a turn that is held in state s, including the output before that state.
func (w *writer) model(t *turn, s state) fakellm.TurnNode {
	w.folder = t.folder()
	first, begun := w.before()
	if !slices.Contains([]string{"silent", "text held", "thought held", "behind a call"}, s.name) {
		first = nil // an earlier call could end the server, or its request could be taken for that of the state
	}
	replies := s.model(w, t)
	replies[0] = append(begun, replies[0]...)
	return turnOf(append(first, replies...)...)
}
