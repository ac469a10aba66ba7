package grammar

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

//go:embed acts.txt
var table string

// acts returns the table of the editor's acts, parsed once. The functions here give the values and the conditions that
// the table refers to by name.
var acts = sync.OnceValue(func() *sweep.Acts[*writer] {
	t := &sweep.Acts[*writer]{Flags: []string{"idle"}, Values: map[string]func(*writer) script.Word{
		"turn":   func(w *writer) script.Word { return script.Text(w.at.name) },
		"done":   func(w *writer) script.Word { return script.Text(w.at.done) },
		"prompt": func(w *writer) script.Word { return script.Text(w.at.prompt) },
		"login":  func(w *writer) script.Word { return script.Text(w.Login) },
		// earlier: the session's prompt before the turn's
		"earlier": func(w *writer) script.Word { return script.Text(w.at.before) },
		"option": func(w *writer) script.Word {
			for _, o := range w.Options {
				return script.Text(o.ID)
			}
			return script.Text(w.modeID)
		},
		"folder": func(w *writer) script.Word { return script.Text(cmp.Or(w.at.dir, ".")) },
		"mode":   func(w *writer) script.Word { return script.Text(cmp.Or(w.at.mode, w.Mode)) },
		"fresh":  func(w *writer) script.Word { return script.Text(w.name("s")) },
		"it":     func(w *writer) script.Word { return script.Text(w.named) },
	}}
	t.Conditions = map[string]func(*writer) bool{
		"running": func(w *writer) bool { return !w.at.gone },
		"ends":    func(w *writer) bool { return w.at.ends() },
		"once":    func(w *writer) bool { return w.at.once() },
		// takes-back: the editor can cancel the prompt by its request id. Excluded while the user is asked, because it is
		// not clear how the editor must then answer.
		"takes-back": func(w *writer) bool { return w.at.ends() && !w.at.asks() },
		"stayed":     func(w *writer) bool { return w.at.solid && !w.at.moved },
		"loads":      func(w *writer) bool { return w.has("ways") && w.at.solid && w.at.once() },
		"mode":       func(w *writer) bool { return w.Mode != "" && w.at.mode == "" && !w.at.gone },
		"option":     func(w *writer) bool { return len(w.Options) > 0 && !w.at.gone },
		// apart: another session can work at the same time. alone: if the process ends, no other work is lost.
		"v2":      func(w *writer) bool { return w.V2 },
		"network": func(w *writer) bool { return w.able(onNetwork) },
		"apart":   func(w *writer) bool { return w.has("several") && w.Together && len(w.open) == 1 },
		"alone": func(w *writer) bool {
			return w.has("process") && len(w.open) == 1 && len(w.at.later) == 0 && w.stops == 0 && w.at.once()
		},
		// beside: two turns run, and nothing has disturbed them.
		"beside": func(w *writer) bool {
			return len(w.open) == 2 && w.open[0].once() && w.open[1].once() && !w.open[0].gone && !w.open[1].gone
		},
		"asks-user":  func(w *writer) bool { return w.at.state == "permission open" },
		"lists":      func(w *writer) bool { return w.ways("list") },
		"reloads":    func(w *writer) bool { return w.ways("load") },
		"resumes":    func(w *writer) bool { return w.ways("resume") },
		"later-turn": func(w *writer) bool { return w.at.once() && w.at.before != "" },
		"idle-other": func(w *writer) bool { return len(w.idlers()) > 0 },
		"lost-other": func(w *writer) bool { return len(w.returning()) > 0 && w.has("ways") },
		// While a command runs, the editor may be able to cancel the call, to cancel only its terminal, or to kill the
		// command.
		"stops":         func(w *writer) bool { return w.at.runs() && !w.at.several && w.Tools["run_shell"].Stops },
		"ends-terminal": func(w *writer) bool { return w.at.runs() && w.Tools["run_shell"].Ends },
		"kills": func(w *writer) bool {
			return w.at.runs() && !w.out["requests"] && slices.Contains(w.Tools["run_shell"].Requests, "terminal/create")
		},
		"login": func(w *writer) bool { return w.Login != "" },
		// ends-process: the process may end between two turns.
		"ends-process": func(w *writer) bool { return w.has("process") && w.stops == 0 },
		"demands":      func(w *writer) bool { return w.Demands },
		"modes":        func(w *writer) bool { return w.Mode != "" && !w.V2 },
		"no-modes":     func(w *writer) bool { return w.Mode == "" && !w.V2 },
		"options":      func(w *writer) bool { return len(w.Options) > 0 || w.modeID != "" },
	}
	t.Parts = map[string]func(*writer, *script.Line){
		"check": func(w *writer, l *script.Line) {
			slug := len(l.Words) - 1
			w.check(strings.Join(lists.Map(l.Words[:slug], script.Word.Raw), ""), l.Words[slug].Raw())
		},
		"named":               func(w *writer, l *script.Line) { w.line(l, w.name(l.Words[0].Raw())) },
		"owed":                func(w *writer, l *script.Line) { w.line(l, w.at.owes(w.name(l.Words[0].Raw()))) },
		"stops":               func(w *writer, l *script.Line) { w.at.stop(l.Words[0].Raw()) },
		"over":                func(w *writer, _ *script.Line) { w.at.lost = true },
		"contests":            func(w *writer, _ *script.Line) { w.at.contested = true },
		"goes":                func(w *writer, _ *script.Line) { w.at.gone = true },
		"forgets":             func(w *writer, _ *script.Line) { w.at.solid = false },
		"loads":               func(w *writer, _ *script.Line) { w.at.loaded = true },
		"lists-later":         func(w *writer, _ *script.Line) { w.at.lists = w.ways("list") },
		"lost":                func(w *writer, _ *script.Line) { w.lost() },
		"loses":               func(w *writer, _ *script.Line) { w.lost(); w.stops++; w.at.lost = true },
		"second-prompt":       func(w *writer, _ *script.Line) { w.second() },
		"next-prompt":         func(w *writer, _ *script.Line) { w.successor() },
		"cancel-each":         func(w *writer, _ *script.Line) { w.cancelsEach() },
		"cancel-elsewhere":    func(w *writer, _ *script.Line) { w.Add("cancel %s", pick(w.r, w.idlers()).name) },
		"leave-elsewhere":     func(w *writer, l *script.Line) { w.leavesElsewhere(l.Words[0].Raw()) },
		"way-elsewhere":       func(w *writer, _ *script.Line) { w.reopen(pick(w.r, w.returning())) },
		"another-turn":        func(w *writer, _ *script.Line) { w.turnEndsIn(w.at.convo, w.says("text")) },
		"new-session":         func(w *writer, _ *script.Line) { w.newConvo() },
		"turn-elsewhere":      func(w *writer, _ *script.Line) { w.freeTurn(w.convo()) },
		"held-turn-elsewhere": func(w *writer, _ *script.Line) { w.anyHeld(w.convo()) },
		"give-mode":           func(w *writer, _ *script.Line) { w.givesMode() },
		"give-option": func(w *writer, _ *script.Line) {
			o := pick(w.r, w.Options)
			w.givesOption(o.ID, pick(w.r, append(slices.Clone(o.Values), o.Current)))
		},
	}
	return t.Read(table)
})

