package recordings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// ErrNoGreeting is the error for a recording in which no agent answers initialize.
var ErrNoGreeting = errors.New("no agent answers initialize in the recording")

// guise is how an agent presents itself in a recording.
type guise struct {
	greeting, opened wire.Value // results of initialize and of the first session/new
	commands         wire.Value
	options          wire.Value // options of the first permission request
	chunks, ids      bool       // the agent sent chunks of messages; one of them had a message id
	before           []wire.Value
}

// Guise returns a block for a table of liberties, which changes the messages of another agent. That agent then shows
// the name, capabilities, login methods, modes, options, commands and permission choices of the recorded agent. A mode
// has the effect that its id suggests; see effect. The values of other options are stored, but have no effect.
func Guise(t *transcript.Transcript) (string, error) {
	g := guiseOf(t)
	if !g.greeting.Exists() {
		return "", ErrNoGreeting
	}
	return g.table(), nil
}

// Commands returns the names in the first list of commands that the recorded agent sends.
func Commands(t *transcript.Transcript) []string {
	return lists.Collect(guiseOf(t).commands.Items(), func(c wire.Value) string { return c.Get("name").Str() })
}

func guiseOf(t *transcript.Transcript) *guise {
	var g guise
	for e := range t.All() {
		if e.Source == transcript.Agent {
			g.see(e)
		}
	}
	return &g
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

// opening has the methods that set up a session, separated by bars.
const opening = "session/new|session/load|session/resume|session/fork"

func (g *guise) table() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("guise: has the name and the behaviour of another agent\n  habits %s", habits)
	if choices := g.choices(); choices != "" {
		line("  choices %s", choices)
	}
	line("  <-- result initialize\n    remove agentInfo info agentCapabilities capabilities authMethods")
	set(line, g.greeting, "protocolVersion")
	for _, notice := range g.before {
		line("    send %s", value(notice))
	}
	line("  --> request authenticate|auth/login|logout|auth/logout\n    answer {}")
	// The answer shows the current settings if the session was opened before in the same process.
	line("  <-- result %s !@opened\n    note opened true", opening)
	modes := g.opened.Get("modes")
	if modes.Exists() {
		line("    note mode %s", value(modes.Get("currentModeId")))
	}
	options := slices.Collect(g.opened.Get("configOptions").Items())
	for i, o := range options {
		line("    note %s %s", noteOf(i, o), value(o.Get("currentValue")))
	}
	line("  <-- result %s\n    remove modes configOptions", opening)
	set(line, g.opened, "sessionId")
	if modes.Exists() {
		line("    set modes.currentModeId $@mode")
	}
	for i, o := range options {
		line("    set configOptions.%d.currentValue $@%s", i, noteOf(i, o))
	}
	g.settings(line)
	if modes.Exists() {
		line("  <-- update current_mode_update\n    set currentModeId $@mode")
	} else {
		line("  <-- update current_mode_update\n    drop")
	}
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

// set writes steps that set all members of an object except the member but.
func set(line func(string, ...any), object wire.Value, but string) {
	for key, v := range object.Members() {
		if key != but {
			line("    set %s %s", key, value(v))
		}
	}
}

// noteOf returns the name of the note that stores the value of the i-th option. The option for the mode shares the
// note of the mode.
func noteOf(i int, option wire.Value) string {
	if option.Get("category").Is("mode") {
		return "mode"
	}
	return fmt.Sprintf("option%d", i)
}

// effects maps a part of another agent's mode id to the mode of the reference agent that has the same effect. The
// first match counts.
var effects = [][2]string{{"plan", "planning"}, {"read", "readonly"}, {"edit", "editing"}, {"yolo", "trusting"},
	{"auto", "trusting"}, {"bypass", "trusting"}, {"full", "trusting"}}

// habits describes, in the form of a table of liberties, an agent that has all the modes in effects.
const habits = `{"Modes":["agentic","readonly","planning","editing","trusting"]}`

// effect returns the reference agent's mode that has the effect of another agent's mode. If the id suggests no effect,
// it is the mode in which the agent asks.
func effect(mode string) string {
	for _, e := range effects {
		if strings.Contains(strings.ToLower(mode), e[0]) {
			return e[1]
		}
	}
	return "agentic"
}

// settings writes rules for the modes and options.
func (g *guise) settings(line func(string, ...any)) {
	for m := range g.opened.Path("modes.availableModes").Items() {
		id := m.Get("id").Str()
		line("  --> request session/set_mode modeId=%s\n    note mode $modeId\n    set modeId %s\n    pass", id, effect(id))
	}
	line("  --> request session/set_mode\n    refuse -32602 %q", "unknown mode")
	var all []string
	for i, o := range slices.Collect(g.opened.Get("configOptions").Items()) {
		var members []string
		for key, v := range o.Members() {
			shown := value(v)
			if key == "currentValue" {
				shown = "$@" + noteOf(i, o)
			}
			members = append(members, fmt.Sprintf("%q:%s", key, shown))
		}
		all = append(all, "{"+strings.Join(members, ",")+"}")
	}
	list := strings.Join(all, ",")
	for i, o := range slices.Collect(g.opened.Get("configOptions").Items()) {
		of := "  --> request session/set_config_option configId=" + o.Get("id").Str()
		if noteOf(i, o) != "mode" {
			line("%s\n    note option%d $value\n    answer {\"configOptions\":[%s]}", of, i, list)
			continue
		}
		for choice := range o.Get("options").Items() {
			id := choice.Get("value").Str()
			line("%s value=%s\n    note mode $value\n    set configId mode\n    set value %s\n    pass", of, id, effect(id))
		}
	}
	line("  --> request session/set_config_option\n    refuse -32602 %q", "unknown option")
	line("  <-- result session/set_config_option\n    set configOptions [%s]", list)
	if list == "" {
		line("  <-- update config_option_update\n    drop")
	} else {
		line("  <-- update config_option_update\n    set configOptions [%s]", list)
	}
}

// choices returns the recorded options of a permission request in the form of a table of liberties. It returns "" if
// there are none.
func (g *guise) choices() string {
	type choice struct{ ID, Name, Kind string }
	var all []choice
	for o := range g.options.Items() {
		all = append(all, choice{o.Get("optionId").Str(), o.Get("name").Str(), o.Get("kind").Str()})
	}
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // cannot fail: all members are strings
	return string(text)
}

// value returns a value in the form that a step needs: on one line, and with each $ escaped, because it begins a
// reference.
func value(v wire.Value) string {
	var b bytes.Buffer
	_ = json.Compact(&b, v.Raw()) // cannot fail: the value was parsed
	return strings.ReplaceAll(b.String(), "$", `\u0024`)
}
