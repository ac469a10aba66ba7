package grammar

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// twice writes two turns with the same call, about which the agent asks the user. Both turns are in one session, or in
// two, or a load lies between them. After an answer for one call, the agent must ask again. An answer for always
// applies to the whole session. If the user allowed an MCP tool for always, the second turn calls another tool, and the
// agent must ask again.
func (w *writer) twice() {
	c := w.convo()
	if c.mode != "" {
		w.freeTurn(c)
		return
	}
	of := pick(w.r, w.askers())
	switch {
	case slices.Contains(w.rewriters(), of): // continue below
	case of == "mcp" && c.servers && slices.Contains(w.Tools[of].Choices, "allow_always") && len(w.rewriters()) > 0:
		w.asksOnce(c, of, "allow_always", false)
		w.remembers(of, "allow_always")
		w.asksForAnother(c)
		return
	default: // other tools may have nothing to do the second time
		w.freeTurn(c)
		return
	}
	how := pick(w.r, w.Tools[of].Choices)
	always := how == "allow_always" || how == "reject_always"
	k := w.asksOnce(c, of, how, always)
	other := c
	if always {
		w.remembers(of, how)
		w.between(c, keptAlways)
		if w.one(3) && w.asksForAnother(c) {
			return
		}
	} else {
		w.between(c, keptOnce)
		if other = w.askedElsewhere(c, of, how); how == "allow_once" && w.one(3) {
			w.noChoice(other, of)
			return
		}
	}
	next := w.nextCall(k, how)
	w.covered("asked twice", how)
	if !always {
		w.otherMode()
	}
	w.prompt(other, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{next}, w.last()))
	if always {
		w.check("PERM-009", "remembers")
		w.Add("await turn any|error %s session=%s", w.soon(), other.name)
		w.Add("! saw permission session=%s", other.name)
	} else {
		w.check("PERM-008", "asks-again")
		w.Add("await turn any|error %s session=%s", w.soon(), other.name)
		w.Add("saw permission session=%s", other.name)
	}
	w.check("", "goes-on")
	if strings.HasPrefix(how, "reject") && always {
		w.untouched(k)
	}
}

// rejectedTwice writes a turn in which the model repeats a call that the user has just rejected. The user rejects it
// again.
func (w *writer) rejectedTwice() {
	c := w.inFirstMode()
	w.folder = c.folder()
	k, _ := w.callLike(pick(w.r, w.rejectable()), shape.marked)
	w.Add("permit reject_once about=%s", k.mark)
	w.turn(c, reply{k.step}, reply{k.step}, w.last())
	if !w.later { // else the agent may use a form to ask
		w.Add("needs saw permission session=%s about~%s", c.name, k.mark)
	}
	w.covered("asked twice", "in one turn")
	w.untouched(k)
}

// rejectable returns the tools whose calls the user can reject one by one.
func (w *writer) rejectable() []string {
	return lists.Where(w.askers(), func(name string) bool { return slices.Contains(w.Tools[name].Choices, "reject_once") })
}

// noChoice writes a turn in which the editor answers a question about the tool named of without choosing an option. An
// earlier yes must not count for this question.
func (w *writer) noChoice(c *convo, of string) {
	k, ask := w.asks(c, of, "needs ", "hold")
	how := pick(w.r, notOffered)
	w.covered("asked twice", afterYes+how)
	w.decidesBy(ask, how)
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.untouched(k)
}

// afterYes begins the name of the pair for an answer without a choice that follows a yes.
const afterYes = "after allow_once, "

// askedElsewhere returns the session in which the agent must ask again: c or a new session. Before it returns c, it
// sometimes writes a second question about the tool named of.
func (w *writer) askedElsewhere(c *convo, of, how string) *convo {
	switch {
	case w.one(3):
		w.asksOnce(c, of, how, false)
		w.covered("asked twice", "two answers before")
	case w.has("several") && len(w.convos) < most && w.one(3):
		return w.newConvo()
	}
	return c
}

