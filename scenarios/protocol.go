package scenarios

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Protocol describes a protocol to the engine: how to speak it, how to judge a run, and how to write a run as text.
// The engine itself knows no messages. Classifier, Rules, Canonical, Client, Prompts and TurnEnd are required.
type Protocol struct {
	// Dialect is the protocol's scenario language.
	Dialect
	// Version is the protocol's name in the headers of transcripts.
	Version string
	// Reach returns the transport to an agent that is a server at a URL, with headers for each request. The server is
	// already running, or the profile's command starts it. If Reach is nil, or the agent has no URL, frames go through
	// the pipes of the agent's process. Served means that every agent of the protocol is a server.
	Reach  func(url string, headers map[string]string) transport.Reaching
	Served bool
	// Classifier parses frames, Rules judges them, and Canonical formats them as text.
	Classifier transcript.Classifier
	Rules      *rules.Set
	Canonical  golden.Renderer
	// ClientRemembers means that the client stores the conversation and sends all of it with each prompt. A model's API
	// may then refuse a conversation without a fault of the agent.
	ClientRemembers bool
	// CapabilityHelp is a text for the help. It explains the CAPABILITY in "needs agent:CAPABILITY".
	CapabilityHelp string
	// Client returns the client of one run.
	Client func() Client

	// Prompts reports whether an entry is a prompt. A prompt starts a turn.
	Prompts func(e transcript.Entry) bool
	// TurnEnd returns the stop reason if an entry ends a turn, or "error" if the turn ends with an error. ok is false if
	// the entry ends no turn.
	TurnEnd func(e transcript.Entry) (reason string, ok bool)
	// Said returns the text by which an entry extends the agent's message.
	Said func(e transcript.Entry) string
	// Lookup returns the values within an entry in which a condition's path is looked up, the nearest first, and the
	// path within them. The engine looks in the whole message last.
	Lookup func(e transcript.Entry, path string) ([]wire.Value, string)
	// Barred returns the reason why the agent's refusal is excused: the script omits something that must come first,
	// such as a login. It returns "" if there is no excuse.
	Barred func(t *transcript.Transcript) string
	// Stories handles paths whose value also depends on earlier entries, such as the text of a message in pieces or the
	// title of a tool call. It returns two functions. observe is called with each entry, with the transcript's lock
	// held. told returns the value of such a path; ok is false for any other path.
	Stories func() (observe func(e transcript.Entry), told func(e transcript.Entry, path string) (text string, ok bool))
	// Stands returns the paths to try for the value of a named entry when the script gives no path.
	Stands func(e transcript.Entry) []string
	// SessionPath is the path of the session id in the response that opens the session.
	SessionPath string
	// OpensSession reports whether a method opens a session or refers to one.
	OpensSession func(method string) bool
	// Variables maps NAME to the function that computes $NAME(ARG) in scripts.
	Variables map[string]func(t *transcript.Transcript, arg string) (string, error)
	// Inner reports whether requests of this method belong to a turn, so that they cannot come after its end.
	Inner func(method string) bool
	// Brief describes a response in a few words, for reasons in results.
	Brief func(e transcript.Entry) string
	// EndRule is the id of the rule that judges a turn which should have ended with EndReason but did not. The rule may
	// excuse another stop reason if the end of the turn crossed a cancel.
	EndRule, EndReason string
	// ToolNews returns what an entry reports about tool calls of its session.
	ToolNews func(t *transcript.Transcript, e transcript.Entry) ToolNews
	// Offers returns the name of another protocol that the agent claimed to support in this run, or "". If Offers is
	// nil, there is no other protocol.
	Offers func(t *transcript.Transcript) string
	// ExitRequirements lists the requirements that an agent violates if it does not exit when its input is closed.
	ExitRequirements []string
	// SentAs returns a second name for a message of the editor. The pattern "sent" also accepts this name, because
	// scenarios of another protocol use it. If SentAs is nil, messages have only one name.
	SentAs func(e transcript.Entry) string
	// Further sends one more prompt in an open, idle session, and announces the prompt to the model server. ok is false
	// if there is no such session. If Further is nil, scenarios have no further turn.
	Further func(b *Branch, p fakellm.Prompt) (prompt transcript.Entry, ok bool)
	// Start reports whether the response to a request of this method may take as long as starting the agent.
	Start func(method string) bool
}

// ToolNews is information about a tool call from one entry.
type ToolNews struct {
	Kind ToolNewsKind
	Call string // id of the call, for ToolFailed and ToolShown
	Says string // the agent's own words, for ToolFailed
}

// ToolNewsKind is the kind of a ToolNews.
type ToolNewsKind uint8

