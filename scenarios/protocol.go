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

// Protocol is what the engine needs to know of a protocol in order to speak it,
// to judge a run of it and to write it down. The engine itself knows no message.
// Classifier, Rules, Canonical, Client, Prompts and TurnEnd are
// needed.
type Protocol struct {
	// Dialect is its language.
	Dialect
	// Version is what the headers of transcripts say.
	Version string
	// Reach makes the transport to an agent that is a server at a URL, with headers for
	// each request; the profile's command starts it, or it runs already. Nil: the frames
	// of an agent go through the pipes of its process, as they do without a URL unless
	// Served says that each agent is a server.
	Reach  func(url string, headers map[string]string) transport.Reaching
	Served bool
	// Classifier takes frames apart, Rules judge them, Canonical writes them.
	Classifier transcript.Classifier
	Rules      *rules.Set
	Canonical  golden.Renderer
	// ClientRemembers says that the client keeps the conversation and sends it with each
	// prompt: what the API of a model refuses in it need not be the agent's.
	ClientRemembers bool
	// CapabilityHelp says what the CAPABILITY of needs agent: is.
	CapabilityHelp string
	// Client makes the engine's side of one run.
	Client func() Client

	// Prompts reports whether an entry asks the agent for a turn.
	Prompts func(e transcript.Entry) bool
	// TurnEnd returns the reason if an entry is the end of a turn; "error" if
	// that is an error.
	TurnEnd func(e transcript.Entry) (reason string, ok bool)
	// Said returns what an entry adds to the text of the agent.
	Said func(e transcript.Entry) string
	// Lookup returns the values of an entry in which the path of a condition is
	// looked up, the nearest first, and the path as they have it. The whole
	// message comes after them.
	Lookup func(e transcript.Entry, path string) ([]wire.Value, string)
	// Barred returns why the agent did what nobody can hold against it: something
	// has to come first that the script does not do, such as a login. "": nothing.
	Barred func(t *transcript.Transcript) string
	// Stories makes what a run needs for paths of an entry to which entries before
	// it belong: the text of a message that comes in pieces, what was said of a tool
	// call. observe sees each entry under the lock of the transcript; ok is false for
	// any other path.
	Stories func() (observe func(e transcript.Entry), told func(e transcript.Entry, path string) (text string, ok bool))
	// Stands are the paths of what an entry with a name stands for where no path
	// is given.
	Stands func(e transcript.Entry) []string
	// SessionPath is where the answer that opens a session has its id.
	SessionPath string
	// OpensSession reports whether requests of a method open sessions or are
	// about one.
	OpensSession func(method string) bool
	// Variables are $NAME(ARG) of a script by their names.
	Variables map[string]func(t *transcript.Transcript, arg string) (string, error)
	// Inner reports whether a request of this method belongs to a turn, so that
	// none can come after its end.
	Inner func(method string) bool
	// Brief returns what a response says, for reasons.
	Brief func(e transcript.Entry) string
	// EndRule is the rule that decides whether a turn that was to end with the
	// reason EndReason may have ended in another way, because the two crossed.
	EndRule, EndReason string
	// ToolNews returns what an entry of the log tells of the tool calls of its session.
	ToolNews func(t *transcript.Transcript, e transcript.Entry) ToolNews
	// Offers returns the name of another protocol in which the agent could be judged, as
	// it said in this run; "" if it said of none. Nil: there is no other.
	Offers func(t *transcript.Transcript) string
	// ExitRequirements are what an agent breaks that does not end with its
	// input.
	ExitRequirements []string
	// SentAs returns another name that scripts have for a message of the editor, for the
	// pattern sent, where scenarios of another protocol call it so. Nil: there is none.
	SentAs func(e transcript.Entry) string
	// Further prompts for one more turn, in a session that is open and idle, and tells
	// the model server of it; ok is false if there is none. Nil: no turn is added.
	Further func(b *Branch, p fakellm.Prompt) (prompt transcript.Entry, ok bool)
	// Start reports whether the answer to a request may take as long as a start.
	Start func(method string) bool
}

// ToolNews is what an entry tells of a tool call.
type ToolNews struct {
	Kind ToolNewsKind
	Call string // of ToolFailed and ToolShown: tells the call from others
	Says string // of ToolFailed: the agent's own words
}

// ToolNewsKind is the kind of a ToolNews.
type ToolNewsKind uint8

// What an entry may tell.
const (
	NoToolNews ToolNewsKind = iota
	ToolDenied              // the editor stands against it: it refused, gave an error, or stopped the turn
	ToolFailed              // the agent says that one failed
	ToolShown               // the agent shows one, or what it does
)

// What the language is made of, for the branches of a run.
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

// Complete adds to a protocol what any has, and fills in what it may leave out: the words and
// patterns of the language, and the suites of the default protocol. A protocol is complete
// before it is used.
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

// fill sets a function that a protocol leaves out.
func fill[F any](f *F, otherwise F) {
	if reflect.ValueOf(*f).IsNil() {
		*f = otherwise
	}
}

// Client is the engine's side of the connections of one run, as a protocol has
// them. Its commands find it through Branch.Client.
type Client interface {
	// Connect takes over an agent that was just started, with its environment.
	Connect(a *transport.Agent, env []string, root string, isolated bool)
	// Disconnect says that the agent is gone.
	Disconnect()
	// Greet does what opens a connection, on behalf of a line; nil if no line
	// asked for it.
	Greet(ctx context.Context, b *Branch, l *Line) error
	// Send writes a line as it is.
	Send(raw []byte) (transcript.Entry, error)
	// Settle waits until what the agent asked for before is done.
	Settle(ctx context.Context)
	// Advertises reports whether the agent has a capability; known is false
	// until it has said so.
	Advertises(capability string) (has, known bool)
	// AgentInfo returns what the agent calls itself.
	AgentInfo() (name, version string)
	// Ports are the servers that an isolated agent has to reach, beside the
	// model's.
	Ports() ([]isolate.Port, error)
	// Masks are texts that differ from run to run, with what goldens have for
	// them.
	Masks() map[string]string
	// Close ends what serves the agent.
	Close() error
}

// builtin are the commands that the language has for any protocol.
func (p *Protocol) builtin() []*Command {
	return slices.Concat(conditionCommands(p), setupCommands(), actCommands(), transportCommands(), forwardCommands(),
		backCommands(), structureCommands())
}

// phase returns the step of a comment, which structures the log and the transcript.
func phase(text string) Step {
	return func(_ context.Context, b *Branch) error {
		b.run.phase("# " + text)
		return nil
	}
}

// Implied returns a line that the script need not have, since an act needs it.
func Implied(text string) *Line { return language.Implied[*Branch](text) }
