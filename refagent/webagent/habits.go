package webagent

// Habits are the ways in which one correct agent differs from another. The zero value is
// this agent as it is; each field alone, and all of them together, leave it correct.
type Habits struct {
	// Version is the version that is declared, "none" declares none.
	Version string
	// NoSteps, NoUsage, NoOutcome, NoPending and NoResults leave out what is optional.
	NoSteps, NoUsage, NoOutcome, NoPending, NoResults bool
	// State says when snapshots of the state are sent: initial (the default), final, all
	// or none. NoMessages sends no snapshot of the messages.
	State      string
	NoMessages bool
	// Chunks streams items in chunks, Bare leaves out of them what the first has said.
	Chunks, Bare bool
	// Whole says each text in one piece; Late ends a message after the calls of its reply;
	// Own gives calls no parent message.
	Whole, Late, Own bool
	// Comments sends comments between events, Fields other fields beside data, Spaced a
	// blank line more, Split the data in two lines.
	Comments, Fields, Spaced, Split bool
	// Times puts the time on each event, Raw the provider's piece, Customs sends events of
	// its own, Activities shows steps as activities, Echo the input on RUN_STARTED.
	Times, Raw, Customs, Activities, Echo bool
	// NoRole leaves out the role of the assistant; Parts gives results as parts.
	NoRole, Parts bool
	// Backwards carries out the calls of a reply from the last to the first, as it may be when
	// they run side by side.
	Backwards bool
	// Queues keeps a second run of a thread until the first is over.
	Queues bool
	// Retired sends the events for reasoning that older agents have.
	Retired bool
	// Lists refuses an input without tools or context, which agents of 0.x may need.
	Lists bool
	// Silent opens a message for each reply, also one without text.
	Silent bool
	// Reopens closes each message after its first piece, and opens it again.
	Reopens bool
	// Subagent does the work of each reply as a subagent; Announces says so; Brief has its name
	// on the first event of a message alone.
	Subagent, Announces, Brief bool
	// Code is the code of errors, "-" none; Terse says nothing of the cause.
	Code  string
	Terse bool
	// Charset puts a parameter behind the content type.
	Charset bool
	// TextAlone has server-sent events alone, whatever is asked for.
	TextAlone bool
}
