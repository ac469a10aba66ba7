package grammar

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// freeTurn writes a turn that ends by itself.
func (w *writer) freeTurn(c *convo) {
	t := &turn{convo: c, prompt: w.name("P"), state: "free"}
	w.folder, w.made = c.folder(), nil
	w.prompt(c, t.prompt)
	if w.has("writes") && w.one(6) {
		w.Add("stall 150ms")
	}
	first, begun := w.before()
	last, how := w.ending(begun)
	w.Turns = append(w.Turns, turnOf(append(first, last...)...))
	if (how == "plain" || how == "several texts" || how == "late text") && len(w.made) == 0 {
		w.endsWell(c)
		c.solid = c.solid || c.mode == ""
		return
	}
	switch quiet, thought := strings.CutPrefix(how, "thought "); {
	case how == refusedByModel && !w.V2:
		w.check("PROMPT-023", "fails")
		w.Add("await turn error within=60s session=%s", t.name)
		w.check("", "goes-on")
	case how == refusedByModel:
		w.check("V2-PRM-005", "fails")
		w.Add("await turn any|error within=60s session=%s", t.name)
		w.Add("saw state idle stopReason=error session=%s", t.name)
		w.check("", "goes-on")
	case thought:
		w.ends(t)
		w.check("MSG-010", "thinks-apart")
		w.Add("! saw agent_message text~%s session=%s", quiet, t.name)
		w.check("", "goes-on")
	case how == "length in a call":
		half := w.folder + w.named + ".txt"
		w.ends(t)
		w.check("TOOL-012", "makes-no-half-call")
		w.Add("! exists %s", half)
		w.check("", "goes-on")
	case how == "failure":
		w.Add("await turn any|error within=60s session=%s", t.name)
	default:
		w.ends(t)
	}
	w.workAsBefore(c)
	w.effects(c, w.made)
}

// workAsBefore writes a check that no call of a turn fails, if all of them are calls that succeeded in calibration.
func (w *writer) workAsBefore(c *convo) {
	mayFail := func(k call) bool { return k.mayFail || !w.Tools[k.tool].Works || w.rejects(k) }
	if len(w.made) == 0 || c.mode != "" || w.out["requests"] || w.hung || slices.ContainsFunc(w.made, mayFail) {
		return
	}
	w.check("TOOL-012", "calls-work-as-before")
	w.Add("! saw tool status=failed session=%s", c.name)
	w.check("", "goes-on")
}

// rejects reports whether the user has rejected the call's tool for always.
func (w *writer) rejects(k call) bool { return strings.HasPrefix(w.asked[k.tool], "reject") }

// turn writes a turn with the given replies that ends by itself, also with an error.
func (w *writer) turn(c *convo, replies ...reply) {
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(replies...))
	w.ends(&turn{convo: c})
}

// ends writes an await for the end of a turn.
func (w *writer) ends(t *turn) { w.Add("await turn any|error %s session=%s", w.soon(), t.name) }

// endsWell writes an await for a turn that must end with end_turn.
func (w *writer) endsWell(c *convo) {
	w.Add("await turn end_turn %s session=%s", w.soon(), c.name)
	c.answered()
}

// answered records that the last prompt of the session got an answer from the model.
func (c *convo) answered() { c.again, c.told = c.said, fmt.Sprintf("(Nr|Number )%d[^0-9]", c.number) }

// soon returns the option within=, a timeout for the end of a turn. It fits turns without model failures, in which the
// agent does not wait before a retry.
func (w *writer) soon() script.Word {
	if w.Turn > time.Second {
		return script.Option("within", "60s")
	}
	return script.Option("within", "20s")
}

// holds writes the lines of a turn up to the state s, in which the turn is held.
func (w *writer) holds(c *convo, s state) *turn {
	t := &turn{convo: c, prompt: w.name("P"), state: s.name, endless: s.endless}
	w.made = nil
	says := w.model(t, s)
	if s.ahead != nil {
		s.ahead(w, t)
	}
	w.prompt(c, t.prompt)
	w.Turns = append(w.Turns, says)
	s.await(w, t)
	return t
}

// heldTurn writes a turn that is held in state s, some acts in that state, and the end of the turn.
func (w *writer) heldTurn(c *convo, s state) {
	t := w.holds(c, s)
	w.open = append(w.open, t)
	if !w.off("a") {
		n := 1
		if w.has("asides") && w.one(2) {
			n = 2 + w.r.IntN(2)
		}
		for range n {
			w.act(t)
		}
	}
	if s.endless && t.stopped == "" && !t.lost {
		w.Add("cancel %s", t.name)
		t.stopped = "CANCEL-001"
	}
	w.open = w.open[:len(w.open)-1]
	w.letGo(t)
}

