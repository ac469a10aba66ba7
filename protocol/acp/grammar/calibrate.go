package grammar

import (
	"embed"
	"maps"
	"slices"
	"strconv"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// probed has the arguments of the call that calibration makes, by tool.
var probed = map[string]object{
	"read_file":   {"path": "$WORK/read.txt"},
	"write_file":  {"path": "$WORK/write.txt", "content": "written\n"},
	"edit_file":   {"path": "$WORK/edit.txt", "old": "old", "new": "new"},
	"list_folder": {"path": "$WORK"},
	"run_shell":   {"command": "echo calibrated"},
	"delete_file": {"path": "$WORK/delete.txt"},
	"move_file":   {"path": "$WORK/move.txt", "to": "$WORK/moved.txt"},
	"search":      {"pattern": "read"},
	"ask_user":    {"question": "Which one?"},
	"fetch":       {"url": "http://127.0.0.1:9/calibrated.html"},
	"delegate":    {"task": "Look at what is calibrated."},
	"plan":        {"steps": []any{object{"step": "calibrated", "status": "in_progress"}}},
	"mcp":         {"server": "canary", "tool": "canary_sing", "args": object{"text": "la"}},
}

// shown has, by tool, a text in the permission request that identifies the call.
var shown = map[string]string{"write_file": "write.txt", "edit_file": "edit.txt", "run_shell": "calibrated",
	"delete_file": "delete.txt", "move_file": "move.txt", "mcp": "canary"}

// results has, by tool, a text that the result of the call contains, but no prompt and no argument.
var results = map[string]string{"read_file": "read in calibration", "list_folder": "listed.txt"}

// probes has the calibration turns that are the same for all agents. The turn "text" shows what a session offers, how
// the agent sends text, and how a second prompt ends. The turn "together" shows whether a session can work while
// another session waits for the model.
//
//go:embed probes
var probes embed.FS

// basic lists the tools that calibration calls if the profile names none.
var basic = []string{"read_file", "write_file", "edit_file", "run_shell"}

// Calibration returns the scenarios, by name, whose transcripts Learn reads to find out how an agent behaves.
func Calibration(p *agents.Profile) map[string]sweep.Archive {
	tools := basic
	if p.Tools != nil {
		tools = slices.Sorted(maps.Keys(p.Tools))
	}
	offer := newProbe("A version that no agent speaks, and a session without a login.")
	offer.Add("initialize version=%s", strconv.Itoa(newerVersion))
	offer.Add(`request session/new '{"cwd": "$WORK", "mcpServers": []}' as N`)
	offer.Add("await response N")
	out := map[string]sweep.Archive{versionProbe: offer.archive()}
	for _, name := range []string{"text", "together"} {
		text, _ := probes.ReadFile("probes/" + name + ".txtar") // it is embedded
		out[name] = sweep.Split(text)
	}
	t, m := newProbe("The tools of this agent."), newProbe("A tool of a server.")
	t.Add("elicit decline")
	m.Add("elicit decline")
	m.Add("mcp canary stdio")
	for _, l := range []*writer{t, m} {
		l.Add("session new s")
	}
	for _, name := range tools {
		switch {
		case probed[name] == nil:
		case name == "mcp":
			m.asksFor(name)
		default:
			t.asksFor(name)
			if name == "delegate" {
				t.lanes = lane("calibrated", "")
			}
		}
	}
	for _, name := range []string{"edit", "delete", "move"} {
		t.file(name+".txt", "old\n")
	}
	t.file("read.txt", results["read_file"]+"\n")
	t.file(results["list_folder"], "")
	for _, b := range blocks {
		if b.needs != "" && out[b.needs].Lines == nil {
			out[b.needs] = blockProbe(b.needs)
		}
	}
	out["tools"] = t.archive()
	if len(m.Turns) > 0 {
		out["servers"] = m.archive()
	}
	return out
}

// newProbe begins a scenario of the calibration.
func newProbe(title string) *writer {
	w := newWriter(&Ability{})
	w.Lines = append(w.Lines, script.NewComment(title))
	w.Add("golden off")
	w.Add("permit allow_once")
	return w
}

// asksFor adds a turn in which the model calls the named tool. The prompt is the name of the tool.
func (w *writer) asksFor(name string) {
	w.Add("prompt s %s", script.Quote(name))
	w.Turns = append(w.Turns, turnOf(reply{tool(name, probed[name])}, reply{fakellm.Text("Done with " + name + ".")}))
	w.Add("await turn any|error within=20s")
}

// blockProbe returns a scenario that shows what an agent does with content blocks of one type. needs is the capability
// for that type.
func blockProbe(needs string) sweep.Archive {
	w := newProbe("Blocks of one type.")
	w.r = sweep.Key{}.Random(0)
	w.Add("needs agent:" + needs)
	w.Add("session new s")
	for _, b := range blocks {
		if b.needs != needs {
			continue
		}
		list := []object{{"type": "text", "text": b.shape}, b.block(w)}
		w.Add("prompt s %s %s", script.Quote(b.shape), script.Option("blocks", work(marshal(list))))
		w.Turns = append(w.Turns, turnOf(reply{fakellm.Text("Seen: " + b.shape)}))
		w.Add("await turn any|error within=20s")
	}
	return w.archive()
}

// modeProbes returns scenarios that call a tool in each mode other than the initial one. It returns none if the agent
// has already asked for permission in the initial mode.
func (a *Ability) modeProbes() map[string]sweep.Archive {
	out := map[string]sweep.Archive{}
	for _, t := range a.Tools {
		if t.asks() {
			return out
		}
	}
	for i, mode := range a.Modes {
		w := newProbe("A tool in another mode.")
		w.Add("session new s")
		w.Add(a.setsMode(), "s", mode, "M")
		w.Add("await response M")
		w.asksFor("write_file")
		out[modeProbe+strconv.Itoa(i)] = w.archive()
	}
	return out
}

// modeProbe and commandProbe are the prefixes of the names of mode probes and command probes.
const (
	modeProbe    = "mode-"
	commandProbe = "command-"
)

// versionProbe is the name of the probe that offers a version that no agent speaks, and then opens a session.
const versionProbe = "offer"

// mostCommands is how many of the agent's commands calibration tries.
const mostCommands = 3

// commandProbes returns scenarios that use the agent's slash commands, one command each.
func (a *Ability) commandProbes() map[string]sweep.Archive {
	out := map[string]sweep.Archive{}
	for _, name := range a.commands[:min(len(a.commands), mostCommands)] {
		w := newProbe("A command, and another session that must not mind it.")
		w.Add("session new other")
		w.Add("session new s")
		for _, turn := range [][2]string{{"other", keptText}, {"s", "before"}, {"s", "/" + name}, {"other", "after"}} {
			w.Add("prompt %s %s", turn[0], script.Quote(turn[1]))
			w.Turns = append(w.Turns, turnOf(reply{fakellm.Text("Done with " + turn[1] + ".")}))
			w.Add("await turn any|error within=20s session=%s", turn[0])
		}
		out[commandProbe+name] = w.archive()
	}
	return out
}

// keptText is a prompt that another session must keep.
const keptText = "calibrated history"
