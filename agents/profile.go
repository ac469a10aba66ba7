package agents

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

// KnownFailure is a failure of an agent that a run expects, and why.
type KnownFailure struct {
	// Scenario is a glob over scenario ids: * stands for any text without a
	// slash, ** for any text.
	Scenario string `yaml:"scenario"`
	// ID names the check (the part after the # of its id), the rule or the cause.
	ID string
	// Cause: ID is a cause, as reports name it: a rule and its point, or a requirement.
	// A check that misses for one of the rule's requirements tells the same defect.
	Cause   bool      `yaml:"-"`
	Reason  string    `yaml:"reason"`
	Link    string    `yaml:"link"`    // where more is said; may be empty
	Expires time.Time `yaml:"expires"` // the day from which the entry no longer counts; zero: never
	// Flaky: what the entry expects may also not happen. Such an entry is
	// never stale.
	Flaky bool `yaml:"flaky"`
	// Requirements are those that the agent breaks, where a flaky rule stands for
	// more; empty means all of the rule's. Of others each finding names its own.
	Requirements []string `yaml:"requirements"`
	// Protocols are those in which the entry counts, as --protocol has them; empty means
	// the one that the profile is for.
	Protocols []string `yaml:"protocols"`
	File      string
	Line      int
}

// Covers reports whether the entry expects what has these names to fail in this
// scenario. A name may be a check's whole id, with the scenario before the #.
func (k KnownFailure) Covers(scenario string, names ...string) bool {
	return k.Selects(scenario) && slices.ContainsFunc(names, func(name string) bool {
		return name[strings.Index(name, "#")+1:] == k.ID
	})
}

// everywhere is the glob of all scenarios.
const everywhere = "**"

// Selects reports whether the entry speaks of this scenario.
func (k KnownFailure) Selects(scenario string) bool {
	return glob.Path(k.Scenario, scenario)
}

// Expired reports whether the entry has ceased to count.
func (k KnownFailure) Expired(now time.Time) bool {
	return !k.Expires.IsZero() && !now.Before(k.Expires)
}

// ParseKnownFailures reads a list of known failures in YAML. name stands in
// messages; every error is a *Mistake.
func ParseKnownFailures(name string, src []byte) (out []KnownFailure, err error) {
	defer mistake.Catch(&err)
	root, err := yamlfile.Parse(name, src)
	if err != nil {
		return nil, err
	}
	for _, item := range root.List("the file of known failures") {
		var entry struct {
			KnownFailure
			Check string `yaml:"check"`
			Rule  string `yaml:"rule"`
			Cause string `yaml:"cause"`
		}
		item.Decode(&entry, "a known failure", "")
		k := entry.KnownFailure
		ids := slices.DeleteFunc([]string{entry.Check, entry.Rule, entry.Cause}, func(id string) bool { return id == "" })
		k.File, k.Line, k.ID, k.Cause = name, item.Line, strings.Join(ids, ""), entry.Cause != ""
		if k.Cause && k.Scenario == "" {
			k.Scenario = everywhere
		}
		switch {
		case k.Scenario == "":
			item.Fail("", "a known failure needs a scenario (an id or a glob such as load/*) unless it names a cause")
		case len(ids) != 1:
			item.Fail("", "a known failure needs either a check, a rule or a cause")
		case strings.TrimSpace(k.Reason) == "":
			item.Fail("", "a known failure needs a reason")
		case len(k.Requirements) > 0 && (!k.Flaky || k.ID != strings.ToUpper(k.ID)):
			item.Fail("", "requirements say which of a flaky rule's are broken; a check, and what always fails, names its own")
		}
		out = append(out, k)
	}
	return out, nil
}

// FormatKnownFailures writes a list as ParseKnownFailures reads it.
func FormatKnownFailures(list []KnownFailure) []byte {
	var b strings.Builder
	for _, k := range list {
		// A rule is in capitals, the slug of a check is not. The reader takes
		// both for either, so a wrong guess does no harm.
		kind := "check"
		if k.ID == strings.ToUpper(k.ID) {
			kind = "rule"
		}
		if k.Cause {
			kind = "cause"
		}
		if k.Cause && k.Scenario == everywhere {
			b.WriteString("- ")
		} else {
			b.WriteString("- scenario: " + strconv.Quote(k.Scenario) + "\n  ")
		}
		b.WriteString(kind + ": " + strconv.Quote(k.ID) + "\n")
		b.WriteString("  reason: " + strconv.Quote(k.Reason) + "\n")
		more := func(set bool, key, value string) {
			if set {
				b.WriteString("  " + key + ": " + value + "\n")
			}
		}
		more(k.Link != "", "link", strconv.Quote(k.Link))
		more(!k.Expires.IsZero(), "expires", k.Expires.Format(time.DateOnly))
		more(k.Flaky, "flaky", "true")
		more(len(k.Protocols) > 0, "protocols", "["+strings.Join(k.Protocols, ", ")+"]")
		more(len(k.Requirements) > 0, "requirements", "["+strings.Join(k.Requirements, ", ")+"]")
	}
	if b.Len() == 0 {
		return []byte("[]\n")
	}
	return []byte(b.String())
}