// letGo releases everything that holds a turn, and waits for its end. The script awaits the end of a stopped turn
// before the release, because before the release only the stop can end the turn.
func (w *writer) letGo(t *turn) {
	if t.lost {
		return
	}
	w.replies(t)
	stopped := t.stopped != "" && !t.contested
	if stopped {
		w.endsStopped(t)
	}
	if t.next != "" {
		w.check("CANCEL-001", "ends-the-next")
		w.Add("cancel %s", t.name)
	}
	if t.gate != "" {
		w.Add("release %s", t.gate)
		if t.stopped == "" && !t.contested && w.has("stops") && w.one(6) {
			w.Add("cancel %s", t.name)
			t.contested = true
		}
	}
	if t.done != "" {
		w.Add("write %s ''", t.done)
	}
	switch {
	case stopped:
	case t.gone || len(t.later) > 0 && !w.V2:
		w.Add("await response %s %s", t.prompt, w.soon())
	default:
		w.ends(t)
	}
	for _, name := range t.later {
		w.Add("await response %s %s", name, w.soon())
	}
	if t.lists { // what a turn writes at its end must not bring back a deleted session (DELETE-GONE)
		w.Add("session list all")
	}
	if t.stopped == "" && !t.contested {
		w.ended(t)
	}
}

// endsStopped writes an await for the end of a stopped turn.
func (w *writer) endsStopped(t *turn) {
	w.check(t.stopped, "ends-as-cancelled")
	switch {
	case t.loaded && w.V2:
		w.ends(t)
	case t.loaded:
		w.Add("await response %s", t.prompt)
	case t.next != "":
		w.Add("await response %s stopReason=cancelled", t.prompt)
	default:
		w.Add("await turn cancelled session=%s", t.name)
	}
	w.check("", "goes-on")
}

// ended checks the effects of a turn that was neither stopped nor disturbed.
func (w *writer) ended(t *turn) {
	switch {
	case t.state == "permission open" && t.allowed:
		w.effects(t.convo, []call{t.call})
	case t.state == "permission open":
		w.untouched(t.call)
	case t.told != "":
		w.check("", "typed-word")
		w.Lines = append(w.Lines, script.New(t.told))
		w.check("", "goes-on")
	case t.done != "" && !t.loaded && !t.gone && !t.several:
		w.check("CANCEL-010", "command-goes-on")
		w.Add("await file %s session=%s", "ended-"+t.done, t.name)
		w.check("", "goes-on")
	case t.request == "" && t.gate != "" && len(w.made) == 0:
		t.solid = true
		t.answered()
	}
}

// readsOnly matches the names of modes in which an agent writes no files.
var readsOnly = lazy.Regexp(`(?i)read.?only`)

// effects writes checks that the calls of a turn took effect. After a call that the user rejected, an agent need not
// make the other calls of the turn.
func (w *writer) effects(c *convo, made []call) {
	rejected := slices.ContainsFunc(made, w.rejects)
	for _, k := range made {
		if strings.HasPrefix(k.after, "exists ") && readsOnly().MatchString(c.mode) {
			w.check("", "writes-nothing")
			w.Lines = append(w.Lines, script.New("! "+k.after))
			w.check("", "goes-on")
		}
		if c.mode != "" || rejected || k.after == "" {
			continue
		}
		if k.tool == "delete_file" || k.tool == "move_file" {
			w.check("", "kind-is-no-reader")
			w.Add("! saw tool kind=read|search|think|fetch session=%s raw~%s", c.name, k.mark)
		}
		w.check(k.requirement, "has-effect")
		line := k.after
		if strings.HasPrefix(strings.TrimPrefix(line, "! "), "saw ") {
			line += " session=" + c.name
		}
		w.Lines = append(w.Lines, script.New(line))
		w.check("", "goes-on")
	}
}

// untouched writes a check that a call which the user did not allow had no effect.
func (w *writer) untouched(k call) {
	line, gone := strings.CutPrefix(k.after, "! ")
	if !strings.HasPrefix(line, "exists ") && !strings.HasPrefix(line, "canary called ") {
		return
	}
	if !gone {
		line = "! " + line
	}
	w.check("PERM-007", "no-effect")
	w.Lines = append(w.Lines, script.New(line))
	if k.traces != "" {
		w.Add("! exists %s", k.traces)
	}
	w.check("", "goes-on")
}

// replies writes the editor's answer to the request that holds a turn. In a stopped turn, the editor has already
// answered permission requests and questions.
func (w *writer) replies(t *turn) {
	if t.request == "" {
		return
	}
	switch {
	case t.asks() && t.stopped != "":
	case t.state == "permission open":
		w.answers(t)
	case t.state == "question open":
		w.fills(t)
	default:
		if w.one(4) {
			w.covered(t.state, "answer late")
			w.Add("await quiet 100ms")
		}
		a := pick(w.r, answersOf[t.state])
		w.covered(t.state, "answer "+a.name)
		how := script.Quote(a.value)
		if a.key != "" {
			how = script.Option(a.key, how)
		}
		w.Add("answer %s %s", t.request, how)
	}
}

