package grammar

// ownFolder writes a turn in a session that has its own folder. The model names a file relative to that folder, and
// the workspace has another file of that name.
func (w *writer) ownFolder() {
	kind := pick(w.r, []string{"dir", "it's a dir ", "a#b %20 "})
	dir, odd := w.name(kind), kind != "dir"
	c := &convo{name: w.name("s"), dir: dir, servers: w.served()}
	name := w.twoFiles(dir, "")
	w.Add("session new %s %s", c.name, c.in())
	w.convos = append(w.convos, c)
	w.covered("new", "cwd")
	if !odd {
		w.between(c, keptFolder)
	}
	if w.has("several") && w.Together && len(w.convos) < most && w.one(2) {
		defer w.readsBeside(name + ".txt")()
	}
	w.worksIn(c, name, "", "SESSION-007")
	c.gone = odd // the lines of other turns do not quote their folder
}

// instructions has the files in which users leave instructions for the agents of a project.
var instructions = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}

// instructionsApart opens two sessions in two folders, each with instructions for agents. The model must not be told
// those of the other folder.
func (w *writer) instructionsApart() {
	var words []string
	for range 2 {
		c := &convo{name: w.name("s"), dir: w.name("projekt"), servers: w.served()}
		words = append(words, w.name("anweisung")+"x")
		for _, file := range instructions {
			w.file(c.dir+"/"+file, "Call this project "+words[len(words)-1]+".\n")
		}
		w.Add("session new %s %s", c.name, c.in())
		w.convos = append(w.convos, c)
		w.plainTurn(c)
		if len(words) > 1 {
			w.check("SESSION-020", "follows-its-own-instructions")
			w.modelSaw("! ", c, words[0])
			w.check("", "goes-on")
		}
	}
	w.covered("several", "instructions apart")
}

func (w *writer) canGoHome() bool { return w.has("ways") && w.ways("list") }

// homeFolder opens a session in a folder of the user's home, and lists the sessions after a turn.
func (w *writer) homeFolder() {
	c := &convo{name: w.name("s"), servers: w.served()}
	dir := w.name("app")
	w.Add("exec mkdir -p $HOME/%s", dir)
	w.Add("session new %s cwd=$HOME/%s", c.name, dir)
	w.plainTurn(c)
	w.Add("session list all")
	w.covered("new", "in the home")
	c.gone, c.solid = true, false // other lines do not know the folder
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
	first := reply{tool("read_file", object{"path": w.relative(name + ".txt")})}
	if w.works("write_file") && w.one(2) {
		first = append(first, tool("write_file", object{"path": w.relative(name + "new.txt"), "content": "new\n"}))
	}
	if other == "" && w.works("run_shell") && w.asked["run_shell"] == "" && w.one(2) {
		first = append(first, tool("run_shell", object{"command": "cat " + name + ".txt"}))
	}
	if !c.moved && w.works("list_folder") && w.asked["list_folder"] == "" && w.one(2) {
		w.file("out-of-place-"+name+".txt", "outside\n")
		first = append(first, tool("list_folder", object{"path": "."}))
	}
	w.Turns = append(w.Turns, turnOf(first, w.last()))
	w.check(requirement, "stays-in-its-folder")
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.Add("! saw model request session=%s raw~%s", c.name, "out-of-place-"+name)
	w.Add("! exists %s", other+name+"new.txt")
	w.check("", "goes-on")
}

// folderGone reopens a session whose folder is gone. The agent may refuse this.
func (w *writer) folderGone() {
	c := &convo{name: w.name("s"), dir: w.name("dir"), servers: w.served()}
	w.file(c.dir+"/readme.txt", "In "+c.dir+".\n")
	w.Add("session new %s %s", c.name, c.in())
	w.convos = append(w.convos, c)
	w.plainTurn(c)
	w.leavesAll([]*convo{c})
	w.Add("exec mv %s %s", c.dir, w.name("weg"))
	away := w.named
	how := "load"
	if !w.ways("load") || w.ways("resume") && w.one(2) {
		how = "resume"
	}
	l := w.name("L")
	w.Add("session %s %s %s wait=no as %s", how, c.name, c.in(), l)
	w.Add("await response %s", l)
	w.Add("exec mv %s %s", away, c.dir)
	c.gone, c.solid = true, false // whether the session is open is not known
	w.covered(how, "folder gone")
}

func (w *writer) canAddFolders() bool {
	return w.able(moreFolders) && w.works("read_file") && w.asked["read_file"] == "" && len(w.convos) < most
}

// Names of the pairs that cover a session with an additional folder.
const (
	extraFolder = "extra folder"
	laterFolder = "extra folder that is not there yet"
)

// extraFolder opens a session with an additional folder, and sometimes reopens the session, with or without that
// folder. If the session still has the folder, the model then reads a file in it. With probability 1/3, the folder is
// created only after session/new; an agent may refuse such a session.
func (w *writer) extraFolder() {
	c := &convo{name: w.name("s"), dir: w.name("dir"), extra: w.name("extra"), servers: w.served()}
	file, mark := w.name("nota")+"x.txt", w.name("beside")+"x"
	initial, requirement, covers := c.extra, "DIRS-010", extraFolder
	w.file(c.dir+"/readme.txt", "In "+c.dir+".\n")
	if w.one(3) {
		initial, requirement, covers = w.name("later"), "", laterFolder
		l := w.name("N")
		w.Add("session new %s %s %s wait=no as %s", c.name, c.in(), c.beside(), l)
		w.Add("await response %s", l)
		w.Add("needs saw response %s result?", l)
		w.Add("exec mv %s %s", initial, c.extra)
	} else {
		w.Add("session new %s %s %s", c.name, c.in(), c.beside())
	}
	w.file(initial+"/"+file, mark+"\n")
	w.file(initial+"/readme.txt", "In "+c.extra+".\n")
	w.convos = append(w.convos, c)
	w.plainTurn(c)
	w.between(c, keptFolder)
	if w.ways("load", "resume") && w.one(2) {
		if w.one(2) {
			w.leavesAll([]*convo{c})
		}
		if w.one(2) {
			c.extra = ""
		}
		w.reopen(c)
	}
	if c.extra == "" {
		w.plainTurn(c)
		return
	}
	w.prompt(c, w.name("P"))
	reads := reply{tool("read_file", object{"path": "$WORK/" + c.extra + "/" + file}),
		tool("read_file", object{"path": "readme.txt"})}
	w.Turns = append(w.Turns, turnOf(reads, w.last()))
	w.covered("new", covers)
	w.check(requirement, "reads-beside")
	w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	w.modelSaw("", c, mark)
	w.check("SESSION-007", "stays-in-its-folder")
	w.modelSaw("! ", c, "In "+c.extra+`\.`)
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
