package invariants

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// modelCalls judges that the tools that the model calls are shown to the editor, and that what
// came of them, such as a file or an output that the editor gave, goes back to the model.
func modelCalls(v *version) *rule {
	r := v.ofAgent("MODEL-CALLS", "A tool that the model calls is shown, and what came of it goes back to the model.")
	c := &callPoints{
		unseen: r.Warn("unseen", "a tool that the model called, and that was run, was not shown", "TOOL-001"),
		file:   r.Fail("file", "the text of a file that the editor gave did not go back to the model", "PROMPT-027"),
		output: r.Fail("output", "the output of a terminal of the editor did not go back to the model", "PROMPT-027"),
		ended:  r.Warn("ended", "a turn ended with end_turn although the model had called a tool", "PROMPT-027"),
	}
	return r.Watching(func(w *watch) {
		turns := map[*turn]*calling{}
		w.On(func(*event) {
			clear(turns) // whose request is whose
		}, asked(prompt))
		w.On(func(ev *event) {
			t := w.state.onlyTurn()
			if t == nil || t.session.id != ev.Session {
				clear(turns)
				return
			}
			x := turns[t]
			switch ev.Kind {
			case transcript.ModelRequest:
				a, ok := fakellm.ReadAsked(ev.Entry)
				switch {
				case !ev.body.Get("lane").Is("main"):
				case !ok || !asks(ev, t):
					delete(turns, t)
				case x == nil && string(ev.body.Get("step").Raw()) == "1":
					turns[t] = &calling{n: ev.number(), asked: ev.Seq}
				case x != nil:
					c.goneBack(w, ev, x, a)
					x.n, x.asked, x.called, x.fileAt, x.outputAt = ev.number(), ev.Seq, nil, 0, 0
				}
			case transcript.ModelAnswer:
				if x != nil && x.n == ev.number() {
					x.called = called(ev.body.Get("steps"))
				}
			case transcript.ModelFault, transcript.ModelAborted:
				delete(turns, t)
			}
		}, modelEvent)
		show := func(ev *event) {
			if x := turns[ev.turn]; x != nil && ev.tool == nil { // of a call the first that tells of it
				x.shown++
			}
		}
		w.On(show, toolCall, toolUpdate, asked(permission), planUpdate, modeUpdate, optionsUpdate, subagentUpdate, asked(elicit))
		w.On(func(ev *event) {
			if x := turns[ev.turn]; x != nil && !ev.succeeded() || x != nil && ev.verb == permission && denial(ev) != granted {
				x.refused = true
			}
		}, editorAnswers()...)
		w.On(func(ev *event) {
			if x := turns[ev.turn]; x != nil && ev.succeeded() && len(ev.Redacted) == 0 {
				x.file, x.fileAt = ev.result.Get("content").Str(), ev.Seq
			}
		}, answered(readFile))
		w.On(func(ev *event) {
			if x := turns[ev.turn]; x != nil && ev.succeeded() && len(ev.Redacted) == 0 {
				x.output, x.outputAt = ev.result.Get("output").Str(), ev.Seq
			}
		}, answered(terminalOutput))
		w.On(func(ev *event) {
			x, t := turns[ev.turn], ev.turn
			delete(turns, t)
			if x == nil || !t.alone() || t.mixed || t.cancel != nil || t.joined > 0 || ev.stop != "end_turn" {
				return
			}
			// The two sides of the agent are not read in step: only the end of the turn tells what came.
			if len(x.ran) > 0 {
				w.judge(c.unseen, x.shown == 0, ev, fmt.Sprint(t.started), []int{x.asked},
					"The model called %s, its results went back, and the turn showed no tool call.", strings.Join(x.ran, ", "))
			}
			if failed := slices.ContainsFunc(t.tools, func(k *tool) bool { return k.status == failed }); !failed && !x.refused {
				w.judge(c.ended, len(x.called) > 0, ev, fmt.Sprint(t.started), []int{x.asked},
					"The model called %s, and the turn ended with end_turn without asking it again.", strings.Join(x.called, ", "))
			}
		}, answered(prompt))
	})
}

type callPoints struct{ unseen, file, output, ended int }

// calling is what the model called in its latest reply, and what happened since.
type calling struct {
	n, asked         int      // number and Seq of the request
	called, ran      []string // the latter are those whose results went back
	shown            int      // what the editor saw of it
	refused          bool     // the editor refused something
	file, output     string
	fileAt, outputAt int
}

// visible are the neutral tools that every agent shows.
var visible = []string{"write_file", "edit_file", "read_file", "run_shell", "search", "fetch", "delete_file", "move_file", "mcp"}

// called returns the neutral tools among the steps of an answer.
func called(steps wire.Value) (names []string) {
	for s := range steps.Items() {
		for _, name := range visible {
			if strings.HasPrefix(s.Str(), fmt.Sprintf("tool: %q", name)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// loose is a text as it may stand in a result: bare, and without what JSON and XML escape.
func loose(text string) string {
	return strings.NewReplacer(`"`, "", `\`, "", `u003c`, "<", `u003e`, ">", `u0026`, "&").Replace(bare(html.UnescapeString(text)))
}

// goneBack judges the request that follows a reply with calls.
func (c *callPoints) goneBack(w *watch, ev *event, x *calling, a fakellm.Asked) {
	if x == nil || len(x.called) == 0 || x.refused {
		return
	}
	var results strings.Builder
	unknown := false // an agent need not show a call of a tool that it does not have
	for _, p := range a.Conversation() {
		if p.Who == "result" {
			results.WriteString(loose(p.Text) + "\n")
		}
		unknown = unknown || p.Calls && p.Name != "" && !slices.Contains(a.Offered, p.Name)
	}
	if results.Len() == 0 || unknown {
		return
	}
	x.ran = append(x.ran, x.called...)
	lacks := func(text string) bool {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return bare(l) == "" })
		return len(lines) > 0 && !strings.Contains(results.String(), loose(lines[0])) &&
			!strings.Contains(results.String(), loose(lines[len(lines)-1]))
	}
	if x.fileAt > 0 && slices.Contains(x.called, "read_file") && len(x.called) == 1 {
		w.judge(c.file, lacks(x.file), ev, "", []int{x.fileAt}, "The editor gave the file %q, and no result of a tool in the next request holds it.",
			clip(x.file))
	}
	if x.outputAt > 0 && slices.Contains(x.called, "run_shell") && len(x.called) == 1 {
		w.judge(c.output, lacks(x.output), ev, "", []int{x.outputAt}, "The terminal said %q, and no result of a tool in the next request holds it.",
			clip(x.output))
	}
}
