package grammar

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// episode is one part of a conversation: a turn, a way into a session, or a setting.
type episode struct {
	weight int
	name   string
	can    func(w *writer) bool
	do     func(w *writer)
}

func episodes() []episode {
	return []episode{
		{6, "turn", nil, func(w *writer) { w.freeTurn(w.convo()) }},
		{12, "held turn", nil, func(w *writer) { w.anyHeld(w.convo()) }},
		{2, "way in", func(w *writer) bool { return w.has("ways") }, (*writer).wayIn},
		{3, "asked twice", func(w *writer) bool { return w.has("permissions") && len(w.askers()) > 0 }, (*writer).twice},
		{1, "asked at once", func(w *writer) bool {
			return w.has("permissions") && w.has("several") && w.Together && len(w.rewriters()) > 0
		}, (*writer).askedAtOnce},
		{1, "answered late", func(w *writer) bool {
			return w.has("permissions") && w.has("stops") && len(w.rewriters()) > 0
		}, (*writer).answeredLate},
		{2, "setting", func(w *writer) bool { return w.has("settings") && len(w.Modes)+len(w.Options) > 0 }, (*writer).set},
		{2, "at once", func(w *writer) bool { return w.has("several") && len(w.convos) < most }, (*writer).atOnce},
		{1, "servers apart", func(w *writer) bool {
			return w.has("several") && w.ways("close") && w.asked["mcp"] == "" && w.served() && w.works("mcp") &&
				len(w.convos) <= most-2
		}, (*writer).serversApart},
		{1, "much work", func(w *writer) bool { return w.has("tools") && w.works("read_file") }, (*writer).muchWork},
		{1, "plan emptied", func(w *writer) bool { return w.has("tools") && w.works("plan") }, (*writer).emptiesPlan},
		{1, "edits in one", (*writer).edits, (*writer).editsInOne},
		{1, "user's edit", func(w *writer) bool { return w.edits() && w.works("read_file") }, (*writer).usersEdit},
		{1, "own folder", func(w *writer) bool { return w.has("ways") && w.works("read_file") }, (*writer).ownFolder},
		{2, "idle acts", func(w *writer) bool { return w.has("asides") }, (*writer).idle},
	}
}

func (w *writer) oneEpisode() {
	from := lists.Map(episodes(), func(e episode) weighted[episode] {
		return weighted[episode]{e.weight, e, e.can != nil && !e.can(w)}
	})
	e, _ := choose(w.r, from)
	if w.checks == 0 {
		w.check("", "goes-on")
	}
	e.do(w)
}

// anyHeld writes a turn that is held in one of the states that the agent can reach.
func (w *writer) anyHeld(c *convo) {
	from := lists.Map(states, func(s state) weighted[state] { return weighted[state]{s.weight, s, !s.can(w, c)} })
	s, _ := choose(w.r, from)
	w.heldTurn(c, s)
}

// solidConvo returns a session with a completed turn, in which no turn runs now.
func (w *writer) solidConvo() *convo {
	c := w.convo()
	if !c.solid {
		w.plainTurn(c)
	}
	return c
}

// plainTurn writes a turn in which the model answers with one text.
func (w *writer) plainTurn(c *convo) {
	t := &turn{convo: c, prompt: w.name("P")}
	w.prompt(c, t.prompt)
	w.Turns = append(w.Turns, turnOf(w.last()))
	w.endsWell(c)
	c.solid = true
}

