package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
)

// Ability is the result of calibration: what one agent does in plain turns. The grammar draws only what Ability
// allows. The zero value is an agent that is known only to answer with text.
type Ability struct {
	// V2 says that the agent speaks version 2: a state ends a turn, and modes are options.
	V2 bool
	// Able are the capabilities that the agent advertises, by their paths in version 1.
	Able map[string]bool
	// Mode is the mode in which sessions begin. Modes are the other modes. Options are the select options other than
	// the mode.
	Mode    string
	Modes   []string
	modeID  string // of the option that is the mode in version 2
	Options []Option
	// Asks is the mode of Modes in which the agent asks for permission, if it does not ask in Mode.
	Asks string
	// Tools are the neutral tools that the agent was asked to use.
	Tools map[string]Tool
	// Streams says that the agent shows text while the model's reply is unfinished. Pieces is how many updates the
	// agent sends for a text of four pieces.
	Streams bool
	Pieces  int
	// Login is the method with which the editor has logged in; "" if it did not.
	Login string
	// Together says that a session works while another one waits for the model.
	Together bool
	// Busy is the outcome of a prompt to a busy session: "refused", or the stop reason.
	Busy string
	// Blocks is the outcome of a prompt with a block of each type.
	Blocks map[string]string
	// Start and Turn are how long the agent's start and one turn take.
	Start, Turn time.Duration
}

// Option is a select of a session.
type Option struct {
	ID, Current string
	Values      []string // the others
}

// Tool is what calibration found out about one neutral tool.
type Tool struct {
	// Works says that the agent completed the call.
	Works bool
	// Promised says that the profile names the tool, so that a call has to work.
	Promised bool
	// Choices are the kinds of options in the agent's permission request; nil if it sent none.
	Choices []string
	// Tells says that the permission request shows the call's path or command, or that the form of a question has a
	// required field.
	Tells bool
	// Stops says that the editor can cancel a single call. Ends says that the editor can cancel the call's terminal.
	Stops, Ends bool
	// Requests are the other requests that the agent sent for the call, such as fs/read_text_file.
	Requests []string
}

// setsMode returns the template of the line that sets a session's mode.
func (a *Ability) setsMode() string {
	if a.V2 {
		return "set-option %s " + a.modeID + " %s as %s"
	}
	return "set-mode %s %s as %s"
}

func (t Tool) asks() bool { return len(t.Choices) > 0 }

// once returns the kinds of options that hold for one question only.
func (t Tool) once() []string {
	return lists.Where(t.Choices, func(kind string) bool { return strings.HasSuffix(kind, "_once") })
}

// able reports whether the agent advertises a capability.
func (a *Ability) able(path string) bool { return a.Able[path] }

// works reports whether a neutral tool works, or has to work because the profile promises it.
func (a *Ability) works(tool string) bool { return a.Tools[tool].Works || a.Tools[tool].Promised }

type way struct{ name, needs string }

// waysIn are the ways to open, list or leave a session, each with the capability that it needs.
var waysIn = []way{
	{"load", "loadSession"}, {"resume", "sessionCapabilities.resume"}, {"fork", "sessionCapabilities.fork"},
	{"list", "sessionCapabilities.list"}, {"close", "sessionCapabilities.close"}, {"delete", "sessionCapabilities.delete"},
}

// String returns a paragraph that describes the agent to people.
func (a *Ability) String() string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	var works, fails, asks, uses []string
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		t := a.Tools[name]
		if !t.Works {
			fails = append(fails, name)
			continue
		}
		works = append(works, name)
		if t.asks() {
			asks = append(asks, name)
		}
		uses = append(uses, t.Requests...)
	}
	slices.Sort(uses)
	add("Tools that work: %s.", listed(works))
	if len(fails) > 0 {
		add("Tools that fail or are missing: %s.", listed(fails))
	}
	add("The agent asks before: %s.", listed(asks))
	if a.Asks != "" {
		add("In mode %s it asks.", a.Asks)
	}
	add("It sends the editor: %s.", listed(slices.Compact(uses)))
	if a.Streams {
		add("The agent streams: a model reply of four pieces gave %d updates.", a.Pieces)
	} else {
		add("The agent does not stream: it sends the text when the model's reply is complete.")
	}
	var ways []string
	for _, w := range waysIn {
		if a.able(w.needs) {
			ways = append(ways, w.name)
		}
	}
	add("The agent can open, list or leave sessions by: new, %s.", listed(ways))
	if a.Mode != "" {
		add("Sessions begin in mode %s; others are %s.", a.Mode, listed(a.Modes))
	}
	if a.Login != "" {
		add("The login is %s.", a.Login)
	}
	add("Two sessions %s at the same time; a second prompt to a busy session ends as %s.",
		map[bool]string{true: "work", false: "do not work"}[a.Together], a.Busy)
	blocks := lists.Map(slices.Sorted(maps.Keys(a.Blocks)), func(b string) string { return b + " " + a.Blocks[b] })
	add("Prompts with content blocks: %s.", listed(blocks))
	add("A start takes %v, a turn %v.", a.Start.Round(time.Millisecond), a.Turn.Round(time.Millisecond))
	return strings.Join(s, " ")
}

// listed joins names; it returns "none" if there are none.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
