package webagent

// Habits are options in which correct agents may differ. The zero value is the behaviour of the reference agent. Any
// combination of fields may be set; the agent stays correct.
type Habits struct {
	// Version is the protocol version that the agent declares. "" means the constant Version, and "none" declares no
	// version.
	Version string
	// NoSteps, NoUsage, NoOutcome, NoPending and NoResults omit optional events and members.
	NoSteps, NoUsage, NoOutcome, NoPending, NoResults bool
	// State determines when the agent sends snapshots of the state: initial (the default), final, all or none.
	// NoMessages sends no snapshot of the messages.
	State      string
	NoMessages bool
	// Chunks sends chunk events instead of start, content and end events. Bare omits members from a chunk that the
	// first chunk has.
	Chunks, Bare bool
	// Whole sends each text in one piece. Late ends a message only after the tool calls of its reply. Own omits the
	// parent message of tool calls.
	Whole, Late, Own bool
	// The next options vary the event stream. Comments adds comments between events. Fields adds other fields than
	// data. Spaced adds an empty line. Split divides the data into two lines.
	Comments, Fields, Spaced, Split bool
	// Times adds the time to each event. Raw adds the model provider's original data. Customs sends custom events.
	// Activities shows steps as activities. Echo repeats the input on RUN_STARTED.
	Times, Raw, Customs, Activities, Echo bool
	// NoRole omits the role assistant. Parts sends tool results as a list of parts.
	NoRole, Parts bool
	// Backwards runs the tool calls of a reply from the last to the first, which can also happen if an agent runs
	// them concurrently.
	Backwards bool
	// Queues makes a second run of a thread wait until the first has ended.
	Queues bool
	// Retired sends the reasoning events that agents before 1.0 sent.
	Retired bool
	// Lists rejects an input without tools or context, as agents of 0.x may.
	Lists bool
	// Silent starts a message for each reply, even if the reply has no text.
	Silent bool
	// Reopens ends a message after each piece and starts it again.
	Reopens bool
	// Subagent attributes the work of each reply to a subagent. Announces also announces the subagent. Brief sends
	// the subagent's name only in the first event of a message.
	Subagent, Announces, Brief bool
	// Code is the code of errors; "" means the default and "-" means no code. Terse omits the cause of errors.
	Code  string
	Terse bool
	// Charset adds the parameter charset to the content type.
	Charset bool
	// TextAlone always sends server-sent events, even if the client accepts the binary encoding.
	TextAlone bool
}