// wayIn closes or loses a session in one of several ways, reopens it in another way, and continues it.
func (w *writer) wayIn() {
	c := w.solidConvo()
	type leaving struct {
		name string
		can  bool
		do   func()
	}
	list := []leaving{
		{"stay", true, func() {}},
		{"close", w.ways("close"), func() {
			w.Add("session close %s", c.name)
		}},
		{"restart", w.has("process"), func() { w.lost("restart") }},
		{"kill", w.has("process"), func() { w.lost("kill", "restart") }},
		{"second process", w.has("process") && w.ways("load"), func() { w.lost("beside") }},
	}
	list = slices.DeleteFunc(list, func(l leaving) bool { return !l.can })
	leave := pick(w.r, list)
	before := w.setting(c)
	leave.do()
	c.gone = true
	switch {
	case w.ways("fork") && w.one(4) && leave.name == "stay":
		c.gone = false
		twin := &convo{name: w.name("s"), solid: true, dir: c.dir, servers: w.served()}
		told := c.told
		w.Add("session fork %s of=%s", twin.name, c.name)
		w.convos = append(w.convos, twin)
		w.covered("fork", before)
		w.plainTurn(twin)
		w.check("USTB-006", "has-the-history")
		w.modelSaw("", twin, told)
		w.plainTurn(c)
	case w.ways("load", "resume"):
		w.reopen(c)
		w.covered("leave by "+leave.name, before)
		w.freeTurn(c)
	}
}

// atOnce opens or loads two sessions at the same time, and then checks that their conversations stay separate.
func (w *writer) atOnce() {
	how, pair := "new", []*convo{{name: w.name("s")}, {name: w.name("s")}}
	if w.has("ways") && w.ways("load") && len(w.convos) > 0 {
		how, pair = "load", []*convo{w.solidConvo(), w.newConvo()}
		w.plainTurn(pair[1])
		w.leavesAll(pair)
	} else {
		w.convos = append(w.convos, pair...)
	}
	var opened []string
	for _, c := range pair {
		opened = append(opened, w.name("N"))
		w.Add("session %s %s %s wait=no as %s", how, c.name, c.in(), w.named)
		c.gone, c.servers = false, w.served()
	}
	w.check("", "opens-both")
	for _, name := range opened {
		w.Add("await response %s result?", name)
	}
	w.covered("at once", how)
	told := []string{pair[0].told, pair[1].told}
	for i, c := range pair {
		w.check("", "goes-on")
		w.plainTurn(c)
		w.check("SESSION-020", "has-its-own")
		if how == "load" {
			w.modelSaw("", c, told[i])
		}
		w.modelSaw("! ", c, cmp.Or(told[1-i], pair[1-i].told))
	}
	w.check("", "goes-on")
}

// muchWork writes turns in which the model calls a tool many times, and then a plain turn. An agent that counts calls
// must begin anew in each turn.
func (w *writer) muchWork() {
	c := w.inFirstMode()
	if w.asked["read_file"] != "" {
		w.freeTurn(c)
		return
	}
	w.folder = c.folder()
	for range 3 {
		var replies []reply
		for range 12 {
			k, _ := w.callLike("read_file", func(s shape) bool { return s.Name == "read" })
			replies = append(replies, reply{k.step})
		}
		w.prompt(c, w.name("P"))
		w.Turns = append(w.Turns, turnOf(append(replies, w.last())...))
		w.ends(&turn{convo: c})
	}
	w.covered("turn", "much work")
	w.check("PROMPT-005", "starts-anew")
	w.plainTurn(c)
	w.check("", "goes-on")
}

// emptiesPlan writes a turn in which the model makes a plan with one finished step, then empties the plan. Without an
// earlier plan, the agent would have no change to report.
func (w *writer) emptiesPlan() {
	c := w.inFirstMode()
	step := w.name("schritt")
	done := []any{object{"step": step, "status": "completed"}}
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{tool("plan", object{"steps": done})},
		reply{tool("plan", object{"steps": []any{}})}, w.last()))
	w.ends(&turn{convo: c})
	w.covered("call", "plan emptied")
	w.Add("needs saw plan raw~%s session=%s", step, c.name)
	w.check("PLAN-005", "empties-the-plan")
	w.Add(`saw plan raw~'"entries": ?\[\]' session=%s`, c.name)
	w.check("", "goes-on")
}

// edits reports whether the agent edits files.
func (w *writer) edits() bool {
	return w.has("tools") && w.works("edit_file") && w.asked["edit_file"] == ""
}

