package invariants

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// modelCalls checks that the agent shows the model's tool calls to the editor. It also checks that the agent returns
// the editor's results, such as a file or an output, to the model.
func modelCalls(w *watch) {
	c := &callWatch{w, map[*turn]*calling{}}
	w.On(c.model, modelEvent)
	c.on(func(ev *event, x *calling) {
		// The first entry that names this call. TOOL-RESEND reports a call with the id of another turn's call.
		if ev.tool == nil || ev.topic == toolCall && ev.tool.turn != ev.turn {
			x.shown++
		}
		x.failed = x.failed || ev.update.Get("status").Is("failed")
	}, toolCall, toolUpdate, asked(permission), planUpdate, modeUpdate, optionsUpdate, subagentUpdate, asked(elicit))
	c.on(func(ev *event, x *calling) { x.tells(ev) }, toolCall, toolUpdate)
	c.inSession(c.strays, toolCall)
	c.on(func(ev *event, x *calling) {
		if x.frames.Len() < rememberedText {
			x.frames.Write(ev.Raw)
		}
	}, toolCall, toolUpdate, asked(permission))
	c.on(func(ev *event, x *calling) {
		if !c.asksElsewhere(ev, x) {
			c.blind(ev, x)
		}
	}, asked(permission))
	c.on(func(ev *event, x *calling) {
		for at := range ev.update.Get("locations").Items() {
			x.places[ev.update.Get("toolCallId").Str()] = true
			x.files[path.Base(at.Get("path").Str())] = true
		}
	}, toolCall, toolUpdate)
	c.on(func(ev *event, x *calling) {
		x.refused = x.refused || !ev.succeeded()
		if ev.verb == permission {
			how := denial(ev)
			x.refused = x.refused || how != granted
			if how == rejectedOnce || how == rejectedAlways {
				x.rejected = ev.Seq
			}
		}
	}, editorAnswers()...)
	c.on(func(ev *event, x *calling) {
		x.file = found{ev.Seq, ev.result.Get("content").Str(), len(ev.Redacted) > 0}
	}, answered(readFile))
	c.on(func(ev *event, x *calling) {
		x.output = found{ev.Seq, ev.result.Get("output").Str(), len(ev.Redacted) > 0}
	}, answered(terminalOutput))
	w.onEnd(func(ev *event) {
		if x := c.turns[ev.turn]; x != nil {
			c.ends(ev, x)
		}
	})
	if !w.version.states {
		callContent(w)
	}
}

type callWatch struct {
	*watch
	turns map[*turn]*calling
}

// calling has the tool calls of the latest model reply, and how many calls the turn showed the editor.
type calling struct {
	n, asked     int              // number and Seq of the model request
	called, ran  []string         // visible tools the model called last; visible tools whose results the model got
	made, ranAll []string         // the same of all tools
	wanted, done []wish           // the calls of called and ran
	places       map[string]bool  // calls of the turn that show locations, by id
	files        map[string]bool  // names of the files at those locations
	frames       *strings.Builder // frames of the turn about calls
	shown        int              // number of calls that the editor saw in this turn
	failed       bool             // some call failed
	refused      bool             // the editor refused something
	rejected     int              // Seq of the user's latest answer that rejects a call
	over         int              // Seq of the latest model request with the result of a rejected call
	file, output found
	pieces       []found // successive texts in the content of a call
	told         string  // id of that call
	strayed      stray
}

// found is a text from the editor. secret says that the log hides a part of the text.
type found struct {
	seq    int
	text   string
	secret bool
}

// on calls judge for entries of turns whose model side is in the log.
func (c *callWatch) on(judge func(*event, *calling), about ...topic) {
	c.On(func(ev *event) {
		if x := c.turns[ev.turn]; x != nil {
			judge(ev, x)
		}
	}, about...)
}

// model handles an entry of the model's side.
func (c *callWatch) model(ev *event) {
	t := c.state.turnOf(ev)
	if t == nil || t.session.id != ev.Session {
		clear(c.turns)
		return
	}
	x := c.turns[t]
	switch ev.Kind {
	case transcript.ModelRequest:
		if ev.converses() {
			c.request(ev, t, x)
		}
	case transcript.ModelAnswer:
		if x != nil && x.n == ev.number() {
			x.made, x.called, x.wanted = made(ev.body.Get("steps")), called(ev.body.Get("steps")), wishes(ev)
		}
	case transcript.ModelFault, transcript.ModelAborted:
		delete(c.turns, t)
	}
}

