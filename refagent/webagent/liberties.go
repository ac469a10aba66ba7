package webagent

// Liberty is one thing that another correct agent does differently.
type Liberty struct {
	Name    string // kebab case, unique
	Summary string // what the agent does, in plain words
	// Allows are the ids of the requirements that leave it open, or the nearest ones.
	Allows string
	set    func(h *Habits)
}

// Liberties lists all liberties.
func Liberties() []Liberty {
	return []Liberty{
		{"no-version", "declares no version, as agents of 0.x", "AGUI-RUN-012", func(h *Habits) { h.Version = "none" }},
		{"version-1.0", "declares version 1.0", "AGUI-RUN-012", func(h *Habits) { h.Version = "1.0" }},
		{"no-steps", "tells of no steps", "AGUI-STEP-001", func(h *Habits) { h.NoSteps = true }},
		{"no-usage", "tells of no tokens", "AGUI-RUN-013", func(h *Habits) { h.NoUsage = true }},
		{"no-outcome", "leaves the outcome of a success out", "AGUI-RUN-010", func(h *Habits) { h.NoOutcome = true }},
		{"no-pending-list", "does not name pending calls", "AGUI-TOOL-007", func(h *Habits) { h.NoPending = true }},
		{"no-tool-results", "sends no results of its tools", "AGUI-TOOL-008", func(h *Habits) { h.NoResults = true }},
		{"state-at-the-end", "sends the state at the end alone", "AGUI-ST-001", func(h *Habits) { h.State = "final" }},
		{"state-always", "sends the state at both ends", "AGUI-ST-001", func(h *Habits) { h.State = "all" }},
		{"no-state", "sends no state", "AGUI-ST-001", func(h *Habits) { h.State = "none" }},
		{"no-messages", "sends no snapshot of the messages", "AGUI-MSG-001", func(h *Habits) { h.NoMessages = true }},
		{"chunks", "streams in chunks, each with all ids", "AGUI-CHK-002", func(h *Habits) { h.Chunks = true }},
		{"bare-chunks", "streams in chunks, and later ones have no id", "AGUI-CHK-004",
			func(h *Habits) { h.Chunks, h.Bare = true, true }},
		{"whole-texts", "sends each text in one piece", "AGUI-TXT-008", func(h *Habits) { h.Whole = true }},
		{"text-around-calls", "ends a message after the calls of its reply", "AGUI-TOOL-011",
			func(h *Habits) { h.Late = true }},
		{"calls-without-parent", "gives calls no message", "AGUI-TOOL-002", func(h *Habits) { h.Own = true }},
		{"comments", "sends comments between events", "AGUI-HTTP-015", func(h *Habits) { h.Comments = true }},
		{"other-fields", "sends fields beside data", "AGUI-HTTP-002", func(h *Habits) { h.Fields = true }},
		{"empty-lines", "sends more empty lines than one", "AGUI-HTTP-002", func(h *Habits) { h.Spaced = true }},
		{"split-data", "sends the data of an event in two lines", "AGUI-HTTP-002", func(h *Habits) { h.Split = true }},
		{"timestamps", "puts the time on each event", "AGUI-SHP-001", func(h *Habits) { h.Times = true }},
		{"raw-events", "attaches what the provider sent", "AGUI-RAW-001", func(h *Habits) { h.Raw = true }},
		{"custom-events", "sends events of its own", "AGUI-RAW-001", func(h *Habits) { h.Customs = true }},
		{"activities", "shows its steps as activities", "AGUI-ACT-001", func(h *Habits) { h.Activities = true }},
		{"echoes-input", "echoes the input", "AGUI-RUN-006", func(h *Habits) { h.Echo = true }},
		{"no-role", "leaves the role of the assistant out", "AGUI-TXT-005", func(h *Habits) { h.NoRole = true }},
		{"results-as-parts", "gives results as parts", "AGUI-TOOL-005", func(h *Habits) { h.Parts = true }},
		{"queues-runs", "keeps a second run of a thread until the first is over", "AGUI-RUN-016",
			func(h *Habits) { h.Queues = true }},
		{"thinking-events", "spells reasoning as agents of 0.x", "AGUI-UNK-001",
			func(h *Habits) { h.Version, h.Retired = "none", true }},
		{"needs-lists", "refuses an input without tools or context, as agents of 0.x may", "AGUI-HTTP-009",
			func(h *Habits) { h.Version, h.Lists = "none", true }},
		{"empty-messages", "opens a message for each reply", "AGUI-TXT-001", func(h *Habits) { h.Silent = true }},
		{"reopens-messages", "closes and opens messages again", "AGUI-TXT-003", func(h *Habits) { h.Reopens = true }},
		{"unannounced-subagent", "tags what it says with a subagent that it does not announce", "AGUI-SUB-001",
			func(h *Habits) { h.Subagent = true }},
		{"announced-subagent", "announces an idle subagent for each reply", "AGUI-SUB-001",
			func(h *Habits) { h.Announces = true }},
		{"tags-once", "tags the first event of a subagent's message alone, and opens it again without", "AGUI-SUB-002",
			func(h *Habits) { h.Subagent, h.Brief, h.Reopens = true, true, true }},
		{"no-error-code", "gives errors no code", "AGUI-RUN-008", func(h *Habits) { h.Code = "-" }},
		{"own-error-code", "has codes of its own", "AGUI-RUN-008", func(h *Habits) { h.Code = "agent_failed" }},
		{"terse-errors", "says nothing of the cause of an error", "AGUI-RUN-014", func(h *Habits) { h.Terse = true }},
		{"charset", "names a character set in its content type", "AGUI-HTTP-001", func(h *Habits) { h.Charset = true }},
		{"text-alone", "has server-sent events alone, whatever the Accept header admits", "AGUI-HTTP-011",
			func(h *Habits) { h.TextAlone = true }},
		{"results-as-they-come", "gives the results of calls that run side by side as they come", "AGUI-TOOL-011",
			func(h *Habits) { h.Backwards = true }},
	}
}
