package grammar

import (
	"slices"

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
		w.turn(c, append(replies, w.last())...)
	}
	w.covered("turn", "much work")
	w.check("PROMPT-005", "starts-anew")
	w.plainTurn(c)
	w.check("", "goes-on")
	if w.has("process") && w.ways("load") && w.one(2) {
		w.lost("restart")
		w.reopen(c)
	}
}

// plans reports whether the model can make plans.
func (w *writer) plans() bool { return w.has("tools") && w.works("plan") }

// emptiesPlan writes a turn in which the model makes a plan with one finished step, and then empties the plan. The
// agent must report the empty plan.
func (w *writer) emptiesPlan() {
	c := w.inFirstMode()
	step := w.name("schritt")
	done := []any{object{"step": step, "status": "completed"}}
	w.turn(c, reply{tool("plan", object{"steps": done})},
		reply{tool("plan", object{"steps": []any{}})}, w.last())
	w.covered("call", "plan emptied")
	w.Add("needs saw plan raw~%s session=%s", step, c.name)
	w.check("PLAN-005", "empties-the-plan")
	w.Add(`saw plan raw~'"entries": ?\[\]' session=%s`, c.name)
	w.check("", "goes-on")
}

// advancesPlan writes a turn in which the model makes a plan of two steps, and then finishes the first. The agent must
// report both.
func (w *writer) advancesPlan() {
	c := w.inFirstMode()
	step := w.name("schritt")
	var replies []reply
	for _, status := range []string{"pending", "completed"} {
		steps := []any{object{"step": step, "status": status}, object{"step": "danach", "status": "pending"}}
		replies = append(replies, reply{tool("plan", object{"steps": steps})})
	}
	w.turn(c, append(replies, w.last())...)
	w.covered("call", "plan advanced")
	w.Add("needs saw plan raw~%s session=%s", step, c.name)
	w.check("PLAN-005", "advances-the-plan")
	w.Add(`saw plan raw~%s raw~'"status": ?"completed"' session=%s`, step, c.name)
	w.check("", "goes-on")
}

// shortensPlan writes a turn in which the model makes a plan of three steps, and then a plan without one of them.
func (w *writer) shortensPlan() {
	c := w.inFirstMode()
	step := func(name string) any { return object{"step": name, "status": "pending"} }
	first, kept, dropped := step(w.name("schritt")), step(w.name("schritt")), step(w.name("schritt"))
	w.turn(c, reply{tool("plan", object{"steps": []any{first, dropped, kept}})},
		reply{tool("plan", object{"steps": []any{first, kept}})}, w.last())
	w.covered("call", "plan shortened")
}

func (w *writer) plansTwice() bool {
	return w.plans() && w.has("several") && len(w.convos) < most
}

// samePlan writes a turn in each of two sessions, in which the model makes the same plan. The agent must report the
// plan in both.
func (w *writer) samePlan() {
	a := w.inFirstMode()
	step := w.name("schritt")
	plan := tool("plan", object{"steps": []any{object{"step": step, "status": "pending"}}})
	for _, c := range []*convo{a, w.newConvo()} {
		w.turn(c, reply{plan}, w.last())
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

// closedAtWork closes a session whose command has left something running in the background of the editor's terminal.
// The rules judge what is left of it.
func (w *writer) closedAtWork() {
	c := w.newConvo()
	w.prompt(c, w.name("P"))
	command := pick(w.r, []string{"(sleep 2) > /dev/null 2>&1 & echo begun", "sleep 3 &"})
	run := tool("run_shell", object{"command": command})
	w.Turns = append(w.Turns, turnOf(reply{run}, w.last()))
	w.ends(&turn{convo: c})
	w.Add("session close %s", c.name)
	c.gone = true
	w.covered("leave by close", "at work in the background")
}

// runs reports whether the tool run_shell works and the user has not answered for always about it.
func (w *writer) runs() bool {
	return w.has("tools") && w.works("run_shell") && w.asked["run_shell"] == ""
}

// waitsInTerminal reports whether the agent waits for the end of a command in the editor's terminal.
func (w *writer) waitsInTerminal() bool {
	return w.runs() && !w.out["requests"] && slices.Contains(w.Tools["run_shell"].Requests, "terminal/wait_for_exit")
}

func (w *writer) canRejectEdits() bool {
	return w.has("permissions") && w.edits() && slices.Contains(w.Tools["edit_file"].Choices, "reject_once")
}

// editAfterNo writes two edits of one file. The user rejects the first and allows the second, which must not make the
// first.
func (w *writer) editAfterNo() {
	c := w.inFirstMode()
	name := w.name("nota") + "x.txt"
	path := c.folder() + name
	w.file(path, "vorher\nold word\nanother word\n")
	for _, edit := range [][3]string{{"reject_once", "old word", "abgelehnt"}, {"allow_once", "another word", "neu"}} {
		ask := w.name("ASK")
		w.Add("permit hold about=%s", name)
		w.prompt(c, w.name("P"))
		step := tool("edit_file", object{"path": "$WORK/" + path, "old": edit[1], "new": edit[2]})
		w.Turns = append(w.Turns, turnOf(reply{step}, w.last()))
		w.Add("needs await permission session=%s about~%s as %s", c.name, name, ask)
		w.Add("answer %s %s", ask, edit[0])
		w.Add("await turn any|error %s session=%s", w.soon(), c.name)
	}
	w.covered("asked twice", "edit after a rejected one")
	w.check("PERM-007", "makes-one-edit")
	w.Add("exec sh -c %s", script.Quote("! grep -q abgelehnt "+path))
	w.check("", "goes-on")
}

// terminalRefused writes a turn with a command. The editor answers a request about its terminal with an error.
func (w *writer) terminalRefused() {
	c := w.inFirstMode()
	method := pick(w.r, []string{"terminal/wait_for_exit", "terminal/output"})
	w.Add("refuse %s", method)
	w.prompt(c, w.name("P"))
	run := tool("run_shell", object{"command": "echo " + w.name("nota") + "x"})
	w.Turns = append(w.Turns, turnOf(reply{run}, w.last()))
	w.ends(&turn{convo: c})
	w.Add("refuse %s off", method)
	w.covered("refused", method)
	w.plainTurn(c)
}

func (w *writer) canCompareShells() bool { return w.runs() && len(w.convos) <= most-2 }

// shellsApart runs a command that changes the environment or the folder of its shell in one session, and then one in
// another session that shows it. Nothing of the first may be there.
func (w *writer) shellsApart() {
	mark := w.name("nota") + "x"
	first, second := w.newConvo(), w.newConvo()
	commands := []string{"export NOTA_APART=" + mark, "echo apart=$$NOTA_APART"}
	told := "apart=" + mark
	if w.one(2) {
		w.file(mark+"/readme.txt", "\n")
		commands, told = []string{"cd $WORK/" + mark, "echo apart=$$PWD"}, `apart=[^ "\\]*/`+mark
	}
	for i, c := range []*convo{first, second} {
		w.turn(c, reply{tool("run_shell", object{"command": commands[i]})}, w.last())
	}
	w.covered("several", "shells apart")
	w.check("SESSION-020", "has-its-own-shell")
	w.modelSaw("! ", second, told)
	w.check("", "goes-on")
}
