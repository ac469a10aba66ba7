package liberties

import (
	"slices"
	"time"
)

// turnLiberties are about prompts, cancels, and the process.
func turnLiberties() []Liberty {
	return slices.Concat(
		of("busy",
			liberty("prompts-queued", "keeps a second prompt until the first has ended", "PROMPT-018",
				func(h *habits) { h.Queues = true }),
			liberty("busy-is-params", "refuses a second prompt with -32602", "PROMPT-018",
				func(h *habits) { h.BusyCode = -32602 }),
			liberty("busy-is-internal", "refuses a second prompt with -32603", "PROMPT-018",
				func(h *habits) { h.BusyCode = -32603 }),
		),
		of("open calls",
			liberty("cancel-leaves-calls", "says nothing of calls that a cancel ends", "CANCEL-012",
				func(h *habits) { h.LeavesCalls = true }),
			liberty("cancel-completes-calls", "calls those completed that a cancel ends", "CANCEL-012",
				func(h *habits) { h.CompletesCalls = true }),
		),
		of("",
			liberty("request-cancels-ignored", "ignores $/cancel_request", "RCANCEL-002",
				func(h *habits) { h.DeafToRequestCancels = true }),
			liberty("errors-end-turns", "makes an error of the editor the error of the prompt", "RPC-003",
				func(h *habits) { h.ErrorsEnd = true }).takes("error"),
			liberty("takes-up-late", "takes a prompt up after 30 ms, and knows nothing of one whose session was closed by then",
				"CLOSE-002", func(h *habits) { h.TakeUpDelay = 30 * time.Millisecond }),
			liberty("greets", "says that there is a newer version of it, at the beginning of a session's first turn",
				"PROMPT-015", func(h *habits) { h.Greeting = "A newer version of this agent is there.\n" }),
			liberty("notices", "says what will change, at the end of a session's first turn",
				"PROMPT-015", func(h *habits) { h.Notice = "**Note:** commands will be counted from next month on." }),
			liberty("noise", "writes a line to stderr for each message", "STDIO-005", func(h *habits) {
				h.Noise = "\x1b[33mWARN\x1b[0m received a message {\"jsonrpc\": \"2.0\"}"
			}),
		),
		of("pace",
			liberty("slow-start", "needs 12 s to start", "INIT-023",
				func(h *habits) { h.StartDelay = 12 * time.Second }).slow(),
			liberty("slow-cancel", "needs 3 s to end a cancelled turn", "CANCEL-003",
				func(h *habits) { h.CancelDelay = 3 * time.Second }).slow(),
			liberty("slow-end", "needs 3 s to end when its input has ended", "STDIO-007",
				func(h *habits) { h.EndDelay = 3 * time.Second }).slow(),
		),
	)
}