// editsInOne writes a turn in which the model edits two files: with one call if the agent's tool takes patches, else
// with two calls.
func (w *writer) editsInOne() {
	c := w.inFirstMode()
	mark, edits := w.name("nota")+"x", []any{}
	for _, name := range []string{"a.txt", "b.txt"} {
		path := c.folder() + mark + name
		w.file(path, "vorher\nold word\nnachher\n")
		edits = append(edits, object{"path": "$WORK/" + path, "old": "old word", "new": "neu"})
	}
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{tool("edit_file", object{"edits": edits})}, w.last()))
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.covered("call", "edits in one")
	w.check("TOOL-011", "edits-both")
	w.Add("exec grep -q -x neu %s", c.folder()+mark+"a.txt")
	w.Add("exec grep -q -x neu %s", c.folder()+mark+"b.txt")
	w.check("", "goes-on")
}

// usersEdit writes a turn in which the model edits a file that the user has saved since the agent read it.
func (w *writer) usersEdit() {
	c := w.inFirstMode()
	path := c.folder() + w.name("nota") + "x.txt"
	w.file(path, "vorher\nold word\nnachher\n")
	turn := func(step fakellm.StepNode) {
		w.prompt(c, w.name("P"))
		w.Turns = append(w.Turns, turnOf(reply{step}, w.last()))
		w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	}
	turn(tool("read_file", object{"path": "$WORK/" + path}))
	w.Add("write %s %s", path, script.Quote("of the user\nold word\nnachher\n"))
	turn(tool("edit_file", object{"path": "$WORK/" + path, "old": "old word", "new": "neu"}))
	w.covered("call", "after the user's edit")
	w.check("", "keeps-what-the-user-saved")
	w.Add("exec grep -q -x %s %s", script.Quote("of the user"), path)
	w.check("", "goes-on")
}

// serversApart closes one of two sessions that each have an MCP server of the same name. The server of the other
// session must stay.
func (w *writer) serversApart() {
	first, second := w.newConvo(), w.newConvo()
	for _, c := range []*convo{first, second} {
		w.sings(c)
	}
	closed, stays := first, second
	if w.one(2) {
		closed, stays = second, first
	}
	w.Add("session close %s", closed.name)
	closed.gone = true
	w.covered("servers apart", "close")
	w.sings(stays)
}

// sings writes a turn in which the model calls the session's MCP server.
func (w *writer) sings(c *convo) {
	text := w.name("lied")
	w.prompt(c, w.name("P"))
	sing := object{"server": w.server, "tool": "canary_sing", "args": object{"text": text}}
	w.Turns = append(w.Turns, turnOf(reply{tool("mcp", sing)}, w.last()))
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.check("SESSION-012", "reaches-its-server")
	w.Add("canary called text=%s", text)
	w.check("", "goes-on")
	c.solid = true
}

// leavesAll closes the sessions or restarts the agent; later lines reopen the sessions.
func (w *writer) leavesAll(list []*convo) {
	if w.ways("close") && w.one(2) {
		for _, c := range list {
			w.Add("session close %s", c.name)
		}
	} else if w.has("process") {
		w.lost("restart")
	}
}

// modelSaw checks that the model was told a text in a session's latest turn or, with not "! ", that it was not.
func (w *writer) modelSaw(not string, c *convo, told string) {
	if told != "" {
		w.Add(not+"saw model request session=%s %s", c.name, script.Join(script.Text("raw~"), script.Quote(told)))
	}
}

// lost writes lines that end the agent's process, and records that all sessions are gone.
func (w *writer) lost(lines ...string) {
	for _, l := range lines {
		w.Add(l)
	}
	for _, c := range w.convos {
		c.gone = true
	}
	w.asked = map[string]string{}
}

