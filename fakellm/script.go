package fakellm

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"
)

// Script holds the model's replies. ParseScript returns it; nothing changes it
// afterwards, so many servers may share it.
type Script struct {
	// Name is the file name as the caller gave it, for messages.
	Name string
	// Turns are the replies to each prompt, in the order of the prompts.
	Turns []Turn
	// Lanes answer requests that are not part of the conversation.
	Lanes []Lane
	// Models are the models that exist; empty means that every model exists.
	Models []string
	// APIKey is the only key the server accepts; "" accepts any well-formed key.
	APIKey string
	// Lenient makes the server answer conversations that the real API would
	// refuse.
	Lenient bool
	// Delay slows every reply that sets no delay.
	Delay Delay

	gates []string
}

// Gates returns the names of all gates of the script, sorted.
func (s *Script) Gates() []string { return append([]string(nil), s.gates...) }

// Calls yields the tool calls of the script as texts, with their lines.
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

// Turn holds the model's replies after one prompt, one Reply for each request.
type Turn struct {
	// Prompt is text that tells this turn's prompt from others. A server needs it
	// only if no caller registers prompts.
	Prompt  string
	Replies []Reply
}

// Reply is the model's reply to one request. A reply with Alternatives has no
// steps: the first alternative whose guard holds is used.
type Reply struct {
	When         Guard
	Steps        []Step
	Alternatives []Reply
	// Must makes it a finding if no request gets this reply.
	Must bool
	// Line is the line where the reply begins in the script, from 1.
	Line int
}

// Lane recognises requests that are not part of the conversation, and answers
// them.
type Lane struct {
	Name string
	When Guard
	// Main says that matching requests belong to the conversation after all, so
	// that no later lane takes them.
	Main  bool
	Reply Reply
}

// Names of the built-in lanes. A script or a profile that defines a lane of the
// same name replaces its reply, or turns the lane off with Main.
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
	// Pattern must match the field; nil compares with Value.
	Pattern *regexp.Regexp
	Value   string
	// Negate inverts the condition (the operator !~).
	Negate bool
}

// StepKind is the kind of a step.
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
	StepWhole // the reply comes in one event, if the format has such an event
)

// Step is one step of a reply.
type Step struct {
	Kind StepKind
	// Chunks are the pieces of a text, of thinking or of raw tool arguments.
	Chunks []string
	// Late says that a text comes in no chunk, but whole in the last event that can hold it.
	Late bool
	// Part says that a text begins a new part of the message, in formats whose
	// messages have parts.
	Part bool
	// Tool is the name of a neutral tool or of one of the agent's own tools.
	Tool string
	// Args are the arguments of the tool, in the order of the script.
	Args object
	// Raw says that Chunks are the arguments exactly as they are sent.
	Raw bool
	// Pieces is the number of pieces the arguments are split into; 0 means 1.
	Pieces int
	// Gate is the name of a gate. In a tool step, the gate lies inside the
	// arguments, after GateAt characters (0: in the middle).
	Gate   string
	GateAt int
	// CallID is the id of the call in Chat Completions, after "call_". Many kinds
	// of servers speak that format, and some restart their ids in each reply. ""
	// makes an id that no other call has, as in the other formats.
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

// The reasons to stop. StopAuto means tool after a tool call, else end.
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

// Span is a duration or a range. From a range, each use takes one value that
// depends only on the seed and the place.
type Span struct{ Min, Max time.Duration }

// Delay slows a reply down: TTFT before the first byte, PerChunk before each
// further chunk.
type Delay struct {
	TTFT     Span `yaml:"ttft"`
	PerChunk Span `yaml:"per_chunk"`
}

// Fail is a deliberate fault of the server. It is a step of a reply, and takes
// effect when the server reaches that step.
type Fail struct {
	// Status answers with an HTTP error or, once the answer has begun, with the
	// API's error event.
	Status        int
	Type, Message string
	// RetryAfter is sent as a header (seconds, rounded up) if HasRetryAfter is
	// set.
	RetryAfter    time.Duration
	HasRetryAfter bool
	Headers       [][2]string
	// Times is the number of requests of the same key that get the fault; 0: all.
	Times int
	// AfterChunks is the number of chunks that pass before the fault.
	AfterChunks int
	// Disconnect cuts the connection: "now", or "mid-chunk" inside the next
	// event.
	Disconnect string
	// Hang stops the answer without ending it, until the client hangs up.
	Hang bool
	// Malformed sends one event that is not JSON ("sse") or is JSON of an
	// unknown shape ("shape"). Without streaming, it sends such a body.
	Malformed string
	// Truncate ends the body cleanly but too early: "body" inside the next
	// event, "end" before the events that end a reply.
	Truncate string
	// ContentType replaces the header, Body the body.
	ContentType string
	Body        *string
	// Comment is sent as a comment line of the stream, like those that keep a
	// connection open.
	Comment string
	// Slow sends Slow.Bytes bytes, waits Slow.Every, and repeats.
	Slow *Drip
	Line int
}

// Drip is a rate: Bytes for each Every.
type Drip struct {
	Bytes int
	Every time.Duration
}
