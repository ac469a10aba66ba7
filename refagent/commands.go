package refagent

import (
	"slices"
	"strings"
)

// command is a slash command that the agent advertises.
type command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// commands lists the slash commands. The agent executes them itself, without the model.
var commands = []command{
	{"status", "Show the mode and the working directory of this session"},
	{"tools", "List the tools of the agent"},
	{"compact", "Replace the conversation by a summary of it"},
}

// slashCommand reports whether a prompt begins with one of the slash commands. If so, it returns the command's name.
func slashCommand(prompt string) (name string, ok bool) {
	name, ok = strings.CutPrefix(prompt, "/")
	name, _, _ = strings.Cut(name, " ")
	return name, ok && slices.ContainsFunc(commands, func(c command) bool { return c.Name == name })
}

func (a *agent) runCommand(s *session, t *turn, name string) (stop string, err error) {
	if name == "compact" {
		return a.compact(s, t)
	}
	answer := "Mode: " + s.mode() + "\nDirectory: " + s.cwd
	if name == "tools" {
		var b strings.Builder
		for _, t := range a.builtin() {
			b.WriteString("- `" + t.name + "`: " + t.about + "\n")
		}
		answer = b.String()
	}
	a.say(s, answer)
	s.write(event{Type: eventMessage, Message: &ModelMessage{Role: roleAssistant, Text: answer}})
	return stopEndTurn, nil
}