// twice writes two turns with the same call, for which the agent asks: in one session, in two, or before and after a
// load. After an answer for one call the agent must ask again; an answer for always applies in its session.
func (w *writer) twice() {
	c := w.convo()
	if c.mode != "" {
		w.freeTurn(c)
		return
	}
	of := pick(w.r, w.askers())
	if !slices.Contains(w.rewriters(), of) { // the second time there may be nothing to ask for
		w.freeTurn(c)
		return
	}
	how := pick(w.r, w.Tools[of].Choices)
	always := how == "allow_always" || how == "reject_always"
	k := w.asksOnce(c, of, how)
	other := c
	switch {
	case always && w.has("stops") && w.one(3):
		w.stopsOne(c)
		w.covered("asked twice", "a cancelled turn between")
	case always:
	case how == "reject_once" && w.one(3):
		w.asksOnce(c, of, how)
		w.covered("asked twice", "two rejections before")
	case w.has("several") && len(w.convos) < most && w.one(3):
		other = w.newConvo()
	}
	next := w.nextCall(k, how)
	w.covered("asked twice", how)
	if always {
		w.remembers(of, how)
	} else {
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

// stopsOne writes a turn that the user cancels while the model speaks.
func (w *writer) stopsOne(c *convo) {
	t := &turn{convo: c}
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{w.says("text"), gate(t.hold(w)), w.says("text")}))
	atGate(w, t)
	w.Add("cancel %s", c.name)
	w.Add("needs await turn cancelled session=%s", c.name)
	w.Add("release %s", t.gate)
}

// nextCall returns the call that follows an answered one: the same call, or an edit of the file that it wrote.
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

// otherMode sometimes opens another session in another mode. That must not affect the existing sessions.
func (w *writer) otherMode() {
	if w.has("settings") && len(w.Modes) > 0 && len(w.convos) < most && w.one(2) {
		w.covered("asked twice", "mode of another session")
		w.givesModeTo(w.newConvo())
	}
}

// rewriters returns the tools for which the agent asks each time, even when the same call is repeated.
func (w *writer) rewriters() []string {
	return lists.Where(w.askers(), func(name string) bool {
		return (name == "write_file" || name == "run_shell") && len(w.Tools[name].once()) > 0
	})
}

// askedAtOnce has the agent ask in one session while its question in another session is open. The agent must ask both
// questions, and each answer must count for its own question. The second question may wait for the first.
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
	w.folder = b.folder()
	second, _ := w.call(of)
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

// cancelsOneOf opens a permission request in session b, cancels the turn of session a, and then answers b's request.
func (w *writer) cancelsOneOf(a, b *convo, of string) {
	second, ask := w.asks(b, of, "needs ", "hold")
	w.Add("cancel %s", a.name)
	w.check("CANCEL-010", "ends-one")
	w.Add("await turn cancelled session=%s", a.name)
	w.covered("asked at once", "cancel of one")
	w.decides(b, ask, second)
	w.check("", "goes-on")
}

// answeredLate has the editor answer the question of a cancelled turn only while the next question is open. The agent
// must not take that answer for an answer to the next question.
func (w *writer) answeredLate() {
	c := w.inFirstMode()
	_, late := w.asks(c, pick(w.r, w.rewriters()), "needs ", "hold late")
	w.Add("cancel %s", c.name)
	w.Add("needs await turn cancelled session=%s", c.name)
	next, ask := w.asks(c, pick(w.r, w.rewriters()), "needs ", "hold")
	w.Add("answer %s cancelled", late)
	w.covered("permission open", "earlier answer late")
	w.decides(c, ask, next)
}

// inFirstMode returns a session in the initial mode, in which the agent asks as it did in calibration.
func (w *writer) inFirstMode() *convo {
	if c := w.convo(); c.mode == "" {
		return c
	}
	return w.newConvo()
}

// asks sends a prompt that makes the model call a tool, and waits for the agent's permission request.
func (w *writer) asks(c *convo, of, needs, permit string) (k call, ask string) {
	w.folder = c.folder()
	k, _ = w.call(of)
	w.Add("permit "+permit+" about=%s", k.mark)
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{k.step}, w.last()))
	ask = w.name("ASK")
	w.Add(needs+"await permission session=%s about~%s as %s", c.name, k.mark, ask)
	return k, ask
}

// decides answers the permission request of a turn, then calls endsAsked.
func (w *writer) decides(c *convo, ask string, k call) {
	how := pick(w.r, w.Tools[k.tool].once())
	w.Add("answer %s %s", ask, how)
	w.endsAsked(c, how, k)
}

