// Package obedient replaces the model of an agent: its replies obey commands in the user's prompts. It allows
// demonstrating and testing editors without a real model.
package obedient

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
)

// agents contains recordings of real agents. Each file is named after the agent's profile.
//
//go:embed agents/*.jsonl
var agents embed.FS

// Agents returns the names of the agents for which there are recordings.
func Agents() (names []string) {
	files, _ := agents.ReadDir("agents") // no error: the folder is embedded
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".jsonl"))
	}
	return names
}

// Recording returns the recording of a real agent, or nil if there is none.
func Recording(agent string) []byte {
	text, _ := agents.ReadFile("agents/" + agent + ".jsonl") // nil if there is none
	return text
}

// command is an instruction that a line of a prompt can contain, such as /say TEXT.
type command struct {
	name, takes, does string
	step              func(rest string) fakellm.StepNode
	// asks is true if the agent sends another model request after the command, because the command calls a tool.
	asks bool
}

// tool returns a command that calls a tool. The text after the command's name is split at its first spaces into the
// tool's arguments, in the order of args.
func tool(name, takes, does, called string, args ...string) command {
	return command{name, takes, does, func(rest string) fakellm.StepNode {
		values := map[string]any{}
		for i, arg := range args {
			word := rest
			if i+1 < len(args) {
				word, rest, _ = strings.Cut(rest, " ")
			}
			values[arg] = word
		}
		return fakellm.CallTool(called, values)
	}, true}
}

var commands = []command{
	{"say", "TEXT", "says TEXT", func(rest string) fakellm.StepNode { return fakellm.Text(rest + "\n") }, false},
	{"think", "TEXT", "thinks TEXT",
		func(rest string) fakellm.StepNode { return fakellm.NewText("thinking", rest) }, false},
	{"stream", "TEXT", "says TEXT word by word",
		func(rest string) fakellm.StepNode {
			return fakellm.Text(strings.SplitAfter(rest+"\n", " ")...)
		}, false},
	{"slow", "TIME", "is silent for TIME, such as 2s", func(rest string) fakellm.StepNode {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return fakellm.Text(fmt.Sprintf("/slow takes a time, such as 2s, not %q.\n", rest))
		}
		return fakellm.NewStep("pause", d.String())
	}, false},
	{"hold", "", "is silent until the turn is cancelled",
		func(string) fakellm.StepNode { return fakellm.NewStep("fail", "{hang: true}") }, false},
	tool("edit", "PATH TEXT", "asks for permission and writes TEXT to PATH", "write_file", "path", "content"),
	tool("read", "PATH", "reads a file", "read_file", "path"),
	tool("run", "COMMAND", "asks for permission and runs COMMAND", "run_shell", "command"),
	tool("delete", "PATH", "asks for permission and deletes PATH", "delete_file", "path"),
	{"call", "TOOL JSON", "calls TOOL with arguments in JSON, for example a tool of the front end",
		func(rest string) fakellm.StepNode {
			name, text, _ := strings.Cut(rest, " ")
			args := map[string]any{}
			if err := json.Unmarshal([]byte(cmp.Or(text, "{}")), &args); name == "" || err != nil {
				return fakellm.Text(fmt.Sprintf("/call takes the name of a tool and a JSON object, not %q.\n", rest))
			}
			return fakellm.CallTool(name, args)
		}, true},
	tool("ask", "QUESTION", "asks the user QUESTION, if the editor can show questions", "ask_user", "question"),
	tool("delegate", "TASK", "gives TASK to a subagent, if the editor supports subagents", "delegate", "task"),
	{"refuse", "", "refuses", func(string) fakellm.StepNode { return fakellm.NewStep("stop", "refusal") }, false},
	{"cut", "", "stops as if the model had no tokens left",
		func(string) fakellm.StepNode { return fakellm.NewStep("stop", "length") }, false},
	{"fail", "[STATUS]", "makes the model fail with HTTP STATUS (default 500)", func(rest string) fakellm.StepNode {
		status := 500
		_, _ = fmt.Sscan(rest, &status) // any other text keeps the default
		return fakellm.NewStep("fail", fmt.Sprintf("{status: %d}", min(max(status, 400), 599)))
	}, false},
	{"die", "", "ends the agent's process in the middle of the turn",
		func(string) fakellm.StepNode { return fakellm.NewStep("fail", "{hang: true}") }, false},
}

// Turn returns the model's replies to a prompt. A line that begins with a slash is a command. Other lines are
// repeated in the reply. listed contains further commands that the agent advertises; the reply to such a command only
// mentions the command. dies is true if the prompt ends the agent's process.
func Turn(prompt string, listed []string) (t fakellm.TurnNode, dies bool) {
	var steps []fakellm.StepNode
	reply := func() {
		if steps != nil {
			t.Replies, steps = append(t.Replies, fakellm.NewReply(steps...)), nil
		}
	}
	last := command{asks: true}
	for line := range strings.Lines(prompt) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		last = command{}
		for _, c := range commands {
			if "/"+c.name == name {
				last = c
			}
		}
		switch {
		case last.name != "":
			steps = append(steps, last.step(strings.TrimSpace(rest)))
		case strings.HasPrefix(name, "/") && slices.Contains(listed, name[1:]):
			steps = append(steps, fakellm.Text("You gave the command "+line+"\n"))
		case strings.HasPrefix(name, "/"):
			steps = append(steps, fakellm.Text(fmt.Sprintf("There is no command %s.\n%s", name, Commands())))
		default:
			steps = append(steps, fakellm.Text("You said: "+line+"\n"))
		}
		if dies = dies || last.name == "die"; last.asks {
			reply()
		}
	}
	if reply(); last.asks {
		t.Replies = append(t.Replies, fakellm.NewReply(fakellm.Text("Done.\n")))
	}
	return t, dies
}

// Commands returns the help for the commands that Turn understands, one per line.
func Commands() string {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-16s  %s\n", strings.TrimSpace("/"+c.name+" "+c.takes), c.does)
	}
	return b.String()
}
