package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
)

// Ability is the result of calibration: what one agent does in plain turns. The grammar draws only sessions that
// Ability allows. The zero value is an agent that is only known to answer with text.
type Ability struct {
	// V2 says that the agent speaks version 2: a state update ends a turn, and the mode is a config option.
	V2 bool
	// Able is the set of capabilities that the agent advertises. They are named by their paths in version 1, also if
	// V2 is set.
	Able map[string]bool
	bare bool // some message over HTTP had no id
	// Mode is the initial mode of sessions. Modes are the other modes. Options are the select options other than the
	// mode.
	Mode    string
	Modes   []string
	modeID  string // id of the config option that is the mode in version 2
	Options []Option
	// Asks is an element of Modes in which the agent asks for permission. It is "" if the agent asks in Mode or in no
	// mode.
	Asks string
	// Falls says that the agent answers the offer of a newer version with version 1.
	Falls bool
	// Commands lists the slash commands that the agent carries out without the model.
	Commands []string
	commands []string // names of the slash commands that the agent offers
	// Tools has the results of the neutral tools that calibration tried, by name.
	Tools map[string]Tool
	// Streams says that the agent shows text while the model's reply is unfinished. Pieces is how many updates the
	// agent sends for a text of four pieces.
	Streams bool
	Pieces  int
	// Demands says that the agent opens no session without a login.
	Demands bool
	// Login is the id of the login method that the editor used; "" without a login.
	Login string
	// Together says that one session can work while another session waits for the model.
	Together bool
	// Waits says that a turn waits for its subagent, and gives the model the answer of the subagent.
	Waits bool
	// Busy says how a prompt to a busy session ended: "refused", "no answer", or its stop reason.
	Busy string
	// Blocks says, for each type of content block, how a prompt with such a block ended, as in Busy.
	Blocks map[string]string
	// Start is the longest time that the agent took to start, and Turn the longest duration of a turn.
	Start, Turn time.Duration
}

// Option is a select option of a session.
type Option struct {
	ID, Current string
	Values      []string // all values except Current
}

// Tool holds the results of calibration for one neutral tool.
type Tool struct {
	// Works says that the agent completed the call.
	Works bool
	// Promised says that the profile names the tool. A call must then succeed.
	Promised bool
	// Choices are the kinds of options in the agent's permission request; nil if it sent none.
	Choices []string
	// Tells says that the permission request shows the call's path or command. For ask_user, it says that the form has
	// a required field.
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

// once returns those kinds of permission options that apply to a single call.
func (t Tool) once() []string {
	return lists.Where(t.Choices, func(kind string) bool { return strings.HasSuffix(kind, "_once") })
}

// able reports whether the agent advertises a capability.
func (a *Ability) able(path string) bool { return a.Able[path] }

// works reports whether a neutral tool worked in calibration, or must work because the profile promises it.
func (a *Ability) works(tool string) bool { return a.Tools[tool].Works || a.Tools[tool].Promised }

// moreFolders is the agent's capability to let a session work in additional folders.
const moreFolders = "sessionCapabilities.additionalDirectories"

type way struct{ name, needs string }

// waysIn has the ways to open, list or leave a session, each with the capability that it needs.
var waysIn = []way{
	{"load", "loadSession"}, {"resume", "sessionCapabilities.resume"}, {"fork", "sessionCapabilities.fork"},
	{"list", "sessionCapabilities.list"}, {"close", "sessionCapabilities.close"}, {"delete", "sessionCapabilities.delete"},
}

// String describes the agent in one paragraph of English text.
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
	if len(a.Commands) > 0 {
		add("It carries out by itself: /%s.", strings.Join(a.Commands, ", /"))
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

// listed joins names; it returns "none" for an empty list.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
