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

// KnownFailure is a failure of an agent that a run expects, with the reason for it.
type KnownFailure struct {
	// Scenario is a glob over scenario ids: * matches any text without a slash, ** any text with or without slashes.
	Scenario string `yaml:"scenario"`
	// ID is the id of the check (the part after the #), of the rule or of the cause.
	ID string
	// Cause is true if ID is the id of a cause, as reports show it: a rule and its point, or a requirement. A check
	// that fails for one of the rule's requirements has the same cause.
	Cause   bool      `yaml:"-"`
	Reason  string    `yaml:"reason"`
	Link    string    `yaml:"link"`    // where to read more; may be empty
	Expires time.Time `yaml:"expires"` // the entry no longer counts from this day on; zero: never expires
	// Flaky is true if the failure does not happen in every run. A flaky entry is never reported as stale.
	Flaky bool `yaml:"flaky"`
	// Requirements are the requirements of a flaky rule that the agent breaks; empty means all requirements of the
	// rule. Other entries do not set the field, because each finding names its requirements.
	Requirements []string `yaml:"requirements"`
	// Protocols are the protocols for which the entry applies, as the names that --protocol accepts; empty means the
	// profile's protocol.
	Protocols []string `yaml:"protocols"`
	File      string
	Line      int
}

// Covers reports whether the entry expects a failure in this scenario that has one of the names. A name may be a full
// check id, with the scenario before the #.
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

// ParseKnownFailures reads a list of known failures in YAML. name is the file name that messages show. Every error is
// a *Mistake.
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
		// Rule ids are in capitals, check slugs are not. A wrong guess is harmless, because ParseKnownFailures treats
		// both keys alike.
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

// Profile describes how to run one agent. Name is required, and so is Command or URL. Every other field may be left
// at its zero value.
//
// Words of Command, values of Env, Dir and the files of Home may contain variables: $LLM (the model server's base
// URL, without a version path), $KEY (a key for it), $WORK, $HOME and $TMP (the run's directories), $AGENT_DIR (the
// folder the agent is installed in), $SELF (this program) and $CWD (the user's current directory). $$ stands for a
// dollar sign.
type Profile struct {
	Name    string   `yaml:"name"`    // name in goldens and reports: letters, digits, dots, dashes
	Title   string   `yaml:"title"`   // name shown to people; Name if empty
	Command []string `yaml:"command"` // the program and its arguments
	// Protocol is the name of the protocol that the agent speaks; "" means the default protocol.
	Protocol string `yaml:"protocol"`
	// URL is the address of a running agent, or of the server that Command starts. URL, Command and Env may use
	// $PORT, a free port. URL may also use $PRINTED, which stands for the first URL that the server prints.
	URL string `yaml:"url"`
	// Listen contains extra arguments for Command. With them, the agent serves ACP over HTTP or WebSocket and prints
	// its URL. They are used in runs over such a connection.
	Listen []string `yaml:"listen"`
	// Headers are sent with each request to an agent over HTTP. Their values may
	// also name variables of this program's environment.
	Headers map[string]string `yaml:"headers"`
	// Dir is the agent's working directory: $WORK if empty. A relative path starts at the folder of the profile's
	// file.
	Dir     string            `yaml:"dir"`
	Install Install           `yaml:"install"`
	Env     map[string]string `yaml:"env"`
	Home    map[string]string `yaml:"home"` // files below HOME: slash-separated path to content
	// Setup is a command that runs once before the first agent; see Prepare.
	Setup []string `yaml:"setup"`
	// AgentInfo lists the names by which the agent identifies itself in its initialize response.
	AgentInfo []string `yaml:"agent-info"`
	// NoCaches hides the host's caches of package managers and toolchains from the agent; see Launch.
	NoCaches bool
	Model    Model `yaml:"model"`
	// Auth is the id of the login method that an editor uses before the first session of a connection; "" if no login
	// is needed.
	Auth string `yaml:"auth"`
	// Providers is true if the editor sends the model server's address to the agent in a providers/set request.
	Providers bool `yaml:"providers"`
	// Tools maps the neutral tools of scenarios to the agent's tools. If nil, the model server learns the agent's
	// tools from the agent's first request.
	Tools map[string]Tool `yaml:"tools"`
	// Lanes selects the agent's model requests that do not belong to the conversation, in the form of `lanes` in a
	// model script. nil means that every request belongs to it.
	Lanes         *yamlfile.Node `yaml:"lanes"`
	Normalize     Normalize      `yaml:"normalize"`
	Timeouts      Timeouts       `yaml:"timeouts"`
	Policy        Policy         `yaml:"policy"`
	KnownFailures []KnownFailure
	// Own is the environment of the agent in an editor's settings, unchanged.
	Own map[string]string
	// OwnMode and OwnModel are the mode and the model that an editor's settings
	// choose for a new session; "" leaves the choice to the agent.
	OwnMode, OwnModel string
	// Source says where the profile comes from: the path of its file or of an editor's settings, "shipped" or
	// "command line".
	Source string

	// literal is true if a user typed Command. Unknown variables in Command then stay as they are, because a shell
	// may expand them.
	literal   bool
	dressed   bool      // the profile has the settings of another profile
	base      string    // folder that a relative Dir and relative programs start at
	setupBase string    // like base, but for Setup that comes from another profile
	prepared  *prepared // result of the set-up step; nil: no step was run
}