// asks reports whether a question to the user holds the turn.
func (t *turn) asks() bool {
	return slices.Contains([]string{"permission open", "question open", "page open"}, t.state)
}

// fillings has the editor's answers to a question. FIELD stands for the first required field of the form, and WORD for
// the text that the user typed. reaches is the beginning of a script line that checks whether the model is told WORD;
// "" for no check.
var fillings = []struct{ name, value, reaches string }{
	{"decline", `{"action": "decline"}`, ""},
	{"cancel", `{"action": "cancel"}`, ""},
	{"nonsense", `{"action": "accept", "content": {"nonsense": [4711]}}`, ""},
	{"a word", `{"action": "accept", "content": {"FIELD": "WORD"}}`, "saw"},
	{"a word, declined", `{"action": "decline", "content": {"FIELD": "WORD"}}`, "! saw"},
	{"a word, cancelled", `{"action": "cancel", "content": {"FIELD": "WORD"}}`, "! saw"},
	{"a word, later", `{"action": "_later", "content": {"FIELD": "WORD"}}`, "! saw"},
}

// fills answers the open question of a turn.
func (w *writer) fills(t *turn) {
	var list []weighted[int]
	for i, f := range fillings {
		list = append(list, weighted[int]{1, i, f.reaches != "" && (t.chooses || !w.Tools["ask_user"].Tells)})
	}
	i, _ := choose(w.r, list)
	f, word := fillings[i], w.name("quetzal")+"x"
	w.covered(t.state, "answer "+f.name)
	before, after, typed := strings.Cut(strings.ReplaceAll(f.value, "WORD", word), "FIELD")
	value := script.Quote(before)
	if typed {
		value = script.Join(value, script.Variable(t.request+".requestedSchema.required.0"), script.Quote(after))
		t.told = fmt.Sprintf("%s model request session=%s raw~%s", f.reaches, t.name, word)
	}
	w.Add("answer %s %s", t.request, script.Option("result", value))
}

// heldAnswer is an answer of the editor to a held request. key and value form the option of the script's answer line;
// if key is "", value stands alone.
type heldAnswer struct{ name, key, value string }

// answersOf has, for each state, the editor's possible answers to the request that holds the turn. All answers are
// valid by the schema, because an invalid answer would excuse the agent. No page is accepted, because the agent may
// then wait until the user has been there.
var answersOf = map[string][]heldAnswer{
	"page open": {
		{"decline", "result", `{"action": "decline"}`}, {"cancel", "result", `{"action": "cancel"}`},
		{"later", "result", `{"action": "_later"}`}, {"internal error", "error", "-32603"},
	},
	"file read open": {
		{"content", "result", `{"content": "held\n"}`}, {"not found", "error", "-32002"},
		{"internal error", "error", "-32603"}, {"empty content", "result", `{"content": ""}`}, {"refusal", "error", "-32000"},
		asUsual,
	},
	"read for an edit open": {
		asUsual, {"content", "result", `{"content": "held\n"}`}, {"internal error", "error", "-32603"},
	},
	"read for a write open": {
		asUsual, {"content", "result", `{"content": "held\n"}`}, {"internal error", "error", "-32603"},
	},
	"file write open": {
		{"internal error", "error", "-32603"}, {"refusal", "error", "-32000"}, asUsual,
	},
	"terminal asked for": {
		{"internal error", "error", "-32603"}, {"refusal", "error", "-32000"}, asUsual, asUsual,
	},
}

// asUsual makes the editor give its usual answer late.
var asUsual = heldAnswer{"usual", "", "usual"}

// notOffered has answers to a permission request that select no option of the request.
var notOffered = []string{"cancelled", "error=-32603", "id=no-such-option", noOption}

// noOption names the answer that claims to select an option and names none.
const noOption = "selected without an option"

// decidesBy answers a permission request with an option kind or an element of notOffered.
func (w *writer) decidesBy(ask, how string) {
	if how == noOption {
		how = `result='{"outcome": {"outcome": "selected"}}'`
	}
	w.Add("answer %s "+how, ask)
}

// answers writes the editor's answer to the permission request of a turn: one of its options, or an element of
// notOffered.
func (w *writer) answers(t *turn) {
	list := lists.Map(notOffered, func(how string) weighted[string] { return weighted[string]{1, how, false} })
	for _, kind := range w.Tools[t.call.tool].Choices {
		n := 3
		if !w.has("settings") && (kind == "allow_always" || kind == "reject_always") {
			n = 0
		}
		list = append(list, weighted[string]{n, kind, false})
	}
	how, _ := choose(w.r, list)
	if how == "allow_always" || how == "reject_always" {
		w.remembers(t.call.tool, how)
	}
	t.allowed = how == "allow_once" || how == "allow_always"
	w.covered(t.state, "answer "+how)
	w.decidesBy(t.request, how)
}
