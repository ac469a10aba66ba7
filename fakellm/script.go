package fakellm

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"
)

// Script contains the model's replies. ParseScript and NewScript create it. It does not change afterwards, so many
// servers may share it.
type Script struct {
	// Name is the file name as the caller gave it. Messages show it.
	Name string
	// Turns contains the replies to each prompt, in the order of the prompts.
	Turns []Turn
	// Lanes answers the requests that are not part of the conversation.
	Lanes []Lane
	// Models lists the model names that exist; empty means that every name exists.
	Models []string
	// APIKey is the only key that the server accepts; "" accepts any well-formed key.
	APIKey string
	// Lenient makes the server answer conversations that the real API would
	// refuse.
	Lenient bool
	// Delay slows down every reply that sets no delay.
	Delay Delay

	gates []string
}

// Gates returns the names of all gates of the script, sorted.
func (s *Script) Gates() []string { return append([]string(nil), s.gates...) }

// Calls yields a text for each tool call of the script, with the call's line in the script.
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

// Turn contains the model's replies after one prompt, one Reply for each request.
type Turn struct {
	// Prompt is a text by which the server recognises this turn's prompt. It is needed only if no caller registers
	// prompts.
	Prompt  string
	Replies []Reply
}

// Reply is the model's reply to one request. A reply with Alternatives has no Steps. The server uses the first
// alternative whose guard holds.
type Reply struct {
	When         Guard
	Steps        []Step
	Alternatives []Reply
	// Must causes a finding if no request gets this reply.
	Must bool
	// Line is the line where the reply begins in the script, from 1.
	Line int
}

// Lane recognises and answers requests that are not part of the conversation.
type Lane struct {
	Name string
	When Guard
	// Main is true if matching requests belong to the conversation after all, so that no later lane answers them.
	Main  bool
	Reply Reply
}

// Names of the built-in lanes. A script or a profile can define a lane with the same name. That lane replaces the
// built-in reply or, if Main is set, turns the built-in lane off.
const (
	LaneMain    = "main"
	LaneSchema  = "schema"   // the request has a JSON schema: smallest JSON that fits
	LaneNoTools = "no-tools" // the request offers no tools: short text
	LaneAfter   = "after"    // the turn has no further reply: short text
)

var builtIn = []string{LaneSchema, LaneNoTools, LaneAfter}

// Guard is a set of conditions that must all be true. The empty guard is always true.
type Guard []Condition

// Condition compares one field of a request with a pattern or a value.
type Condition struct {
	// Field is one of user, prompt, result, system, model, wire, path, tool, body, tools, schema and stream.
	Field string
	// Pattern must match the field. If it is nil, the field must equal Value.
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
	StepWhole // the reply is sent in one event, if the format has such an event
)

// Step is one step of a reply. The fields that apply depend on Kind.
type Step struct {
	Kind StepKind
	// Chunks are the pieces of a text, of a thinking block or of raw tool arguments.
	Chunks []string
	// Late makes a text arrive only at the end: no chunk contains it, but the last event that can contain it does.
	Late bool
	// Part makes a text begin a new part of the message, in formats whose messages have parts. White space alone is a
	// part only in OpenAI's Responses format; the other formats refuse it in the next request.
	Part bool
	// Tool is the name of a neutral tool or of one of the agent's tools.
	Tool string
	// Args contains the tool's arguments, in the order of the script.
	Args object
	// Raw is true if Chunks are the tool's arguments exactly as they are sent.
	Raw bool
	// Pieces is the number of pieces into which the arguments are split; 0 means 1.
	Pieces int
	// Gate is the name of a gate. In a tool step, the gate is inside the arguments, after GateAt characters (0: in
	// the middle).
	Gate   string
	GateAt int
	// CallID is the call's id in Chat Completions, without the prefix "call_". Scripts set it to imitate servers of
	// that format that restart their ids in each reply. "" creates a unique id. Other wire formats ignore CallID.
	CallID string
	Pause  Span
	Delay  Delay
	Usage  Usage
	// NoUsage leaves the usage out where the format allows that, in Chat Completions and Gemini. In the other formats all
	// counts are 0.
	NoUsage bool
	Stop    Stop
	Fail    *Fail
	Line    int
}

// Stop is the reason why the model stopped.
type Stop string

// The reasons to stop. StopAuto means StopTool after a tool call, and StopEnd otherwise.
const (
	StopAuto    Stop = ""
	StopEnd     Stop = "end"
	StopLength  Stop = "length"
	StopRefusal Stop = "refusal"
	StopTool    Stop = "tool"
)

// Usage contains token counts. The default is 10 input and 5 output tokens.
type Usage struct {
	Input     int `yaml:"input"`
	Output    int `yaml:"output"`
	Cached    int `yaml:"cached"`
	Reasoning int `yaml:"reasoning"`
}

// Span is a duration or a range. If it is a range, each use takes a value from the range that depends only on the
// seed and the place in the script.
type Span struct{ Min, Max time.Duration }

// Delay slows a reply down: TTFT before the first byte, PerChunk before each
// further chunk.
type Delay struct {
	TTFT     Span `yaml:"ttft"`
	PerChunk Span `yaml:"per_chunk"`
}

// Fail is a deliberate fault of the server. It is a step of a reply and takes effect when the server reaches that
// step.
type Fail struct {
	// Status answers with this HTTP error status. Once the answer has begun, the server sends the API's error event
	// instead.
	Status        int
	Type, Message string
	// RetryAfter is sent as the Retry-After header (seconds, rounded up) if HasRetryAfter is set.
	RetryAfter    time.Duration
	HasRetryAfter bool
	Headers       [][2]string
	// Times is the number of requests with the same key that get the fault; 0 means all requests.
	Times int
	// AfterChunks is the number of chunks that are sent before the fault.
	AfterChunks int
	// Disconnect cuts the connection: "now" at once, "mid-chunk" inside the next event.
	Disconnect string
	// Hang stops the answer without ending it, until the client disconnects.
	Hang bool
	// Malformed sends one invalid event: text that is not JSON ("sse") or JSON of an unknown shape ("shape"). If the
	// answer is not streamed, its body is invalid in the same way.
	Malformed string
	// Truncate ends the body too early but without an error: "body" inside the next event, "end" before the events
	// that end a reply.
	Truncate string
	// ContentType replaces the Content-Type header. Body replaces the body.
	ContentType string
	Body        *string
	// Comment is sent as a comment line of the stream, like the comments with which servers keep a connection open.
	Comment string
	// Slow sends Slow.Bytes bytes, then waits for Slow.Every, and repeats this.
	Slow *Drip
	Line int
}

// Drip is a rate: Bytes bytes per Every.
type Drip struct {
	Bytes int
	Every time.Duration
}
