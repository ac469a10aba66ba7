package webagent

// Habits are the ways in which one correct agent differs from another. The zero
// value is the reference agent. With any of the fields set, alone or together,
// the agent stays correct.
type Habits struct {
	// Version is the declared protocol version; "none" declares none.
	Version string
	// NoSteps, NoUsage, NoOutcome, NoPending and NoResults leave out optional
	// parts.
	NoSteps, NoUsage, NoOutcome, NoPending, NoResults bool
	// State says when snapshots of the state are sent: initial (the default), final, all
	// or none. NoMessages sends no snapshot of the messages.
	State      string
	NoMessages bool
	// Chunks streams items in chunks, Bare omits members from later chunks that
	// the first chunk has.
	Chunks, Bare bool
	// Whole sends each text in one piece. Late ends a message after the calls of
	// its reply. Own gives calls no parent message.
	Whole, Late, Own bool
	// Comments sends comments between events, Fields other fields next to data,
	// Spaced an additional blank line, Split the data in two lines.
	Comments, Fields, Spaced, Split bool
	// Times adds the time to each event, Raw the model provider's piece. Customs
	// sends custom events. Activities shows steps as activities. Echo repeats the
	// input on RUN_STARTED.
	Times, Raw, Customs, Activities, Echo bool
	// NoRole leaves out the role of the assistant. Parts sends results as parts.
	NoRole, Parts bool
	// Backwards carries out the calls of a reply from the last to the first, as
	// can happen when they run side by side.
	Backwards bool
	// Queues makes a second run of a thread wait until the first is over.
	Queues bool
	// Retired sends the reasoning events of older agents.
	Retired bool
	// Lists refuses an input without tools or context, which agents of 0.x may
	// require.
	Lists bool
	// Silent opens a message for each reply, even one without text.
	Silent bool
	// Reopens closes each message after its first piece, and opens it again.
	Reopens bool
	// Subagent does the work of each reply as a subagent. Announces announces it.
	// Brief puts its name only on the first event of a message.
	Subagent, Announces, Brief bool
	// Code is the code of errors, "-" for none. Terse omits their cause.
	Code  string
	Terse bool
	// Charset adds a parameter to the content type.
	Charset bool
	// TextAlone always sends server-sent events, whatever the client accepts.
	TextAlone bool
}
