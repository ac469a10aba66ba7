package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// reply is one reply of the model, as a list of steps.
type reply []fakellm.StepNode

// says returns a step in which the model sends a text in pieces. About one text in twenty is longer than the usual
// limits of logs and caches.
func (w *writer) says(kind string) fakellm.StepNode {
	text := w.text()
	if w.one(20) {
		text = strings.Repeat(text+" ", 1+pick(w.r, []int{5_000, 20_000})/len(text))
		w.covered("reply", "long text")
	}
	return fakellm.NewText(kind, w.pieces(text)...)
}

// turnOf returns a model turn with these replies.
func turnOf(replies ...reply) fakellm.TurnNode {
	var t fakellm.TurnNode
	t.Replies = append(t.Replies, lists.Map(replies, func(r reply) fakellm.ReplyNode { return fakellm.NewReply(r...) })...)
	return t
}

// before draws what the model sends before the turn is held: nothing, thoughts, a text, or complete replies with
// calls. begun is the start of the reply that the caller continues.
func (w *writer) before() (replies []reply, begun reply) {
	if w.off("r") || !w.has("shapes") {
		return nil, nil
	}
	if w.has("tools") && w.one(3) {
		replies = append(replies, w.calls())
	}
	if w.one(4) {
		begun = append(begun, w.says("thinking"))
	}
	if w.one(3) {
		begun = append(begun, w.says("text"))
	}
	return replies, begun
}

// calls returns a reply that calls up to four tools, with or without a text before the calls. Two of the calls may be
// equal.
func (w *writer) calls() (out reply) {
	if w.one(2) {
		out = append(out, w.says("text"))
	}
	n := 1
	if w.one(3) {
		n = pick(w.r, []int{2, 2, 2, 4})
	}
	counted := w.one(3) // some model servers number the calls from 0 in each reply
	for i := range n {
		if c, ok := w.call(""); ok {
			if n == 2 && w.one(8) {
				out = append(out, c.step)
				w.made = append(w.made, call{tool: c.tool, mayFail: true}) // a file cannot be deleted twice
				w.covered("call", "equal ones")
			}
			if counted {
				c.step.Text += fmt.Sprintf("\nid: %d", i)
			}
			out = append(out, c.step)
			w.covered("call", c.shape)
		}
	}
	if len(out) == 0 {
		return reply{w.says("text")}
	}
	if n > 1 {
		w.covered("call", "several")
	}
	return w.inOne(out)
}

// inOne makes the model send about one reply in four as a single event of the stream. Such a reply must not contain a
// gate.
func (w *writer) inOne(r reply) reply {
	if !w.has("shapes") || w.off("r") || !w.one(4) {
		return r
	}
	w.covered("reply", "in one event")
	return append(r, fakellm.NewStep("whole", "true"))
}

// endings has the ways in which a model turn ends, for Pairs.
var endings = []string{"plain", "length", "length after calls", "length in a call", "length in a thought", "refusal",
	"refusal at once", "nothing after calls",
	"refusal in words", "thinking only at first", "several texts", "text in parts", "late text", "failure"}

// ending draws the last replies of a turn that no gate holds. They begin with begun. how is the way in which they end:
// mostly an element of endings.
func (w *writer) ending(begun reply) (replies []reply, how string) {
	how, _ = choose(w.r, w.endings())
	w.covered("ending", how)
	switch how {
	case "refusal in words":
		begun = append(begun, fakellm.NewText("refusal", w.text()))
		if w.one(2) {
			begun = append(begun, w.says("text"))
		}
	case "length after calls": // the agent may or may not make the calls
		begun = append(begun, w.calls()...)
		begun, w.made = append(begun, fakellm.NewStep("stop", "length")), nil
	case "length in a call":
		begun, w.made = append(begun, w.half(), fakellm.NewStep("stop", "length")), nil
	case "length in a thought":
		begun = append(begun, w.says("thinking"), fakellm.NewStep("stop", "length"))
	case "refusal at once":
		begun = append(begun, fakellm.NewStep("stop", "refusal"))
	case "nothing after calls":
		replies, begun = []reply{append(begun, w.calls()...)}, reply{fakellm.NewStep("stop", "end")}
	case "length", "refusal":
		begun = append(begun, w.says("text"), fakellm.NewStep("stop", how))
	case "thinking only at first":
		quiet := w.name("leise") + "x"
		begun = append(begun, fakellm.NewText("thinking", quiet+" ", w.text()), w.says("text"))
		how = "thought " + quiet
	case "several texts":
		begun = append(begun, w.says("text"), w.says("thinking"), w.says("text"))
	case "text in parts":
		begun = append(begun, w.parts()...)
	case "late text":
		late := fakellm.NewText("text", w.text())
		late.Text += "\nlate: true"
		begun = append(slices.DeleteFunc(begun, func(s fakellm.StepNode) bool { return s.Kind == "text" }), late)
	case "failure":
		f := w.failure()
		goesOn := strings.Contains(f.Text, "malformed") || strings.Contains(f.Text, "times: 1}")
		if begun = append(begun, f); goesOn {
			begun = append(begun, w.says("text"))
		}
		if strings.Contains(f.Text, refusedByModel) {
			how = refusedByModel
		}
	default:
		begun = append(begun, w.says("text"))
	}
	if how != "failure" && how != refusedByModel && !strings.HasPrefix(how, "length ") {
		begun = w.inOne(append(begun, w.counts()...))
	}
	return append(replies, begun), how
}

