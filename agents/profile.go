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

// KnownFailure is a failure of an agent that a run expects, and the reason.
type KnownFailure struct {
	// Scenario is a glob over scenario ids: * matches any text without a slash,
	// ** any text.
	Scenario string `yaml:"scenario"`
	// ID names the check (the part after the # of its id), the rule or the cause.
	ID string
	// Cause says that ID is a cause, as reports name it: a rule and its point, or
	// a requirement. A check that fails for one of the rule's requirements shows
	// the same defect.
	Cause   bool      `yaml:"-"`
	Reason  string    `yaml:"reason"`
	Link    string    `yaml:"link"`    // where more is said; may be empty
	Expires time.Time `yaml:"expires"` // the day from which the entry no longer counts; zero: never
	// Flaky says that the failure does not always happen. Such an entry is never
	// stale.
	Flaky bool `yaml:"flaky"`
	// Requirements are the requirements of a flaky rule that the agent breaks;
	// empty means all of the rule's. Other entries need none, because each
	// finding names its own.
	Requirements []string `yaml:"requirements"`
	// Protocols are the protocols for which the entry counts, by their --protocol
	// names; empty means the profile's protocol.
	Protocols []string `yaml:"protocols"`
	File      string
	Line      int
}

// Covers reports whether the entry expects a failure with one of these names in
// this scenario. A name may be a check's whole id, with the scenario before the
// #.
func (k KnownFailure) Covers(scenario string, names ...string) bool {
	return k.Selects(scenario) && slices.ContainsFunc(names, func(name string) bool {
		return name[strings.Index(name, "#")+1:] == k.ID
	})
}

// everywhere is the glob of all scenarios.
const everywhere = "**"

// Selects reports whether the entry applies to this scenario.
func (k KnownFailure) Selects(scenario string) bool {
	return glob.Path(k.Scenario, scenario)
}

// Expired reports whether the entry no longer counts.
func (k KnownFailure) Expired(now time.Time) bool {
	return !k.Expires.IsZero() && !now.Before(k.Expires)
}

// ParseKnownFailures reads a list of known failures in YAML. name is the file
// name in messages; every error is a *Mistake.
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
			item.Fail("", "requirements is only for a flaky rule: it says which of the rule's requirements are broken")
		}
		out = append(out, k)
	}
	return out, nil
}

