package grammar

import (
	"cmp"
	"slices"

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
		{1, "rejected twice", func(w *writer) bool { return w.has("permissions") && len(w.rejectable()) > 0 },
			(*writer).rejectedTwice},
		{1, "asked at once", (*writer).asksAtOnce, (*writer).askedAtOnce},
		{1, "answered late", func(w *writer) bool {
			return w.has("permissions") && w.has("stops") && len(w.rewriters()) > 0
		}, (*writer).answeredLate},
		{2, "setting", func(w *writer) bool { return w.has("settings") && len(w.Modes)+len(w.Options) > 0 }, (*writer).set},
		{2, "at once", func(w *writer) bool { return w.has("several") && len(w.convos) < most }, (*writer).atOnce},
		{1, "many turns", (*writer).canReopen, (*writer).manyTurns},
		{1, "many sessions", func(w *writer) bool { return w.has("several") }, (*writer).manySessions},
		{1, "servers apart", (*writer).canSplitServers, (*writer).serversApart},
		{1, "server again", (*writer).canSingAgain, (*writer).serverAgain},
		{1, "without servers", (*writer).canLackServers, (*writer).withoutServers},
		{1, "much work", func(w *writer) bool { return w.has("tools") && w.works("read_file") }, (*writer).muchWork},
		{1, "plan emptied", (*writer).plans, (*writer).emptiesPlan},
		{1, "plan advanced", (*writer).plans, (*writer).advancesPlan},
		{1, "plan shortened", (*writer).plans, (*writer).shortensPlan},
		{1, "same plan", (*writer).plansTwice, (*writer).samePlan},
		{1, "edits in one", (*writer).edits, (*writer).editsInOne},
		{1, "user's edit", func(w *writer) bool { return w.edits() && w.works("read_file") }, (*writer).usersEdit},
		{1, "shells apart", (*writer).canCompareShells, (*writer).shellsApart},
		{1, "closed at work", func(w *writer) bool { return w.waitsInTerminal() && w.ways("close") }, (*writer).closedAtWork},
		{1, "terminal refused", (*writer).waitsInTerminal, (*writer).terminalRefused},
		{1, "edit after a no", (*writer).canRejectEdits, (*writer).editAfterNo},
		{1, "own folder", func(w *writer) bool { return w.has("ways") && w.works("read_file") }, (*writer).ownFolder},
		{1, "instructions apart", func(w *writer) bool { return w.has("several") && len(w.convos) <= most-2 },
			(*writer).instructionsApart},
		{1, "folder gone", func(w *writer) bool { return w.canReopen() && len(w.convos) < most }, (*writer).folderGone},
		{1, extraFolder, (*writer).canAddFolders, (*writer).extraFolder},
		{2, "command", (*writer).canCommand, (*writer).command},
		{1, "page for nobody", func(w *writer) bool { return w.out["pages"] && asksUser(w, &convo{}) },
			(*writer).pageForNobody},
		{2, "key for nobody", func(w *writer) bool { return w.out["pages"] && !w.later && w.has("failures") },
			(*writer).keyForNobody},
		{2, "home folder", (*writer).canGoHome, (*writer).homeFolder},
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

// anyHeld writes a turn that the script holds open in a drawn state. Only states that the agent can reach are drawn.
func (w *writer) anyHeld(c *convo) {
	from := lists.Map(states, func(s state) weighted[state] { return weighted[state]{s.weight, s, !s.can(w, c)} })
	s, _ := choose(w.r, from)
	w.heldTurn(c, s)
}

// solidConvo returns a session that has a completed turn and no running turn.
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
		{"another editor", w.has("process"), func() {
			w.out["requests"] = true
			w.lost("kill", "client next fs=none terminal=none"+map[bool]string{true: " session=none"}[w.booleans], "restart")
		}},
		{"second process", w.has("process") && w.ways("load"), func() {
			w.lost("beside")
			for _, other := range w.convos {
				other.shared = true
			}
		}},
	}
	list = slices.DeleteFunc(list, func(l leaving) bool { return !l.can })
	leave := pick(w.r, list)
	before := w.setting(c)
	w.between(c, keptHistory)
	if w.one(3) && w.ways("load", "resume") {
		leave.do()
		c.gone = true
		w.reopen(c)
		w.covered("way in", "twice")
		if w.one(2) {
			w.plainTurn(c)
		}
	}
	leave.do()
	c.gone = true
	switch {
	case w.ways("fork") && w.one(4) && leave.name == "stay":
		c.gone = false
		if w.one(3) {
			w.Add("session fork %s of=%s", w.name("s"), c.name) // SESSION-DISTINCT compares the ids
		}
		twin := &convo{name: w.name("s"), solid: true, dir: c.dir, servers: w.served()}
		told := c.told
		w.Add("session fork %s of=%s", twin.name, c.name)
		w.convos = append(w.convos, twin)
		w.covered("fork", before)
		w.plainTurn(twin)
		w.check("USTB-006", "has-the-history")
		w.modelSaw("", twin, told)
		own := twin.told
		c.again = "" // the fork has the earlier prompts too
		w.plainTurn(c)
		w.plainTurn(twin)
		w.check("SESSION-020", "keeps-its-own")
		w.modelSaw("", twin, own)
		w.modelSaw("! ", twin, c.told)
		w.check("", "goes-on")
	case w.ways("load", "resume") && w.works("read_file") && c.mode == "" && w.one(4):
		w.moves(c)
	case w.ways("load", "resume"):
		w.reopen(c)
		w.covered("leave by "+leave.name, before)
		w.freeTurn(c)
	}
}