// Policy holds the agent's promises for cases that the protocol leaves open.
type Policy struct {
	// ConcurrentPrompts is how the agent treats a prompt in a busy session: one
	// of Busy, or "" for no promise.
	ConcurrentPrompts string `yaml:"concurrent-prompts"`
	// Asks lists the neutral tools for which the agent always asks the user's permission.
	Asks []string `yaml:"asks"`
	// StopsTakenBack is true if the agent stops its work on a request as soon as the editor cancels that request.
	StopsTakenBack bool `yaml:"stops-taken-back"`
}

// Busy lists how an agent may treat a prompt in a session whose turn is still running: reject the prompt, queue it,
// or replace the running turn by it.
var Busy = []string{"reject", "queue", "replace"}

// Install says how to install the agent. Its readers are users who lack the agent, and ci/agents.
type Install struct {
	NPM  string `yaml:"npm"`  // package and version, such as "@google/gemini-cli@0.61.0"
	Node int    `yaml:"node"` // lowest major version of Node that the agent runs on; 0: any
	Note string `yaml:"note"` // further instructions
}

// Model describes how the agent talks to its model.
type Model struct {
	// Wire is the format of the agent's model requests: openai-chat, openai-responses, anthropic or gemini. If it is
	// "", the model server learns the format from the first request.
	Wire string `yaml:"wire"`
	// Strict makes the fake model reject requests that the real API would reject. nil means true.
	Strict *bool `yaml:"strict"`
}

// Tool is the agent's tool that corresponds to a neutral tool. Strings in Args may refer to arguments of the neutral
// call: $path, $content and so on, or ${content|prefix:+} with one of fakellm.Transforms. If Args is nil, the neutral
// arguments are passed unchanged.
type Tool struct {
	Name string         `yaml:"name"`
	Args map[string]any `yaml:"args"`
	// Cannot lists the abilities (see NeutralTool.Can) that the agent's tool lacks.
	Cannot []string `yaml:"cannot"`
}

// Normalize lists the parts of this agent's messages that differ from run to run, so that comparisons can hide them.
type Normalize struct {
	Replace []Replacement `yaml:"replace"`
	// Unordered lists updates whose position in the stream is random. Each entry is an update kind, a method or a
	// pattern of either.
	Unordered []string `yaml:"unordered"`
	// Omit lists updates that some runs receive before the last event a scenario waits for, and others do not. Each
	// entry is an update kind, a method or a pattern of either.
	Omit []string `yaml:"omit"`
	// Values lists members of JSON objects whose value is random.
	Values []string `yaml:"values"`
	// Without lists members of JSON objects that are present only in some runs.
	Without []string `yaml:"without"`
	// MergeCalls merges all updates of a tool call into one, because the agent splits them at random.
	MergeCalls bool `yaml:"merge-tool-calls"`
}

// Replacement replaces text that matches Pattern by With. As in package regexp, $1 in With stands for the first
// group.
type Replacement struct {
	Pattern *regexp.Regexp `yaml:"pattern"`
	With    string         `yaml:"with"`
}

// Timeouts overrides a run's timeouts for this agent; 0 keeps the run's default.
type Timeouts struct {
	Start    time.Duration `yaml:"start"`    // until the initialize response
	Step     time.Duration `yaml:"step"`     // for one line of a script
	Scenario time.Duration `yaml:"scenario"` // for a whole scenario
	Setup    time.Duration `yaml:"setup"`    // for the set-up step
}

// Shown returns the name to show to people: Title, or Name if Title is empty.
func (p *Profile) Shown() string { return cmp.Or(p.Title, p.Name) }

// Remote reports whether the agent is already running at URL, so that no Command starts it.
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

// Lacks returns the reason why this agent cannot run a scenario that needs a neutral tool, or "" if it can. need is
// the tool's name, optionally followed by a colon and an ability. If the agent's tools are not known yet, Lacks
// returns "".
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

// WithCommand returns the profile with another command, which a user typed after `--agent NAME --`. The command
// starts in the user's current directory.
func (p *Profile) WithCommand(argv []string) *Profile {
	q := *p
	q.Command = slices.Clone(argv)
	q.Dir = "$CWD"
	q.literal = true
	return &q
}

// Over returns the profile with a network connection instead of pipes. way is "http" or "ws". Over returns nil if the
// profile has no Listen.
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

// Provided returns the profile without the variables for the model server's address. The agent gets that address from
// the editor instead.
func (p *Profile) Provided() *Profile {
	q := *p
	q.Env, q.Providers = nil, true
	return &q
}

// WithEnv returns the profile with the variables of env added. They replace variables of the same name.
func (p *Profile) WithEnv(env map[string]string) *Profile {
	q := *p
	q.Env = map[string]string{}
	maps.Copy(q.Env, p.Env)
	maps.Copy(q.Env, env)
	return &q
}