// counts returns a step that sends the usage of a reply unasked, or leaves it out. Most replies have none.
func (w *writer) counts() reply {
	switch {
	case !w.has("shapes"):
	case w.one(8):
		w.covered("reply", "with its usage")
		return reply{fakellm.NewStep("usage", "{input: 1000, output: 5}")}
	case w.one(14):
		w.covered("reply", "without usage")
		return reply{fakellm.NewStep("usage", "none")}
	}
	return nil
}

// endings returns the ways in which a model turn can end now, with their weights.
func (w *writer) endings() []weighted[string] {
	list := []weighted[string]{{6, "plain", false}}
	if w.has("shapes") && !w.off("r") {
		list = append(list, weighted[string]{2, "length", false}, weighted[string]{2, "refusal", false},
			weighted[string]{1, "refusal in words", false},
			weighted[string]{1, "length after calls", !w.has("tools")},
			weighted[string]{1, "length in a thought", false}, weighted[string]{1, "refusal at once", false},
			weighted[string]{2, "nothing after calls", !w.has("tools")},
			weighted[string]{2, "length in a call", !w.has("tools") || !w.works("run_shell") || w.asked["run_shell"] != ""},
			weighted[string]{2, "thinking only at first", false}, weighted[string]{2, "several texts", false},
			weighted[string]{1, "text in parts", false}, weighted[string]{1, "late text", false})
	}
	if w.has("failures") && !w.off("r") {
		list = append(list, weighted[string]{2, "failure", false})
	}
	return list
}

// half returns a call of run_shell whose arguments break off in the command. The part of the command that is there
// would create the file half.
func (w *writer) half() fakellm.StepNode {
	args := marshal(object{"command": "echo halb > " + w.name("half") + ".txt; echo nothing else"})
	return fakellm.NewStep("tool", "run_shell", "raw: "+marshal(args[:len(args)-8]))
}

// parts returns a message of three parts, of which the second is white space alone.
func (w *writer) parts() reply {
	out := reply{fakellm.NewText("text", w.text())}
	for _, part := range []string{pick(w.r, []string{" ", "\n\n"}), w.text()} {
		out = append(out, fakellm.NewStep("text", marshal(part), "part: true"))
	}
	return out
}

// failures has the failures of the model server, as arguments of the model step fail.
var failures = []string{
	refusedByModel, keyRefused,
	"{status: 429, times: 100, retry_after: 0s, message: not authorized for more than 20 requests}",
	"{status: 500, times: 100}", "{status: 529, times: 100}", "{status: 503, times: 1}", "{disconnect: now, times: 100}",
	"{truncate: end, times: 100}", "{malformed: shape, times: 100}",
	"{truncate: end, times: 1}",
	`{status: 500, content_type: "text/plain; charset=iso-8859-1", body: "Zähler übergelaufen\n", times: 100}`,
	`{status: 413, content_type: text/html, body: "<html>\n<h1>413 Too Large</h1>\n<hr>nginx\n</html>\n", times: 100}`,
}

// refusedByModel is the failure after which an agent must not send the model request again.
const refusedByModel = "{status: 400, times: 100}"

// keyRefused is the failure by which the model's provider refuses the agent's key.
const keyRefused = "{status: 401, times: 100}"

func (w *writer) failure() fakellm.StepNode {
	f := pick(w.r, failures)
	w.covered("failure", f)
	return fakellm.NewStep("fail", f)
}

// last returns a reply with one text and no call, which ends a turn.
func (w *writer) last() reply { return reply{w.says("text")} }

func gate(name string) fakellm.StepNode { return fakellm.NewStep("gate", name) }

// tool returns a step that calls a neutral tool. The arguments are written as JSON, which is also valid YAML.
func tool(name string, args map[string]any, more ...string) fakellm.StepNode {
	return fakellm.NewStep("tool", name, append([]string{fmt.Sprintf("args: %s", marshal(args))}, more...)...)
}