// line adds l to the scenario and sets the name of its result. It removes the first two words of l, which are not part
// of the scenario line.
func (w *writer) line(l *script.Line, name string) {
	l.Name, l.Words, l.As = l.Words[1], l.Words[2:], script.Text(name)
	l.Text = l.String()
	w.Lines = append(w.Lines, l)
}

// once reports whether no earlier act of the turn can change what the next act does.
func (t *turn) once() bool { return t.stopped == "" && !t.contested && !t.loaded }

// runs reports whether a command is running and no earlier act has affected it.
func (t *turn) runs() bool { return t.state == "command running" && t.once() && !t.gone }

// ends reports whether the turn will end if nothing stops it.
func (t *turn) ends() bool { return t.once() && !t.endless }

// can returns the acts that are possible during a turn. If idle is set, it returns those that are possible after the
// turn.
func (w *writer) can(t *turn, idle bool) []*sweep.Act {
	w.at = t
	return lists.Where(w.acts.List, func(a *sweep.Act) bool {
		w.Act = a
		return a.Is("idle") == idle && (a.Needs == "" || w.able(a.Needs)) && w.acts.Fits(w)
	})
}

// act draws an act that is possible in the turn's state, and writes its lines.
func (w *writer) act(t *turn) {
	if t.lost {
		return
	}
	can := w.can(t, false)
	var from []weighted[*sweep.Act]
	for _, a := range w.acts.List {
		if !a.Is("idle") {
			from = append(from, weighted[*sweep.Act]{a.Rank, a, !slices.Contains(can, a)})
		}
	}
	if a, ok := choose(w.r, from); ok {
		w.covered(t.state, a.Name)
		w.acts.Do(w, a)
	}
}