// asksForAnother writes a turn with a call of a tool other than the one that the user has just allowed or rejected for
// always. That answer must not count for the other tool. The result is false if the agent asks about no other tool.
func (w *writer) asksForAnother(c *convo) bool {
	others := w.rewriters()
	if len(others) == 0 {
		return false
	}
	w.folder = c.folder()
	k, _ := w.callLike(pick(w.r, others), shape.marked)
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{k.step}, w.last()))
	w.covered("asked twice", "another tool")
	w.check("PERM-009", "asks-for-another") // the user's answer counts only for calls of the same sort
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.Add("saw permission session=%s about~%s", c.name, k.mark)
	w.check("", "goes-on")
	return true
}

// stopsOne writes a turn that the user cancels in a drawn state, most often while the model sends text.
func (w *writer) stopsOne(c *convo) {
	from := lists.Map(states, func(s state) weighted[state] {
		weight := 1
		if s.name == "text held" {
			weight = 5
		}
		return weighted[state]{weight, s, s.name == "server silent" || !s.can(w, c)} // a silent server cannot be used again
	})
	s, _ := choose(w.r, from)
	t := w.holds(c, s)
	w.covered("cancelled before", s.name)
	w.Add("cancel %s", c.name)
	t.stopped = "CANCEL-001"
	w.letGo(t)
}

// nextCall returns the call that follows the answered call k: the same call, or an edit of the file that k wrote.
func (w *writer) nextCall(k call, how string) fakellm.StepNode {
	text, _ := k.args["content"].(string)
	first, _, ok := strings.Cut(text, "\n")
	edits := ok && how == "allow_once" && k.tool == "write_file" && slices.Contains(w.askers(), "edit_file")
	if !edits || !w.one(2) {
		return k.step
	}
	w.covered("asked twice", "edit of an own file")
	return tool("edit_file", object{"path": k.args["path"], "old": first, "new": "neu"})
}

// otherMode sometimes opens another session and changes its mode. This must not affect the existing sessions.
func (w *writer) otherMode() {
	if w.has("settings") && len(w.Modes) > 0 && len(w.convos) < most && w.one(2) {
		w.covered("asked twice", "mode of another session")
		w.givesModeTo(w.newConvo())
	}
}

// rewriters returns the tools about which the agent asks each time, even if the same call is repeated.
func (w *writer) rewriters() []string {
	return lists.Where(w.askers(), func(name string) bool {
		return (name == "write_file" || name == "run_shell") && len(w.Tools[name].once()) > 0
	})
}

func (w *writer) asksAtOnce() bool {
	return w.has("permissions") && w.has("several") && w.Together && len(w.rewriters()) > 0
}

// askedAtOnce makes the agent ask in one session while its question in another session is open. The agent must ask
// both questions, and each answer must count only for its own question. The agent may delay the second question until
// the first is answered.
func (w *writer) askedAtOnce() {
	a := w.inFirstMode()
	w.open = append(w.open, &turn{convo: a})
	b := w.inFirstMode()
	w.open = w.open[:len(w.open)-1]
	of := pick(w.r, w.rewriters())
	first, ask := w.asks(a, of, "needs ", "hold")
	if w.has("stops") && w.one(3) {
		w.cancelsOneOf(a, b, of)
		return
	}
	if w.has("stops") && w.one(3) {
		w.cancelsOther(a, b, ask, first)
		return
	}
	w.folder = b.folder()
	second, _ := w.callLike(of, shape.marked)
	how := pick(w.r, w.Tools[of].once())
	w.Add("permit "+how+" about=%s", second.mark)
	w.prompt(b, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{second.step}, w.last()))
	w.Add("await quiet 200ms")
	w.covered("asked at once", of)
	w.decides(a, ask, first)
	w.endsAsked(b, how, second)
	w.check("SESSION-020", "asks-too")
	w.Add("saw permission session=%s about~%s", b.name, second.mark)
	w.check("", "goes-on")
}

// cancelsOneOf opens a permission request in session b and cancels the turn of session a. Then it answers the request
// of b.
func (w *writer) cancelsOneOf(a, b *convo, of string) {
	second, ask := w.asks(b, of, "needs ", "hold")
	w.Add("cancel %s", a.name)
	w.check("CANCEL-010", "ends-one")
	w.Add("await turn cancelled session=%s", a.name)
	w.covered("asked at once", "cancel of one")
	w.decides(b, ask, second)
	w.check("", "goes-on")
}