// FormatKnownFailures returns the YAML that ParseKnownFailures reads.
func FormatKnownFailures(list []KnownFailure) []byte {
	var b strings.Builder
	for _, k := range list {
		// Rule ids are in capitals, check slugs are not. A wrong guess does no
		// harm, because the reader treats both keys alike.
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

// Profile says how to run one agent. It needs Name and one of Command and URL;
// the zero value of every other field is useful.
//
// Words of Command, values of Env, Dir and the files of Home may name variables:
// $LLM (the model server's base URL, without a version path), $KEY (a key for
// it), $WORK, $HOME and $TMP (the run's directories), $AGENT_DIR (the folder the
// agent is installed in), $SELF (this program) and $CWD (the user's current
// directory). $$ is a dollar.
type Profile struct {
	Name    string   `yaml:"name"`    // its name in goldens and reports: letters, digits, dots, dashes
	Title   string   `yaml:"title"`   // for people; Name if empty
	Command []string `yaml:"command"` // the program and its arguments
	// Protocol is the name of the protocol that the agent speaks; "" is the first.
	Protocol string `yaml:"protocol"`
	// URL is the address of a running agent, or of the server that Command
	// starts. URL, Command and Env may use $PORT, a free port. URL may also use
	// $PRINTED, the first URL that the server prints.
	URL string `yaml:"url"`
	// Listen are further arguments that make Command serve ACP over HTTP or
	// WebSocket and print its URL, for runs over such a connection.
	Listen []string `yaml:"listen"`
	// Headers are sent with each request to an agent over HTTP. Their values may
	// also name variables of this program's environment.
	Headers map[string]string `yaml:"headers"`
	// Dir is the agent's working directory: $WORK if empty. A relative one starts
	// at the folder of the profile's file.
	Dir     string            `yaml:"dir"`
	Install Install           `yaml:"install"`
	Env     map[string]string `yaml:"env"`
	Home    map[string]string `yaml:"home"` // files below HOME: name, with slashes, to content
	// Setup is a command that runs once before the first agent; see Prepare.
	Setup []string `yaml:"setup"`
	// AgentInfo are the names that the agent gives itself in its answer to
	// initialize.
	AgentInfo []string `yaml:"agent-info"`
	// NoCaches keeps the caches of package managers and toolchains away from
	// the agent; see Launch.
	NoCaches bool
	Model    Model `yaml:"model"`
	// Auth is the id of the method by which an editor logs in before the first
	// session of a connection; "" if no login is needed.
	Auth string `yaml:"auth"`
	// Providers says that the editor tells the agent the model server's address
	// by providers/set.
	Providers bool `yaml:"providers"`
	// Tools maps the neutral tools of scenarios to the agent's own. If nil, the
	// model server learns them from the agent's first request.
	Tools map[string]Tool `yaml:"tools"`
	// Lanes are the agent's requests that are not part of the conversation, in
	// the form of `lanes` in a model script; nil: none.
	Lanes         *yamlfile.Node `yaml:"lanes"`
	Normalize     Normalize      `yaml:"normalize"`
	Timeouts      Timeouts       `yaml:"timeouts"`
	Policy        Policy         `yaml:"policy"`
	KnownFailures []KnownFailure
	// Own is the environment that an editor's settings give to the agent,
	// unchanged.
	Own map[string]string
	// OwnMode and OwnModel are the mode and the model that an editor's settings
	// choose for a new session; "" leaves the choice to the agent.
	OwnMode, OwnModel string
	// Source is the file the profile was read from, "shipped", "command line"
	// or the settings file that names the agent.
	Source string

	// literal says that a user typed Command. Unknown variables in it stay, since
	// the command may be a shell's.
	literal   bool
	dressed   bool      // it has the settings of another profile
	base      string    // folder a relative Dir and relative programs are taken from
	setupBase string    // the same for Setup, if it came from another profile
	prepared  *prepared // nil: no set-up step was run
}

// Policy holds the agent's promises for cases that the protocol leaves open.
type Policy struct {
	// ConcurrentPrompts is how the agent treats a prompt in a busy session: one
	// of Busy, or "" for no promise.
	ConcurrentPrompts string `yaml:"concurrent-prompts"`
	// Asks are the neutral tools that the agent uses only after asking the user.
	Asks []string `yaml:"asks"`
	// StopsTakenBack says that the agent stops the work for a request when the
	// editor cancels that request.
	StopsTakenBack bool `yaml:"stops-taken-back"`
}

// Busy are the ways to treat a prompt in a busy session: refuse it, let it wait,
// or let it end the running turn.
var Busy = []string{"reject", "queue", "replace"}

// Install says how to install the agent: for users who lack it, and for
// ci/agents.
type Install struct {
	NPM  string `yaml:"npm"`  // package and version, such as "@google/gemini-cli@0.61.0"
	Node int    `yaml:"node"` // least major version of Node it runs on; 0: any
	Note string `yaml:"note"` // what else is needed
}

// Model says how the agent talks to its model.
type Model struct {
	// Wire is the format of its requests: openai-chat, openai-responses,
	// anthropic or gemini. If "", the model server learns it from the first
	// request.
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
	// Cannot lists the abilities of NeutralTool.Can that the agent's tool lacks.
	Cannot []string `yaml:"cannot"`
}

// Normalize hides parts of this agent's messages that differ from run to run.
type Normalize struct {
	Replace []Replacement `yaml:"replace"`
	// Unordered are update kinds, methods or patterns of them whose place in the
	// stream is random.
	Unordered []string `yaml:"unordered"`
	// Omit are update kinds, methods or patterns of them that come only in some
	// runs before the last event a scenario waits for.
	Omit []string `yaml:"omit"`
	// Values are members of JSON objects whose value is random.
	Values []string `yaml:"values"`
	// Without are members of JSON objects that are there only in some runs.
	Without []string `yaml:"without"`
	// MergeCalls merges all updates of a tool call, because their division is
	// random.
	MergeCalls bool `yaml:"merge-tool-calls"`
}

// Replacement replaces text that matches Pattern by With, which may use $1 as in
// package regexp.
type Replacement struct {
	Pattern *regexp.Regexp `yaml:"pattern"`
	With    string         `yaml:"with"`
}

// Timeouts are the agent's own; 0 means the run's default.
type Timeouts struct {
	Start    time.Duration `yaml:"start"`    // until the answer to initialize
	Step     time.Duration `yaml:"step"`     // of one line of a script
	Scenario time.Duration `yaml:"scenario"` // of a whole scenario
	Setup    time.Duration `yaml:"setup"`    // of the set-up step
}

// Shown returns the name for people: the title, else the name.
func (p *Profile) Shown() string { return cmp.Or(p.Title, p.Name) }

// Remote reports whether the agent is already running at URL and not started by
// Command.
func (p *Profile) Remote() bool { return p.URL != "" && len(p.Command) == 0 }

// Binding returns how the agent is reached: "stdio", "http" or "ws".
func (p *Profile) Binding() string {
	switch {
	case p.URL == "":
		return "stdio"
	case strings.HasPrefix(p.URL, "ws"):
		return "ws"
	}
	return "http"
}

// Lacks returns why scenarios that need a neutral tool do not apply to this
// agent, "" if they do. need is the tool's name, optionally with a colon and an
// ability. If the agent's tools are not known yet, it may have any.
func (p *Profile) Lacks(need string) string {
	name, able, _ := strings.Cut(need, ":")
	t, ok := p.Tools[name]
	switch {
	case p.Tools == nil:
	case !ok:
		return fmt.Sprintf("%s has no tool for %s", p.Shown(), name)
	case slices.Contains(t.Cannot, able):
		return fmt.Sprintf("%s, the tool of %s for %s, cannot %s", t.Name, p.Shown(), name, abilities[name][able])
	}
	return ""
}

// WithCommand returns the profile with another command, which a user typed after
// `--agent NAME --`. The command starts in the user's directory.
func (p *Profile) WithCommand(argv []string) *Profile {
	q := *p
	q.Command = slices.Clone(argv)
	q.Dir = "$CWD"
	q.literal = true
	return &q
}

// Over returns the profile with a connection over http or ws instead of pipes,
// nil if the agent has no Listen.
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

// WithAuth returns the profile with another login method.
func (p *Profile) WithAuth(method string) *Profile {
	q := *p
	q.Auth = method
	return &q
}

// Provided returns the profile without the variables for the model's address,
// for an agent that gets this address from the editor.
func (p *Profile) Provided() *Profile {
	q := *p
	q.Env, q.Providers = nil, true
	return &q
}

// WithEnv returns the profile with more environment; the new values win.
func (p *Profile) WithEnv(env map[string]string) *Profile {
	q := *p
	q.Env = map[string]string{}
	maps.Copy(q.Env, p.Env)
	maps.Copy(q.Env, env)
	return &q
}