func (c *callWatch) request(ev *event, t *turn, x *calling) {
	a, ok := ev.askedOfModel()
	first, _ := ev.body.Get("step").Int()
	switch {
	case !ok || !asks(ev, t):
		delete(c.turns, t)
	case x == nil && first == 1:
		c.turns[t] = &calling{n: ev.number(), asked: ev.Seq, frames: &strings.Builder{}, places: map[string]bool{},
			files: map[string]bool{}}
	case x != nil:
		c.goneBack(ev, x, a)
		*x = calling{n: ev.number(), asked: ev.Seq, ran: x.ran, ranAll: x.ranAll, shown: x.shown, failed: x.failed,
			refused: x.refused, rejected: x.rejected, over: x.over, done: x.done, frames: x.frames, places: x.places,
			files: x.files, strayed: x.strayed}
	}
}

// ends judges the calls of a turn that has ended. It cannot judge earlier: the log may place a model request before
// updates that the agent sent earlier.
func (c *callWatch) ends(ev *event, x *calling) {
	t := ev.turn
	delete(c.turns, t)
	if !t.alone() || t.mixed || t.like || t.stopped() || t.joined > 0 || ev.stop == "" {
		return
	}
	c.shown(ev, x)
	c.judge("ended", len(x.called) > 0 && ev.stop == "end_turn" && !x.failed && !x.refused, ev, fmt.Sprint(t.started),
		[]int{x.asked}, "The model called %s, but the turn ended with end_turn before the agent asked the model again.",
		strings.Join(x.called, ", "))
}

// shown checks that the turn showed every call whose result the model got, and that each of these calls ended.
func (c *callWatch) shown(ev *event, x *calling) {
	t := ev.turn
	c.unended(ev, x)
	if ev.stop != "end_turn" {
		return
	}
	names := strings.Join(x.ran, ", ")
	if len(x.ran) > 0 {
		c.Saw("unseen", "shared-id", "elsewhere")
	}
	c.mixedUp(ev, x)
	switch again := slices.ContainsFunc(t.tools, func(k *tool) bool { return k.again }); {
	case again && len(x.ran) > len(t.tools):
		c.find("shared-id", ev, fmt.Sprint(t.started), []int{x.asked}, "The model called %s, %d calls in all, but "+
			"the turn showed %d: the agent reused the id of an ended call.", names, len(x.ran), len(t.tools))
	case x.shown < len(x.ran) && x.strayed.seq > 0 && !strings.Contains(x.frames.String(), beginning(x.strayed.mark)):
		c.find("elsewhere", ev, fmt.Sprint(t.started), []int{x.asked, x.strayed.seq}, "The agent showed the model's "+
			"call with %q in the idle session %s, and not in this one.", x.strayed.mark, x.strayed.session)
	case x.shown < len(x.ran):
		c.find("unseen", ev, fmt.Sprint(t.started), []int{x.asked}, "The model called %s and got the results, but the "+
			"turn showed only %d of %s.", names, x.shown, printable.Plural(len(x.ran), "call", "calls"))
	}
}

