package grammar

import (
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
)

// muchWork writes turns in which the model calls a tool many times, and then a plain turn. If the agent limits the
// number of calls, it must start counting anew in each turn.
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

// emptiesPlan writes a turn in which the model makes a plan with one finished step, and then empties the plan. The
// agent must report the empty plan.
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

func (w *writer) plansTwice() bool {
	return w.has("tools") && w.has("several") && w.works("plan") && len(w.convos) < most
}

// samePlan writes a turn in each of two sessions, in which the model makes the same plan. The agent must report the
// plan in both.
func (w *writer) samePlan() {
	a := w.inFirstMode()
	step := w.name("schritt")
	plan := tool("plan", object{"steps": []any{object{"step": step, "status": "pending"}}})
	for _, c := range []*convo{a, w.newConvo()} {
		w.prompt(c, w.name("P"))
		w.Turns = append(w.Turns, turnOf(reply{plan}, w.last()))
		w.ends(&turn{convo: c})
		if c == a {
			w.Add("needs saw plan raw~%s session=%s", step, c.name)
			continue
		}
		w.covered("call", planAgain)
		w.check("PLAN-001", "shown-in-each")
		w.Add("saw plan raw~%s session=%s", step, c.name)
	}
	w.check("", "goes-on")
}

// planAgain names a call that makes the plan of another session.
const planAgain = "plan of another session"

// edits reports whether the tool edit_file works and the user has not answered for always about it.
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
	w.endsWell(c)
	w.covered("call", "edits in one")
	w.check("TOOL-011", "edits-both")
	w.Add("exec grep -q -x neu %s", c.folder()+mark+"a.txt")
	w.Add("exec grep -q -x neu %s", c.folder()+mark+"b.txt")
	w.check("", "goes-on")
}

// usersEdit writes turns in which the agent reads a file, the user saves a change to that file, and the model then
// edits it. The user's change must survive.
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
	w.between(c, keptFile)
	w.Add("write %s %s", path, script.Quote("of the user\nold word\nnachher\n"))
	turn(tool("edit_file", object{"path": "$WORK/" + path, "old": "old word", "new": "neu"}))
	w.covered("call", "after the user's edit")
	w.check("", "keeps-what-the-user-saved")
	w.Add("exec grep -q -x %s %s", script.Quote("of the user"), path)
	w.check("", "goes-on")
}

// ownFolder writes a turn in a session that has its own folder. The model names a file relative to that folder, and
// the workspace has another file of that name.
func (w *writer) ownFolder() {
	dir := w.name("dir")
	c := &convo{name: w.name("s"), dir: dir, servers: w.served()}
	name := w.twoFiles(dir, "")
	w.Add("session new %s cwd=%s", c.name, dir)
	w.convos = append(w.convos, c)
	w.covered("new", "cwd")
	w.between(c, keptFolder)
	if w.has("several") && w.Together && len(w.convos) < most && w.one(2) {
		defer w.readsBeside(name + ".txt")()
	}
	w.worksIn(c, name, "", "SESSION-007")
}

// moves reopens a session in another folder. An agent may refuse this, and otherwise the session works in that folder.
func (w *writer) moves(c *convo) {
	how := pick(w.r, []string{"load", "resume"})
	if !w.ways(how) {
		how = map[string]string{"load": "resume", "resume": "load"}[how]
	}
	old, dir, l := c.folder(), w.name("dir"), w.name("L")
	name := w.twoFiles(dir, old)
	w.Add("session %s %s cwd=%s wait=no as %s", how, c.name, dir, l)
	w.Add("await response %s", l)
	w.Add("needs saw response %s result?", l)
	c.gone, c.dir, c.servers, c.moved = false, dir, w.served(), true
	w.covered(how, otherFolder)
	w.worksIn(c, name, old, map[string]string{"load": "LOAD-015"}[how])
}

// otherFolder names the setting of a session that is reopened in another folder.
const otherFolder = "another folder"

// twoFiles writes two files of one name into a folder and into another one, which has a slash behind it. The result is
// that name without its end ".txt".
func (w *writer) twoFiles(dir, other string) (name string) {
	name = w.name("nota") + "x"
	w.file(dir+"/"+name+".txt", "inside\n")
	w.file(other+name+".txt", "out-of-place-"+name+"\n")
	return name
}

// worksIn writes a turn in which the model uses relative paths. Nothing of it may happen in the folder other.
func (w *writer) worksIn(c *convo, name, other, requirement string) {
	w.prompt(c, w.name("P"))
	first := reply{tool("read_file", object{"path": name + ".txt"})}
	if w.works("write_file") && w.one(2) {
		first = append(first, tool("write_file", object{"path": name + "new.txt", "content": "new\n"}))
	}
	w.Turns = append(w.Turns, turnOf(first, w.last()))
	w.check(requirement, "stays-in-its-folder")
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.Add("! saw model request session=%s raw~%s", c.name, "out-of-place-"+name)
	w.Add("! exists %s", other+name+"new.txt")
	w.check("", "goes-on")
}

func (w *writer) canAddFolders() bool {
	return w.able(moreFolders) && w.works("read_file") && w.asked["read_file"] == "" && len(w.convos) < most
}

// extraFolder opens a session with an additional folder, and sometimes reopens the session. Then the model reads a file
// in the additional folder.
func (w *writer) extraFolder() {
	c := &convo{name: w.name("s"), dir: w.name("dir"), extra: w.name("extra"), servers: w.served()}
	file := c.extra + "/" + w.name("nota") + "x.txt"
	mark := w.name("beside") + "x"
	w.file(c.dir+"/readme.txt", "In "+c.dir+".\n")
	w.file(file, mark+"\n")
	w.Add("session new %s %s %s", c.name, c.in(), c.beside())
	w.convos = append(w.convos, c)
	w.plainTurn(c)
	w.between(c, keptFolder)
	if w.ways("load", "resume") && w.one(2) {
		w.reopen(c)
	}
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply{tool("read_file", object{"path": "$WORK/" + file})}, w.last()))
	w.covered("new", "extra folder")
	w.check("DIRS-010", "reads-beside")
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.modelSaw("", c, mark)
	w.check("", "goes-on")
}

// readsBeside opens another session in the workspace and writes a turn in which the agent reads a file. That turn
// stays open until the caller calls end.
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