// atOnce opens or loads two sessions at the same time, and then checks that the conversations stay separate.
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
	if how == "new" {
		w.check("", "goes-on")
		for _, c := range pair {
			w.between(c, keptApart)
		}
	}
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

// manySessions opens more sessions than users often have, and then writes a turn in an older one.
func (w *writer) manySessions() {
	c := w.solidConvo()
	told := c.told
	for range 11 {
		w.Add("session new %s", w.name("s"))
	}
	w.covered("new", "many sessions")
	w.check("SESSION-020", "keeps-the-older-session")
	w.plainTurn(c)
	w.modelSaw("", c, told)
	w.check("", "goes-on")
}

// canReopen reports whether sessions can be loaded or resumed.
func (w *writer) canReopen() bool { return w.has("ways") && w.ways("load", "resume") }

// manyTurns writes more turns than some agents keep of a session, reopens the session, and continues it.
func (w *writer) manyTurns() {
	c := w.solidConvo()
	for range 21 {
		w.plainTurn(c)
	}
	w.leavesAll([]*convo{c})
	c.gone = true
	w.reopen(c)
	w.covered("way in", "many turns")
	w.plainTurn(c)
}

// leavesAll closes the sessions, or restarts the agent. Later lines must reopen the sessions.
func (w *writer) leavesAll(list []*convo) {
	if w.ways("close") && w.one(2) {
		for _, c := range list {
			w.Add("session close %s", c.name)
		}
	} else if w.has("process") {
		w.lost("restart")
	}
}

// modelSaw writes a check that the model was told a text in the session's latest turn. With the value "! ", not
// inverts the check. modelSaw does nothing if told is "".
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
		c.gone, c.latest, c.before = true, "", ""
	}
	w.asked = map[string]string{}
}

// inFirstMode returns a session in the initial mode, in which the agent asks for permission as it did in calibration.
func (w *writer) inFirstMode() *convo {
	if c := w.convo(); c.mode == "" {
		return c
	}
	return w.newConvo()
}

// set writes a line that changes the mode or an option of a session. It sometimes writes a turn of another session
// before and after the change, which must not affect that session.
func (w *writer) set() {
	c := w.convo()
	var other *convo
	if w.has("several") && len(w.convos) < most && w.one(2) {
		other = w.newConvo()
		w.plainTurn(other)
	}
	if len(w.Modes) > 0 && (len(w.Options) == 0 || w.one(2)) {
		w.givesModeTo(c)
		w.covered("idle", "set mode")
	} else {
		o := pick(w.r, w.Options)
		w.settles("set-option %s %s %s as %s", c.name, o.ID, pick(w.r, append(slices.Clone(o.Values), o.Current)))
		w.covered("idle", "set option")
		if other != nil {
			w.covered("idle", besideOther)
		}
	}
	w.freeTurn(c)
	if other != nil {
		w.plainTurn(other)
	}
	w.between(c, keptSetting)
	if c.solid && w.ways("load") && w.one(2) {
		w.covered("load", w.setting(c))
		w.reopen(c)
	}
}

// besideOther names an act of the pair "idle": an option is set in one session, and another session works on.
const besideOther = "set option beside another session"

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

// idle writes up to three acts in a session in which no turn runs.
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
