package recordings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// ErrNoGreeting is the error of a recording in which no agent answered initialize.
var ErrNoGreeting = errors.New("no agent answers initialize in it")

// guise is what an editor is told of an agent in a recording.
type guise struct {
	greeting, opened wire.Value // results of initialize and of the first session/new
	commands         wire.Value
	options          wire.Value // of the first permission request
	chunks, ids      bool       // the agent sent pieces of messages, and one of them with a message id
	before           []wire.Value
}

// Guise returns the block of a table of liberties that gives another agent the name, the capabilities, the logins,
// the modes, the options, the commands and the choices of the agent in a recording. The setting of a mode or an
// option is remembered and has no other effect.
func Guise(t *transcript.Transcript) (string, error) {
	var g guise
	for e := range t.All() {
		if e.Source == transcript.Agent {
			g.see(e)
		}
	}
	if !g.greeting.Exists() {
		return "", ErrNoGreeting
	}
	return g.table(), nil
}

func (g *guise) see(e transcript.Entry) {
	v := e.JSON()
	first := func(to *wire.Value, found wire.Value) {
		if !to.Exists() {
			*to = found
		}
	}
	switch update := acpframe.Update(e); {
	case e.Kind == transcript.Response && e.Method == "initialize":
		first(&g.greeting, v.Get("result"))
	case e.Kind == transcript.Response && e.Method == "session/new":
		first(&g.opened, v.Get("result"))
	case e.Method == "session/request_permission" && e.Kind == transcript.Request:
		first(&g.options, v.Path("params.options"))
	case update == "available_commands_update":
		first(&g.commands, v.Path("params.update.availableCommands"))
	case update != "" && isChunk(update):
		g.chunks = true
		g.ids = g.ids || v.Path("params.update.messageId").Exists()
	case e.Kind == transcript.Notification && e.Session == "" && !g.opened.Exists():
		g.before = append(g.before, v)
	}
}

// opening are the methods that set up a session.
const opening = "session/new|session/load|session/resume|session/fork"

func (g *guise) table() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("guise: has the name and the ways of another agent")
	if choices := g.choices(); choices != "" {
		line("  choices %s", choices)
	}
	line("  <-- result initialize\n    remove agentInfo info agentCapabilities capabilities authMethods")
	set(line, g.greeting, "protocolVersion")
	for _, notice := range g.before {
		line("    send %s", value(notice))
	}
	line("  --> request authenticate|auth/login|logout|auth/logout\n    answer {}")
	line("  <-- result %s\n    remove modes configOptions", opening)
	set(line, g.opened, "sessionId")
	for i, o := range slices.Collect(g.opened.Get("configOptions").Items()) {
		line("    note option%d %s", i, value(o.Get("currentValue")))
	}
	g.settings(line)
	line("  <-- update current_mode_update|config_option_update\n    drop")
	line("  <-- update available_commands_update")
	if g.commands.Exists() {
		line("    set availableCommands %s", value(g.commands))
	} else {
		line("    drop")
	}
	if g.chunks && !g.ids {
		line("  <-- update *_chunk\n    remove messageId")
	}
	return b.String()
}

// set writes steps that set the members of an object but one.
func set(line func(string, ...any), object wire.Value, but string) {
	for key, v := range object.Members() {
		if key != but {
			line("    set %s %s", key, value(v))
		}
	}
}

// settings writes rules for modes and options.
func (g *guise) settings(line func(string, ...any)) {
	var modes []string
	for m := range g.opened.Path("modes.availableModes").Items() {
		modes = append(modes, m.Get("id").Str())
	}
	if len(modes) > 0 {
		line("  --> request session/set_mode modeId=%s\n    answer {}", strings.Join(modes, "|"))
	}
	line("  --> request session/set_mode\n    refuse -32602 %q", "unknown mode")
	options := slices.Collect(g.opened.Get("configOptions").Items())
	var all []string
	for i, o := range options {
		var text bytes.Buffer
		text.WriteString("{")
		for key, v := range o.Members() {
			if text.Len() > 1 {
				text.WriteString(",")
			}
			fmt.Fprintf(&text, "%q:", key)
			if key == "currentValue" {
				fmt.Fprintf(&text, "$@option%d", i)
			} else {
				text.WriteString(value(v))
			}
		}
		all = append(all, text.String()+"}")
	}
	for i, o := range options {
		line("  --> request session/set_config_option configId=%s\n    note option%d $value\n"+
			"    answer {\"configOptions\":[%s]}",
			o.Get("id").Str(), i, strings.Join(all, ","))
	}
	line("  --> request session/set_config_option\n    refuse -32602 %q", "unknown option")
}

// choices are the options of permission requests, as tables of liberties have them; "" for none.
func (g *guise) choices() string {
	type choice struct{ ID, Name, Kind string }
	var all []choice
	for o := range g.options.Items() {
		all = append(all, choice{o.Get("optionId").Str(), o.Get("name").Str(), o.Get("kind").Str()})
	}
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // texts have a form
	return string(text)
}

// value is a value as a step has it: on one line, and without a $ that begins a reference.
func value(v wire.Value) string {
	var b bytes.Buffer
	_ = json.Compact(&b, v.Raw()) // it was parsed
	return strings.ReplaceAll(b.String(), "$", `\u0024`)
}