// Profile says how to run one agent. The zero value of every field but Name and
// one of Command and URL is useful.
//
// Words of Command, values of Env, Dir and the files of Home may name
// variables: $LLM (the model server's base URL, without a version path), $KEY (a
// key for it), $WORK, $HOME and $TMP (the run's directories), $AGENT_DIR (the folder the agent is
// installed in), $SELF (this program) and $CWD (where the user started it). $$
// is a dollar.
type Profile struct {
	Name    string   `yaml:"name"`    // what goldens and reports call it: letters, digits, dots, dashes
	Title   string   `yaml:"title"`   // for people; Name if empty
	Command []string `yaml:"command"` // the program and its arguments
	// Protocol is the name of the protocol that the agent speaks; "" is the first.
	Protocol string `yaml:"protocol"`
	// URL is where an agent is reached: one that is not started here, or the server
	// that Command starts. It may name $PORT, a port that is free, which Command and
	// Env may name too, and $PRINTED, the first URL that the server prints.
	URL string `yaml:"url"`
	// Listen are further arguments by which Command serves ACP over HTTP or WebSocket, where it
	// is chosen to, and prints its URL.
	Listen []string `yaml:"listen"`
	// Headers are sent with each request to an agent over HTTP. Their values may name variables of the
	// environment of this program too.
	Headers map[string]string `yaml:"headers"`
	// Dir is where the agent is started: $WORK if empty. A relative one is
	// taken from the folder of the profile's file.
	Dir     string            `yaml:"dir"`
	Install Install           `yaml:"install"`
	Env     map[string]string `yaml:"env"`
	Home    map[string]string `yaml:"home"` // files below HOME: name, with slashes, to content
	// Setup is a command that is run once before the first agent, as Prepare says.
	Setup []string `yaml:"setup"`
	// AgentInfo are the names by which the agent calls itself in its answer to
	// initialize.
	AgentInfo []string `yaml:"agent-info"`
	// NoCaches keeps the caches of package managers and toolchains away from
	// the agent; see Launch.
	NoCaches bool
	Model    Model `yaml:"model"`
	// Auth is the id of the method with which an editor logs in before it opens
	// the first session of a connection; "" if that is not needed.
	Auth string `yaml:"auth"`
	// Providers points the agent at the model server by providers/set.
	Providers bool `yaml:"providers"`
	// Tools maps the neutral tools of scenarios to the agent's own. Nil: the
	// model server learns them from the agent's first request.
	Tools map[string]Tool `yaml:"tools"`
	// Lanes are the agent's requests that are not the conversation, in the form
	// that a model script has under `lanes`; nil: none.
	Lanes         *yamlfile.Node `yaml:"lanes"`
	Normalize     Normalize      `yaml:"normalize"`
	Timeouts      Timeouts       `yaml:"timeouts"`
	Policy        Policy         `yaml:"policy"`
	KnownFailures []KnownFailure
	// Own is the environment that an editor's settings give to the agent, as it stands there.
	Own map[string]string
	// OwnMode and OwnModel are the mode and the model that those settings choose for a new session; "" leaves
	// the choice to the agent.
	OwnMode, OwnModel string
	// Source is the file the profile was read from, "shipped", "command line"
	// or the settings file that names the agent.
	Source string

	// literal: Command was typed by a user. Names it does not know stay as
	// they are, since the command may be a shell's.
	literal   bool
	dressed   bool      // it has what another profile knows
	base      string    // folder a relative Dir and relative programs are taken from
	setupBase string    // the same for Setup, if it came from another profile
	prepared  *prepared // nil: no set-up step was run
}

// Policy is what the agent promises where the protocol leaves a choice.
type Policy struct {
	// ConcurrentPrompts is what a prompt in a session that is busy meets: one of Busy, or
	// "", which promises nothing.
	ConcurrentPrompts string `yaml:"concurrent-prompts"`
	// Asks are the neutral tools before whose use the user is asked.
	Asks []string `yaml:"asks"`
	// StopsTakenBack: what it does for a request stops when that is taken back.
	StopsTakenBack bool `yaml:"stops-taken-back"`
}

// Busy are the ways to deal with a prompt in a session that is busy: it is refused, it
// waits, or it ends the turn that runs.
var Busy = []string{"reject", "queue", "replace"}

// Install says what to tell a user who lacks the agent, and what ci/agents
// installs.
type Install struct {
	NPM  string `yaml:"npm"`  // package and version, such as "@google/gemini-cli@0.61.0"
	Node int    `yaml:"node"` // least major version of Node it runs on; 0: any
	Note string `yaml:"note"` // what else is needed
}