// The kinds of ToolNews.
const (
	NoToolNews ToolNewsKind = iota
	ToolDenied              // the editor refused the call, sent an error, or cancelled the turn
	ToolFailed              // the agent reports that a call failed
	ToolShown               // the agent shows a call or its progress to the editor
)

// Types of the scenario language, with the engine's branches.
type (
	Step     = language.Step[*Branch]
	Line     = language.Line[*Branch]
	Command  = language.Command[*Branch]
	Scenario = language.Scenario[*Branch]

	Dialect = language.Dialect[*Branch]

	played = language.Played[*Branch]
)

//go:embed suites/*/*.txtar
var archive embed.FS

// Complete adds the parts that all protocols share to c: common commands and patterns, and defaults for nil
// functions. If c has no suites, it adds those of the default protocol. It must be called before the protocol is
// used.
func Complete(c *Protocol) *Protocol {
	c.Any, c.AnyKinds, c.Method = c.builtin(), c.anyKinds(), *c.methodKind()
	c.Remote, c.Phase, c.OfProcess = c.Served, phase, ofProcess
	c.Requirement = func(id string) bool {
		_, ok := c.Rules.Requirement(id)
		return ok
	}
	if c.Suites == nil {
		c.Suites, _ = fs.Sub(archive, "suites") // the name is valid
		c.SuitesAt = "scenarios/suites"
	}
	fill(&c.Said, func(transcript.Entry) string { return "" })
	fill(&c.Lookup, func(_ transcript.Entry, path string) ([]wire.Value, string) { return nil, path })
	fill(&c.Barred, func(*transcript.Transcript) string { return "" })
	fill(&c.Offers, func(*transcript.Transcript) string { return "" })
	fill(&c.Stories, func() (func(transcript.Entry), func(transcript.Entry, string) (string, bool)) {
		return func(transcript.Entry) {}, func(transcript.Entry, string) (string, bool) { return "", false }
	})
	fill(&c.Stands, func(transcript.Entry) []string { return nil })
	fill(&c.Brief, c.Canonical.Line)
	fill(&c.ToolNews, func(_ *transcript.Transcript, e transcript.Entry) ToolNews {
		return ToolNews{Kind: ToolShown, Call: fmt.Sprint(e.Seq)} // by default, failed calls are not recognized
	})
	for _, is := range []*func(string) bool{&c.OpensSession, &c.Inner, &c.Start} {
		fill(is, func(string) bool { return false })
	}
	return c
}

// fill sets *f to otherwise if *f is nil.
func fill[F any](f *F, otherwise F) {
	if reflect.ValueOf(*f).IsNil() {
		*f = otherwise
	}
}

// Client is the editor's side of the connections of one run. A protocol's commands get it from Branch.Client.
type Client interface {
	// Connect is called with an agent that has just started, and with the agent's environment. root is the run's
	// directory.
	Connect(a *transport.Agent, env []string, root string, isolated bool)
	// Disconnect is called after the agent has exited or was left running.
	Disconnect()
	// Greet performs the protocol's greeting, for example initialize, for the line l. l is nil if no line requested the
	// greeting.
	Greet(ctx context.Context, b *Branch, l *Line) error
	// Send writes a line unchanged.
	Send(raw []byte) (transcript.Entry, error)
	// Settle waits until the editor has done everything that the agent has requested.
	Settle(ctx context.Context)
	// Advertises reports whether the agent advertises a capability. known is false before the agent's response to the
	// greeting.
	Advertises(capability string) (has, known bool)
	// AgentInfo returns the agent's own name and version.
	AgentInfo() (name, version string)
	// Ports returns the ports of the servers that an isolated agent must reach, in addition to the model server's.
	Ports() ([]isolate.Port, error)
	// Masks maps texts that differ from run to run to the names that replace them in goldens.
	Masks() map[string]string
	// Close stops the servers for the agent.
	Close() error
}

// Witness is implemented by clients whose MCP servers report what the agent did with them.
type Witness interface {
	// Served returns reports of the servers since the last call. Each is the content of an entry of kind
	// transcript.Served.
	Served() []any
}

// builtin returns the commands that every protocol has.
func (p *Protocol) builtin() []*Command {
	return slices.Concat(conditionCommands(p), setupCommands(), actCommands(), transportCommands(), forwardCommands(),
		backCommands(), structureCommands())
}

// phase returns the step of a comment, which starts a new phase in the log and transcript.
func phase(text string) Step {
	return func(_ context.Context, b *Branch) error {
		b.run.phase("# " + text)
		return nil
	}
}

// Implied returns a line for a step that another line requires but the script may omit.
func Implied(text string) *Line { return language.Implied[*Branch](text) }