// cancelsOther cancels the turn of session b, in which the model calls the same tool as in session a. The agent
// may delay its question in b until the question in a is answered. The editor answers the question in a after the
// cancel.
func (w *writer) cancelsOther(a, b *convo, ask string, first call) {
	w.folder = b.folder()
	second, _ := w.callLike(first.tool, shape.marked)
	t := &turn{convo: b}
	w.prompt(b, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{w.says("text"), gate(t.hold(w)), second.step}, w.last()))
	atGate(w, t)
	w.Add("permit hold about=%s", second.mark)
	w.Add("release %s", t.gate)
	w.Add("await quiet 200ms")
	w.Add("cancel %s", b.name)
	w.covered("asked at once", "cancel of the second")
	w.check("CANCEL-010", "ends-the-second")
	w.Add("await turn cancelled session=%s", b.name)
	w.decides(a, ask, first)
	w.check("", "goes-on")
}

// answeredLate makes the editor answer the question of a cancelled turn while the next question is open. The agent
// must not take this answer for an answer to the next question.
func (w *writer) answeredLate() {
	c := w.inFirstMode()
	_, late := w.asks(c, pick(w.r, w.rewriters()), "needs ", "hold late")
	w.Add("cancel %s", c.name)
	w.Add("needs await turn cancelled within=3s session=%s", c.name) // an agent may wait for the answer
	next, ask := w.asks(c, pick(w.r, w.rewriters()), "needs ", "hold")
	w.Add("answer %s cancelled", late)
	w.covered("permission open", "earlier answer late")
	w.decides(c, ask, next)
}

// pageForNobody writes a turn in which the model wants the user to see a page, for an editor that shows no pages.
func (w *writer) pageForNobody() {
	c := w.inFirstMode()
	page := "https://example.com/" + w.name("page")
	w.Add("elicit decline")
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{tool("ask_user", object{"question": w.text(), "url": page})}, w.last()))
	w.ends(&turn{convo: c})
	w.Add("elicit hold mode=form")
	w.covered("client", "is asked to show a page")
}

// keyForNobody writes a turn in which the model's provider refuses the agent's key, for an editor that shows no pages.
// The agent must not ask for a new key in a form.
func (w *writer) keyForNobody() {
	c := w.inFirstMode()
	w.Add("elicit decline")
	w.turnEndsIn(c, fakellm.NewStep("fail", keyRefused))
	if w.works("ask_user") {
		w.Add("elicit hold mode=form")
	}
	w.covered("client", "is asked for a key")
}

// asks sends a prompt that makes the model call a tool, and waits for the agent's permission request. ask is the name
// of that request.
func (w *writer) asks(c *convo, of, needs, permit string) (k call, ask string) {
	w.folder = c.folder()
	k, _ = w.callLike(of, shape.marked)
	w.Add("permit "+permit+" about=%s", k.mark)
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{k.step}, w.last()))
	ask = w.name("ASK")
	w.Add(needs+"await permission session=%s about~%s as %s", c.name, k.mark, ask)
	return k, ask
}

// decides answers the permission request of a turn with a drawn choice, and checks the end of the turn.
func (w *writer) decides(c *convo, ask string, k call) {
	how := pick(w.r, w.Tools[k.tool].once())
	w.Add("answer %s %s", ask, how)
	w.endsAsked(c, how, k)
}

// endsAsked waits for the end of a turn whose permission request was answered with how. It checks that an allowed call
// had an effect, and that a rejected call had none.
func (w *writer) endsAsked(c *convo, how string, k call) {
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	if how == "allow_once" {
		w.effects(c, []call{k})
		return
	}
	w.untouched(k)
}

// asksOnce writes a turn with a permission request, which the editor answers with how. If mayFail is set, the turn
// sometimes fails after that.
func (w *writer) asksOnce(c *convo, of, how string, mayFail bool) call {
	k, ask := w.asks(c, of, "needs ", "hold")
	if t := &w.Turns[len(w.Turns)-1]; mayFail && w.has("failures") && w.one(3) {
		*t = turnOf(reply{k.step}, reply{fakellm.NewStep("fail", refusedByModel)})
		w.covered("asked twice", "in a turn that fails")
	}
	w.Add("permit allow_once about=%s", k.mark)
	w.Add("answer %s %s", ask, how)
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	return k
}