// Model says how the agent talks to its model.
type Model struct {
	// Wire is the format of its requests: openai-chat, openai-responses,
	// anthropic or gemini. "" is learned from its first request.
	Wire string `yaml:"wire"`
	// Strict says whether the fake model refuses requests that the real API refuses. nil means true.
	Strict *bool `yaml:"strict"`
}

// Tool is an agent's own tool for a neutral one. Strings in Args may hold the
// neutral call's arguments: $path, $content and so on, or ${content|prefix:+} with
// one of fakellm.Transforms. Nil Args passes the neutral arguments on.
type Tool struct {
	Name string         `yaml:"name"`
	Args map[string]any `yaml:"args"`
	// Cannot lists what of NeutralTool.Can the agent's tool is not able to do.
	Cannot []string `yaml:"cannot"`
}

// Normalize hides what differs from run to run in this agent's messages.
type Normalize struct {
	Replace []Replacement `yaml:"replace"`
	// Unordered are update kinds, methods or patterns of them whose place in
	// the stream is left to chance.
	Unordered []string `yaml:"unordered"`
	// Omit are those of which chance decides whether they come at all before
	// the last thing a scenario waits for.
	Omit []string `yaml:"omit"`
	// Values are members of JSON objects whose value is left to chance.
	Values []string `yaml:"values"`
	// Without are members of which chance decides whether they are there.
	Without []string `yaml:"without"`
	// MergeCalls makes one of all updates of a tool call, because chance decides
	// what each of them tells.
	MergeCalls bool `yaml:"merge-tool-calls"`
}

// Replacement puts With, which may use $1 as in package regexp, in the place
// of what Pattern matches.
type Replacement struct {
	Pattern *regexp.Regexp `yaml:"pattern"`
	With    string         `yaml:"with"`
}

// Timeouts are an agent's own; 0 leaves the run's default.
type Timeouts struct {
	Start    time.Duration `yaml:"start"`    // until the answer to initialize
	Step     time.Duration `yaml:"step"`     // of one line of a script
	Scenario time.Duration `yaml:"scenario"` // of a whole scenario
	Setup    time.Duration `yaml:"setup"`    // of the set-up step
}

// Shown is the name for people.
func (p *Profile) Shown() string { return cmp.Or(p.Title, p.Name) }

// Remote reports whether the agent is reached and not started here.
func (p *Profile) Remote() bool { return p.URL != "" && len(p.Command) == 0 }

// Binding is how the agent is reached: "stdio", "http" or "ws".
func (p *Profile) Binding() string {
	switch {
	case p.URL == "":
		return "stdio"
	case strings.HasPrefix(p.URL, "ws"):
		return "ws"
	}
	return "http"
}

// Lacks says why scenarios that need a neutral tool do not apply to this agent; "" if
// they do. Behind the name may stand, after a colon, what the tool has to be able to do.
// An agent whose tools are still to be learned may have any.
func (p *Profile) Lacks(need string) string {
	name, able, _ := strings.Cut(need, ":")
	t, ok := p.Tools[name]
	switch {
	case p.Tools == nil:
	case !ok:
		return fmt.Sprintf("%s has no tool for %s", p.Shown(), name)
	case slices.Contains(t.Cannot, able):
		return fmt.Sprintf("%s, which %s has for %s, cannot %s", t.Name, p.Shown(), name, abilities[name][able])
	}
	return ""
}

// WithCommand is the profile with another command, as a user typed it: what
// `--agent NAME -- COMMAND` runs. It starts where the user is.
func (p *Profile) WithCommand(argv []string) *Profile {
	q := *p
	q.Command = slices.Clone(argv)
	q.Dir = "$CWD"
	q.literal = true
	return &q
}

// Over is the profile of an agent that is reached over http or ws instead of its pipes; nil if it does
// not listen.
func (p *Profile) Over(way string) *Profile {
	if len(p.Listen) == 0 {
		return nil
	}
	q := *p
	q.Command, q.URL = slices.Concat(p.Command, p.Listen), "$PRINTED"
	if way == "ws" {
		q.URL = "ws:$PRINTED"
	}
	return &q
}

// WithAuth is the profile with another method to log in.
func (p *Profile) WithAuth(method string) *Profile {
	q := *p
	q.Auth = method
	return &q
}

// Provided is the profile of an agent that an editor tells where its model is: no variable has to name that.
func (p *Profile) Provided() *Profile {
	q := *p
	q.Env, q.Providers = nil, true
	return &q
}

// WithEnv is the profile with more environment; the new values win.
func (p *Profile) WithEnv(env map[string]string) *Profile {
	q := *p
	q.Env = map[string]string{}
	maps.Copy(q.Env, p.Env)
	maps.Copy(q.Env, env)
	return &q
}
