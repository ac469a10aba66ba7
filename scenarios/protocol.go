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

// Protocol describes a protocol to the engine: how to speak it, and how to judge and write a run. The engine itself
// knows no message. Classifier, Rules, Canonical, Client, Prompts and TurnEnd are required.
type Protocol struct {
	// Dialect is the protocol's scenario language.
	Dialect
	// Version is the protocol's name in the headers of transcripts.
	Version string
	// Reach returns the transport to an agent that is a server at a URL, with headers for each request. The server
	// already runs, or the profile's command starts it. If Reach is nil, or the agent has no URL, frames use the pipes
	// of the agent's process. Served says that every agent of the protocol is a server.
	Reach  func(url string, headers map[string]string) transport.Reaching
	Served bool
	// Classifier parses frames, Rules judge them, Canonical writes them.
	Classifier transcript.Classifier
	Rules      *rules.Set
	Canonical  golden.Renderer
	// ClientRemembers says that the client keeps the conversation and sends it with each prompt. A model's API may then
	// refuse a conversation without any fault of the agent.
	ClientRemembers bool
	// CapabilityHelp explains, in help, the CAPABILITY of "needs agent:CAPABILITY".
	CapabilityHelp string
	// Client returns the engine's side of one run.
	Client func() Client

	// Prompts reports whether an entry is a prompt, which starts a turn.
	Prompts func(e transcript.Entry) bool
	// TurnEnd returns the stop reason if an entry ends a turn (ok is true), or "error" if the turn ends with an error.
	TurnEnd func(e transcript.Entry) (reason string, ok bool)
	// Said returns the text that an entry adds to the agent's message.
	Said func(e transcript.Entry) string
	// Lookup returns the values of an entry in which to look up a condition's path, the nearest first, and the path
	// within them. The engine searches the whole message last.
	Lookup func(e transcript.Entry, path string) ([]wire.Value, string)
	// Barred returns why the agent's refusal is excused: the script leaves out something that has to come first, such
	// as a login. It returns "" if nothing excuses it.
	Barred func(t *transcript.Transcript) string
	// Stories returns functions for paths whose value depends on earlier entries too, such as the text of a message in
	// pieces or the title of a tool call. observe is called with each entry under the transcript's lock. told returns
	// the value of such a path; ok is false for other paths.
	Stories func() (observe func(e transcript.Entry), told func(e transcript.Entry, path string) (text string, ok bool))
	// Stands returns the paths to try for the value of a named entry when the script gives no path.
	Stands func(e transcript.Entry) []string
	// SessionPath is the path of the session's id in the answer that opens it.
	SessionPath string
	// OpensSession reports whether requests of a method open a session or refer to one.
	OpensSession func(method string) bool
	// Variables are the functions behind $NAME(ARG) in scripts, by their names.
	Variables map[string]func(t *transcript.Transcript, arg string) (string, error)
	// Inner reports whether a request of this method belongs to a turn, so that it cannot come after the turn's end.
	Inner func(method string) bool
	// Brief describes a response in a few words, for reasons in results.
	Brief func(e transcript.Entry) string
	// EndRule is the rule that judges a turn which should have ended with EndReason but did not. The rule may excuse
	// another end if that end crossed a cancel.
	EndRule, EndReason string
	// ToolNews returns what a log entry reports about the tool calls of its session.
	ToolNews func(t *transcript.Transcript, e transcript.Entry) ToolNews
	// Offers returns the name of another protocol that the agent claimed in this run to speak, or "". A nil Offers
	// means that there is no other protocol.
	Offers func(t *transcript.Transcript) string
	// ExitRequirements are the requirements broken by an agent that does not exit when its input is closed.
	ExitRequirements []string
	// SentAs returns an alternative name of an editor message. The pattern sent also accepts that name, because
	// scenarios of another protocol use it. Nil means no alternative names.
	SentAs func(e transcript.Entry) string
	// Further sends one more prompt in an open, idle session, and tells the model server about the prompt; ok is false
	// if there is no such session. Nil means no further turn.
	Further func(b *Branch, p fakellm.Prompt) (prompt transcript.Entry, ok bool)
	// Start reports whether the answer to a request of this method may take as long as the agent's start.
	Start func(method string) bool
}

// ToolNews is what an entry reports about a tool call.
type ToolNews struct {
	Kind ToolNewsKind
	Call string // for ToolFailed and ToolShown: an id of the call
	Says string // for ToolFailed: the agent's own words
}

// ToolNewsKind is the kind of a ToolNews.
type ToolNewsKind uint8

// The kinds of ToolNews.
const (
	NoToolNews ToolNewsKind = iota
	ToolDenied              // the editor refused, answered with an error, or cancelled the turn
	ToolFailed              // the agent reports that a call failed
	ToolShown               // the agent shows a call or its progress
)

// The types of the language for the branches of a run.
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

// Complete adds to c the parts that all protocols share: common commands and patterns, defaults for nil functions, and
// the suites of the default protocol if c has none. It must be called before the protocol is used.
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
		return ToolNews{Kind: ToolShown, Call: fmt.Sprint(e.Seq)} // nothing tells of calls that fail
	})
	for _, is := range []*func(string) bool{&c.OpensSession, &c.Inner, &c.Start} {
		fill(is, func(string) bool { return false })
	}
	return c
}

// fill sets *f to the default otherwise if *f is nil.
func fill[F any](f *F, otherwise F) {
	if reflect.ValueOf(*f).IsNil() {
		*f = otherwise
	}
}

// Client is the protocol's side of the connections of one run. A protocol's commands get it from Branch.Client.
type Client interface {
	// Connect is called with an agent that was just started, and with its environment.
	Connect(a *transport.Agent, env []string, root string, isolated bool)
	// Disconnect is called after the agent has exited or was left.
	Disconnect()
	// Greet sends the protocol's greeting, for example initialize, on behalf of the line l; l is nil if no line asked
	// for the greeting.
	Greet(ctx context.Context, b *Branch, l *Line) error
	// Send writes a line as it is.
	Send(raw []byte) (transcript.Entry, error)
	// Settle waits until the editor has done everything that the agent asked for.
	Settle(ctx context.Context)
	// Advertises reports whether the agent advertises a capability; known is false until the agent has answered.
	Advertises(capability string) (has, known bool)
	// AgentInfo returns the agent's own name and version.
	AgentInfo() (name, version string)
	// Ports returns the ports of the servers that an isolated agent must reach, next to the model's.
	Ports() ([]isolate.Port, error)
	// Masks maps texts that differ from run to run to their replacements in goldens.
	Masks() map[string]string
	// Close ends the servers for the agent.
	Close() error
}

// Witness is implemented by clients that give the agent MCP servers which report their use.
type Witness interface {
	// Served returns what the servers have done since the last call, as contents of entries of kind
	// transcript.Served.
	Served() []any
}

// builtin returns the commands that the language has for every protocol.
func (p *Protocol) builtin() []*Command {
	return slices.Concat(conditionCommands(p), setupCommands(), actCommands(), transportCommands(), forwardCommands(),
		backCommands(), structureCommands())
}

// phase returns the step of a comment, which divides log and transcript into phases.
func phase(text string) Step {
	return func(_ context.Context, b *Branch) error {
		b.run.phase("# " + text)
		return nil
	}
}

// Implied returns a line for a step that an act needs and the script may leave out.
func Implied(text string) *Line { return language.Implied[*Branch](text) }