// mixedUp reports that the agent showed a call with the arguments of another call. It knows this if the turn shows the
// path or command of one call, and not that of another call of the same tool.
func (c *callWatch) mixedUp(ev *event, x *calling) {
	if len(x.ran) == 0 || len(x.ran) != len(ev.turn.tools) || x.failed { // a failed call may show nothing
		return
	}
	if c.misplaced(ev, x) || len(x.ran) < 2 || x.frames.Len() >= rememberedText {
		return
	}
	frames, shown, hidden := x.frames.String(), map[string]string{}, map[string]string{}
	for _, call := range x.done {
		if mark := call.mark(); mark != "" {
			of := pick(strings.Contains(frames, mark), shown, hidden)
			of[call.tool] = mark
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(hidden)) {
		c.judge("arguments", shown[tool] != "", ev, tool, []int{x.asked}, "The model called %s with %q and with %q, but no "+
			"message about the turn's tool calls has %[3]q.", tool, shown[tool], hidden[tool])
	}
}

// misplaced reports a call whose file no location of the turn names, if each call of the turn has a location. It
// returns true if it has reported one.
func (c *callWatch) misplaced(ev *event, x *calling) (found bool) {
	if len(x.places) != len(x.done) {
		return false
	}
	for _, call := range x.done {
		name := path.Base(call.args["path"])
		named := slices.Contains([]string{"read_file", "write_file", "edit_file", "delete_file"}, call.tool)
		if named && call.args["path"] != "" {
			found = c.judge("location", !x.files[name], ev, name, []int{x.asked}, "The model called %s with %q, but the "+
				"turn's tool calls have no location with that file, only: %s.", call.tool, call.args["path"],
				strings.Join(slices.Sorted(maps.Keys(x.files)), ", ")) != nil || found
		}
	}
	return found
}

// mark returns the last part of the call's path, or its command, if JSON shows it as it is. Else it returns "".
func (c wish) mark() string {
	mark := cmp.Or(c.args["command"], path.Base(c.args["path"]))
	other := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\/<>&'`, r) }
	return pick(strings.IndexFunc(mark, other) < 0 && len(mark) >= tellsApart, mark, "")
}

// visible lists the neutral tools whose calls every agent shows to the editor.
var visible = []string{"write_file", "edit_file", "read_file", "list_folder", "run_shell", "search", "fetch",
	"delete_file", "move_file", "mcp"}

// made returns the tools among the steps of a model reply. It returns none for a reply that a token limit or a refusal
// cuts off, because an agent need not make the calls of such a reply.
func made(steps wire.Value) (names []string) {
	for s := range steps.Items() {
		if strings.HasPrefix(s.Str(), "stop:") {
			return nil
		}
		if name, ok := strings.CutPrefix(s.Str(), `tool: "`); ok {
			name, _, _ = strings.Cut(name, `"`)
			names = append(names, name)
		}
	}
	return names
}

// called returns the visible tools of made.
func called(steps wire.Value) []string {
	return lists.Where(made(steps), func(name string) bool { return slices.Contains(visible, name) })
}

// goneBack judges the results in the model request that follows a reply with calls.
func (c *callWatch) goneBack(ev *event, x *calling, a fakellm.Asked) {
	c.toldOfRejection(ev, x, a)
	if len(x.made) == 0 || x.refused {
		return
	}
	var results strings.Builder
	for _, p := range a.Conversation() {
		if p.Who == "result" {
			results.WriteString(hearing.Loose(p.Text) + "\n")
		}
		if p.Calls && p.Name != "" && !slices.Contains(a.Offered, p.Name) {
			return // the model called a tool that the agent does not have
		}
	}
	if results.Len() == 0 {
		return
	}
	x.ranAll = append(x.ranAll, x.made...)
	x.ran, x.done = append(x.ran, x.called...), append(x.done, x.wanted...)
	if len(x.called) != 1 {
		return
	}
	back := func(point string, tool string, f found, format string) {
		if f.seq > 0 && !f.secret && x.called[0] == tool {
			c.judge(point, !holds(results.String(), f.text), ev, "", []int{f.seq}, format, clip(f.text))
		}
	}
	back("file", "read_file", x.file,
		"The editor returned the file text %q, but no result in the next model request has it.")
	c.whole(ev, x, results.String())
	back("output", "run_shell", x.output, "The terminal printed %q, but no result in the next model request has it.")
}

// tells remembers the text that an update gives as the content of a call.
func (x *calling) tells(ev *event) {
	var text strings.Builder
	for item := range ev.update.Get("content").Items() {
		text.WriteString(item.Path("content.text").Str())
	}
	if id := ev.update.Get("toolCallId"); !id.Is(x.told) {
		x.told, x.pieces = id.Str(), nil
	}
	if piece := hearing.Loose(text.String()); len(x.called) > 0 && piece != "" && piece != x.latest() {
		x.pieces = append(x.pieces, found{ev.Seq, piece, len(ev.Redacted) > 0})
	}
}

func (x *calling) latest() string {
	if len(x.pieces) == 0 {
		return ""
	}
	return x.pieces[len(x.pieces)-1].text
}

// whole checks that the agent does not send a call's content in pieces, because each update replaces the earlier
// content. Updates count as pieces if in the model's result each begins where the one before ends. The agent may put
// each into a code block.
func (c *callWatch) whole(ev *event, x *calling, results string) {
	const most = 64 // bytes of the end and of the beginning; an end that is shorter may be a title or a command
	if len(x.pieces) < 2 {
		return
	}
	inPieces, end := true, ""
	for i, p := range x.pieces {
		if p.secret {
			return
		}
		start := strings.Trim(p.text, "`")
		if i > 0 {
			joined := end[max(0, len(end)-most):] + start[:min(len(start), most)]
			inPieces = inPieces && len(end) >= most && start != "" && strings.Count(results, joined) == 1 &&
				!strings.Contains(start, strings.Trim(x.pieces[i-1].text, "`"))
		}
		end += start
	}
	first, last := x.pieces[0], x.pieces[len(x.pieces)-1]
	if len(last.text)*10 >= len(first.text)*9 {
		inPieces = false // the last lines of an output, in a window of one size
	}
	c.judge("pieces", inPieces, ev, "", []int{first.seq, last.seq},
		"The agent sent a call's content in pieces: first %q, last %q (without white space). Each update must have "+
			"the whole content.", clip(first.text), clip(last.text))
}

// holds reports whether results contain the first or the last line of a text. An agent may shorten a result.
func holds(results, text string) bool {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return bare(l) == "" })
	return len(lines) == 0 || strings.Contains(results, hearing.Loose(lines[0])) ||
		strings.Contains(results, hearing.Loose(lines[len(lines)-1]))
}