// second sends another prompt to the session of the running turn t.
func (w *writer) second() {
	name := w.at.owes(w.name("P"))
	w.prompt(w.at.convo, name)
	w.Turns = append(w.Turns, turnOf(w.last()))
	if w.V2 { // which idle state ends which prompt is not defined, so the session gets no further turn
		w.at.gone, w.at.solid = true, false
	}
}

// successor sends another prompt to a session whose turn is being stopped. A gate holds the model's reply.
func (w *writer) successor() {
	name := w.at.owes(w.name("P"))
	w.prompt(w.at.convo, name)
	w.at.next = w.name("g")
	w.Turns = append(w.Turns, turnOf(reply{w.says("text"), gate(w.at.next), w.says("text")}))
}

// cancelsEach cancels all turns that run. The next cancel does not wait for the end of the turn before.
func (w *writer) cancelsEach() {
	for _, t := range w.open {
		w.Add("cancel %s", t.name)
		t.stop("CANCEL-001")
	}
}

// leavesElsewhere closes or deletes a session in which no turn runs.
func (w *writer) leavesElsewhere(how string) {
	c := pick(w.r, w.idlers())
	w.Add("session %s %s wait=no as %s", how, c.name, w.at.owes(w.name("C")))
	c.gone, c.solid = true, false // a load could cross the unanswered close
}

// idlers returns the open sessions in which no turn runs. returning returns the closed sessions that can be loaded or
// resumed.
func (w *writer) idlers() []*convo {
	return lists.Where(w.convos, func(c *convo) bool { return !c.gone && !w.busy(c) })
}

func (w *writer) returning() []*convo {
	can := w.ways("load", "resume")
	return lists.Where(w.convos, func(c *convo) bool { return can && c.gone && c.solid && !w.busy(c) })
}

// sets writes a request whose method changes a setting of the session to the value that params gives.
func (w *writer) sets(method, params string) {
	name := w.at.owes(w.name("R"))
	session := script.Variable("SESSION(" + w.at.name + ")")
	all := script.Join(script.Quote(`{"sessionId": "`), session, script.Quote(`", `+params+`}`))
	w.Add("request %s %s as %s", method, all, name)
}

func (w *writer) givesOption(id, value string) {
	value = strings.ReplaceAll(value, "$", "$$") // a request expands variables in its parameters
	params := `"configId": "` + id + `", "value": "` + value + `"`
	if w.V2 {
		params += `, "type": "id"`
	}
	w.sets("session/set_config_option", params)
}

// givesMode sets the session's mode during a turn: to the initial one, or to another one if nothing but text of the
// model is to come in the turn. Modes that only read are left out: later checks would rely on the agent's consent.
func (w *writer) givesMode() {
	mode := w.Mode
	others := lists.Where(w.Modes, func(m string) bool { return !readsOnly().MatchString(m) })
	if len(others) > 0 && slices.Contains([]string{"silent", "text held", "thought held"}, w.at.state) && w.one(2) {
		mode = pick(w.r, others)
		w.at.mode = mode
	}
	if w.V2 {
		w.givesOption(w.modeID, mode)
		return
	}
	w.sets("session/set_mode", `"modeId": "`+mode+`"`)
}

// owes records a request that the agent must have answered when the turn ends. It returns the request's name.
func (t *turn) owes(name string) string {
	t.later = append(t.later, name)
	return name
}

// stop records that the editor told the agent to stop the turn, and the requirement about that. Later calls do
// nothing.
func (t *turn) stop(requirement string) {
	if t.stopped == "" {
		t.stopped = requirement
	}
}
