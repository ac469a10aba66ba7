package grammar

import (
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// interlude is something that happens between two turns of a session. It must not change what the session keeps, such
// as its allow-always answers, its servers and its folder.
type interlude struct {
	name string
	can  func(w *writer) bool
	do   func(w *writer, c *convo)
}

// Names of the things that a session must keep.
const (
	keptAlways  = "kept: answer for always"
	keptOnce    = "kept: answer for one call"
	keptServers = "kept: MCP servers"
	keptFolder  = "kept: folder"
	keptFile    = "kept: text of a file"
	keptSetting = "kept: setting"
	keptHistory = "kept: history"
	keptApart   = "kept: history of its own"
)

func interludes() []interlude {
	stops := func(w *writer) bool { return w.has("stops") }
	shapes := func(w *writer) bool { return w.has("shapes") }
	several := func(w *writer) bool { return w.has("several") && len(w.convos) < most }
	return []interlude{
		{"a cancelled turn", stops, (*writer).stopsOne},
		{"a failed turn", func(w *writer) bool { return w.has("failures") }, func(w *writer, c *convo) {
			w.turnEndsIn(c, fakellm.NewStep("fail", refusedByModel))
		}},
		{"a login after an invalid key", func(w *writer) bool { return w.has("failures") && w.Login != "" && !w.V2 },
			func(w *writer, c *convo) {
				w.turnEndsIn(c, fakellm.NewStep("fail", keyRefused))
				name := w.name("A")
				w.Add(`request authenticate '{"methodId": "%s"}' as %s`, w.Login, name)
				w.Add("await response %s", name)
			}},
		{"a session long after a login", func(w *writer) bool { return several(w) && w.Login != "" && !w.V2 },
			func(w *writer, _ *convo) {
				name := w.name("A")
				w.Add(`request authenticate '{"methodId": "%s"}' as %s`, w.Login, name)
				w.Add("await response %s", name)
				w.Add("await quiet 4s")
				w.plainTurn(w.newConvo())
			}},
		{"a turn at its limit", shapes, func(w *writer, c *convo) {
			w.turnEndsIn(c, w.says("text"), fakellm.NewStep("stop", "length"))
		}},
		{"a refused turn", shapes, func(w *writer, c *convo) {
			w.turnEndsIn(c, w.says("text"), fakellm.NewStep("stop", "refusal"))
		}},
		{"another session", several, func(w *writer, _ *convo) { w.plainTurn(w.newConvo()) }},
		{"another session that closes", func(w *writer) bool { return several(w) && w.ways("close") },
			func(w *writer, _ *convo) {
				other := w.newConvo()
				w.plainTurn(other)
				w.Add("session close %s", other.name)
				other.gone = true
			}},
		{"a prompt to nobody", func(w *writer) bool { return w.has("asides") }, func(w *writer, _ *convo) {
			name := w.name("R")
			w.Add(`request session/prompt '{"sessionId": "nobody", "prompt": [{"type": "text", "text": "Anyone?"}]}' as %s`,
				name)
			w.Add("await response %s", name)
		}},
	}
}

// between writes up to two interludes before the next turn of a session. kept names what the session must keep.
func (w *writer) between(c *convo, kept string) {
	for range w.r.IntN(3) {
		from := lists.Map(interludes(), func(i interlude) weighted[interlude] {
			return weighted[interlude]{1, i, !i.can(w)}
		})
		if i, ok := choose(w.r, from); ok {
			w.covered(kept, i.name)
			i.do(w, c)
		}
	}
}

// keptPairs calls add for each pair of a thing that a session keeps and an interlude, if both are possible.
func (w *writer) keptPairs(add func(a, b string)) {
	asks := w.rewriters()
	always := slices.ContainsFunc(asks, func(name string) bool {
		choices := w.Tools[name].Choices
		return slices.Contains(choices, "allow_always") || slices.Contains(choices, "reject_always")
	})
	for _, k := range []struct {
		kept string
		can  bool
	}{
		{keptAlways, always},
		{keptOnce, len(asks) > 0},
		{keptServers, w.served() && w.ways("close")},
		{keptFolder, w.works("read_file")},
		{keptFile, w.edits() && w.works("read_file")},
		{keptSetting, len(w.Modes)+len(w.Options) > 0},
		{keptHistory, w.ways("fork", "load", "resume")},
		{keptApart, w.has("several")},
	} {
		for _, i := range interludes() {
			if k.can && i.can(w) {
				add(k.kept, i.name)
			}
		}
	}
}

func (w *writer) canCommand() bool { return w.has("asides") && len(w.Commands) > 0 }

// command writes a prompt with a slash command that the agent carries out without the model, in a session of its own.
// The session may have been reopened. Another session must keep what it has.
func (w *writer) command() {
	other := w.solidConvo()
	told, name := other.told, pick(w.r, w.Commands)
	c := &convo{name: w.name("s"), servers: w.served()}
	w.Add("session new %s", c.name)
	w.plainTurn(c)
	if w.ways("close") && w.ways("load") && w.one(2) {
		w.Add("session close %s", c.name)
		w.reopen(c)
		w.covered("command", "after a load")
	}
	if w.one(2) {
		w.Add("session new %s", w.name("s"))
		w.covered("command", "in an older session")
	}
	set := len(w.Options) > 0 && w.has("settings") && w.one(2)
	if set {
		o := pick(w.r, w.Options)
		w.settles("set-option %s %s %s as %s", c.name, o.ID, pick(w.r, append(slices.Clone(o.Values), o.Current)))
		w.plainTurn(c)
		w.covered("command", "after an option")
	}
	requirement, ends := "CMD-003", "any|error"
	var more script.Word
	if w.has("media") && w.one(3) {
		requirement, ends = "CMD-004", "any" // the agent takes the command alone
		beside := object{"type": "resource_link", "uri": "https://docs.example.test/" + w.name("page"), "name": w.named}
		if w.able("promptCapabilities.embeddedContext") && w.one(2) {
			beside = object{"type": "resource", "resource": object{"uri": "file:///elsewhere/" + w.named + ".md",
				"text": w.text()}}
		}
		more = script.Option("blocks", script.Quote(marshal([]object{beside})))
		w.covered("command", "beside a link")
	}
	said := "/" + name
	blank := w.one(4)
	if blank { // as an editor completes it
		said += " "
		w.covered("command", "with a blank behind it")
	}
	w.check(requirement, "runs-the-command")
	w.Add("prompt %s %s %s as %s", c.name, script.Quote(said), more, w.name("P"))
	w.Turns = append(w.Turns, turnOf(w.last())) // for an agent that asks the model nevertheless
	w.Add("await turn %s %s session=%s", ends, w.soon(), c.name)
	if !blank { // the protocol does not say whether that is still the command
		w.Add("! saw model request session=%s raw~%s", c.name, script.Quote(`"/`+name+`"`))
	}
	w.check("", "goes-on")
	w.covered("command", name)
	if set { // the option holds, or the agent tells its new value
		w.turnEndsIn(c, w.says("text"))
		w.turnEndsIn(c, w.says("text"))
	}
	w.plainTurn(other)
	w.check("SESSION-020", "keeps-its-history")
	w.modelSaw("", other, told)
	w.check("", "goes-on")
	c.gone = true // it is not known what the command has changed
}

// turnEndsIn writes a turn in which the model gives one reply.
func (w *writer) turnEndsIn(c *convo, steps ...fakellm.StepNode) {
	w.prompt(c, w.name("P"))
	w.Turns = append(w.Turns, turnOf(reply(steps)))
	w.Add("await turn any|error within=60s session=%s", c.name)
}