// endsAsked waits for the end of a turn whose permission request was answered with how. It checks that the call took
// effect if it was allowed, and had no effect if not.
func (w *writer) endsAsked(c *convo, how string, k call) {
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	if how == "allow_once" {
		w.effects(c, []call{k})
		return
	}
	w.untouched(k)
}

// asksOnce writes a turn with a permission request, which the editor answers with how.
func (w *writer) asksOnce(c *convo, of, how string) call {
	k, ask := w.asks(c, of, "needs ", "hold")
	w.Add("permit allow_once about=%s", k.mark)
	w.Add("answer %s %s", ask, how)
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	return k
}

// set writes a line that changes a session's mode or an option.
func (w *writer) set() {
	c := w.convo()
	if len(w.Modes) > 0 && (len(w.Options) == 0 || w.one(2)) {
		w.givesModeTo(c)
		w.covered("idle", "set mode")
	} else {
		o := pick(w.r, w.Options)
		w.settles("set-option %s %s %s as %s", c.name, o.ID, pick(w.r, append(slices.Clone(o.Values), o.Current)))
		w.covered("idle", "set option")
	}
	w.freeTurn(c)
	if c.solid && w.ways("load") && w.one(2) {
		w.covered("load", w.setting(c))
		w.reopen(c)
	}
}

// givesModeTo sets a session to a mode other than the initial one.
func (w *writer) givesModeTo(c *convo) {
	c.mode = pick(w.r, w.Modes)
	w.settles(w.setsMode(), c.name, c.mode)
}

// settles writes a request that changes a setting, and checks that the agent accepts it.
func (w *writer) settles(template string, args ...any) {
	name := w.name("M")
	w.Add(template, append(args, name)...)
	w.Add("await response %s", name)
	w.Add("saw response %s result?", name)
}

// ownFolder writes a turn in a session with its own folder. The model names a file relative to that folder; another
// file of that name is in the workspace.
func (w *writer) ownFolder() {
	dir := w.name("dir")
	c := &convo{name: w.name("s"), dir: dir, servers: w.served()}
	mark := w.name("nota") + "x"
	w.file(dir+"/"+mark+".txt", "inside\n")
	w.file(mark+".txt", "out-of-place-"+mark+"\n")
	w.Add("session new %s cwd=%s", c.name, dir)
	w.convos = append(w.convos, c)
	w.covered("new", "cwd")
	if w.has("several") && w.Together && len(w.convos) < most && w.one(2) {
		defer w.readsBeside(mark + ".txt")()
	}
	w.prompt(c, w.name("P"))
	first := reply{tool("read_file", object{"path": mark + ".txt"})}
	if w.works("write_file") && w.one(2) {
		first = append(first, tool("write_file", object{"path": mark + "new.txt", "content": "new\n"}))
	}
	w.Turns = append(w.Turns, turnOf(first, w.last()))
	w.check("SESSION-007", "stays-in-its-folder")
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.Add("! saw model request session=%s raw~%s", c.name, "out-of-place-"+mark)
	w.Add("! exists %s", mark+"new.txt")
	w.check("", "goes-on")
}

// readsBeside opens another session in the workspace, whose turn reads a file and stays open until the returned
// function is called.
func (w *writer) readsBeside(path string) (end func()) {
	t := &turn{convo: &convo{name: w.name("s"), servers: w.served()}}
	w.Add("session new %s", t.name)
	w.convos = append(w.convos, t.convo)
	w.prompt(t.convo, w.name("P"))
	reads := reply{tool("read_file", object{"path": path})}
	w.Turns = append(w.Turns, turnOf(reads, reply{gate(t.hold(w)), w.says("text")}))
	atGate(w, t)
	w.covered("new", "cwd, beside a reader")
	return func() {
		w.Add("release %s", t.gate)
		w.ends(t)
	}
}

// idle writes up to three acts in a session whose turn is over.
func (w *writer) idle() {
	c := w.convo()
	for range 1 + w.r.IntN(3) {
		if a := pick(w.r, w.can(&turn{convo: c}, true)); !c.gone {
			w.covered("idle", a.Name)
			w.acts.Do(w, a)
		}
	}
	if !c.gone {
		w.freeTurn(c)
	}
}
