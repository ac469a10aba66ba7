package fakellm

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"
)

// Script is what the model says. It comes from ParseScript and is not changed
// afterwards: many servers may use one.
type Script struct {
	// Name is the file's name as it was given, for messages.
	Name string
	// Turns are the replies to each prompt, in the order of the prompts.
	Turns []Turn
	// Lanes answer the requests that are not the conversation.
	Lanes []Lane
	// Models are the models that exist; empty means that every name does.
	Models []string
	// APIKey is the only key the server takes; "" takes any well-formed one.
	APIKey string
	// Lenient answers also conversations that the real API would refuse.
	Lenient bool
	// Delay slows every reply that has no delay of its own.
	Delay Delay

	gates []string
}

// Gates returns the names of all gates of the script, sorted.
func (s *Script) Gates() []string { return append([]string(nil), s.gates...) }

// Calls returns the tool calls of the script as texts, with their lines.
func (s *Script) Calls() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for _, t := range s.Turns {
			for _, r := range t.Replies {
				for _, alternative := range append(r.Alternatives, r) {
					for _, st := range alternative.Steps {
						text := strings.TrimSpace(st.Tool + " " + strings.Join(st.Chunks, ""))
						for _, m := range st.Args {
							text += fmt.Sprintf(" %s=%q", m.key, fmt.Sprint(m.value))
						}
						if st.Kind == StepTool && !yield(st.Line, text) {
							return
						}
					}
				}
			}
		}
	}
}

// Turn is what the model says after one prompt, one Reply a request.
type Turn struct {
	// Prompt is text that tells this turn's prompt from others. It is only
	// needed where nobody registers prompts, as in a server of its own.
	Prompt  string
	Replies []Reply
}

// Reply is what the model says to one request. A reply with Alternatives has
// no steps: the first alternative whose guard holds is used.
type Reply struct {
	When         Guard
	Steps        []Step
	Alternatives []Reply
	// Must makes it a finding when nobody asked for this reply.
	Must bool
	// Line is where the reply begins in the script, from 1.
	Line int
}

// Lane recognises requests that are not the conversation, and answers them.
type Lane struct {
	Name string
	When Guard
	// Main says that what matches is the conversation after all, so that no
	// later lane takes it.
	Main  bool
	Reply Reply
}

// Names of the lanes that exist without a script. A script or a profile that
// defines a lane of the same name replaces its reply, or turns it off with
// Main.
const (
	LaneMain    = "main"
	LaneSchema  = "schema"   // wants JSON of a schema: gets the smallest that fits
	LaneNoTools = "no-tools" // offers no tools: gets a short text
	LaneAfter   = "after"    // a step beyond the turn's replies
)

var builtIn = []string{LaneSchema, LaneNoTools, LaneAfter}

// Guard is a set of conditions that must all hold. The empty guard holds.
type Guard []Condition

// Condition compares one field of a request.
type Condition struct {
	// Field is one of user, prompt, result, system, model, wire, path, tool,
	// body, tools, schema, stream.
	Field string
	// Pattern must be found in the field; nil compares with Value.
	Pattern *regexp.Regexp
	Value   string
	// Negate turns the condition round (the operator !~).
	Negate bool
}

// StepKind says what a step does.
type StepKind uint8

// The kinds of steps.
const (
	StepText StepKind = iota
	StepThinking
	StepRefusal
	StepTool
	StepGate
	StepPause
	StepDelay
	StepUsage
	StepStop
	StepFail
	StepWhole // the reply comes in one event of the stream, where the format knows such
)

// Step is one line of a reply.
type Step struct {
	Kind StepKind
	// Chunks are the pieces of a text, of thinking or of raw tool arguments.
	Chunks []string
	// Late says that a text comes in no chunk, but whole in the last event that can hold it.
	Late bool
	// Part says that a text begins a part of the message of its own, in formats whose messages have parts.
	Part bool
	// Tool is the name of a neutral tool, or of the agent's own.
	Tool string
	// Args are the arguments of the tool, in the order of the script.
	Args object
	// Raw says that Chunks are the arguments exactly as they are sent.
	Raw bool
	// Pieces is into how many pieces the arguments are cut; 0 means 1.
	Pieces int
	// Gate is the name of a gate; of a tool step: of the gate inside its
	// arguments, after GateAt characters (0: in the middle).
	Gate   string
	GateAt int
	// CallID is the id of the call in Chat Completions, behind "call_": servers of many hands speak it, and
	// some count anew in each reply. "" is one that no other call has, as all have in the other formats.
	CallID string
	Pause  Span
	Delay  Delay
	Usage  Usage
	Stop   Stop
	Fail   *Fail
	Line   int
}

// Stop is why the model stopped.
type Stop string

// The reasons to stop. StopAuto is tool after a tool call, else end.
const (
	StopAuto    Stop = ""
	StopEnd     Stop = "end"
	StopLength  Stop = "length"
	StopRefusal Stop = "refusal"
	StopTool    Stop = "tool"
)

// Usage counts tokens. The default is 10 in and 5 out.
type Usage struct {
	Input     int `yaml:"input"`
	Output    int `yaml:"output"`
	Cached    int `yaml:"cached"`
	Reasoning int `yaml:"reasoning"`
}

// Span is a duration, or a range of which each use takes one value that only
// depends on the seed and the place.
type Span struct{ Min, Max time.Duration }

// Delay slows a reply down: TTFT before the first byte, PerChunk before each
// further chunk.
type Delay struct {
	TTFT     Span `yaml:"ttft"`
	PerChunk Span `yaml:"per_chunk"`
}

// Fail is a deliberate fault of the server, at its place among the steps.
type Fail struct {
	// Status answers with an HTTP error; once something has been sent, with
	// the error event the API has for that.
	Status        int
	Type, Message string
	// RetryAfter is sent as header (seconds, rounded up) if HasRetryAfter.
	RetryAfter    time.Duration
	HasRetryAfter bool
	Headers       [][2]string
	// Times is for how many requests of the same key it happens; 0: all.
	Times int
	// AfterChunks lets that many chunks pass first.
	AfterChunks int
	// Disconnect cuts the connection: "now", or "mid-chunk" inside the next
	// event.
	Disconnect string
	// Hang never goes on; it ends when the client hangs up.
	Hang bool
	// Malformed sends one event that is not JSON ("sse"), or is JSON of no
	// known shape ("shape"); without streaming the body is that.
	Malformed string
	// Truncate ends the body cleanly but too early: "body" inside the next
	// event, "end" before the events that end a reply.
	Truncate string
	// ContentType replaces the header, Body the body.
	ContentType string
	Body        *string
	// Comment is sent as a comment line of the stream, as servers do to keep a connection open.
	Comment string
	// Slow sends Slow.Bytes bytes, waits Slow.Every, and so on.
	Slow *Drip
	Line int
}

// Drip is a rate.
type Drip struct {
	Bytes int
	Every time.Duration
}
