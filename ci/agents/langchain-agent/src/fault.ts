// One mistake at a time, switched on by FAULT=NAME; faults.yaml says what each
// of them does.
const names = new Set([
	"load-detaches-running-turn",
	"cancel-after-permission-not-heard",
	"refused-second-prompt-detaches-cancel",
	"calls-cancelled-at-permission-stay-pending",
	"rejected-call-runs-beside-allowed-one",
	"mode-fixed-by-first-reply",
	"unknown-mode-taken",
	"whitespace-tokens-lost",
	"model-400-told-as-login-needed",
	"cancelled-terminal-killed-not-released",
	"editor-file-error-fails-turn",
	"refusal-drops-earlier-turns",
	"stop-reason-of-first-reply",
	"resume-replays-history",
	"replay-tells-first-block-only",
	"mcp-env-dropped",
	"search-looks-in-process-folder",
	"writes-through-editor-that-only-reads",
	"process-stays-at-end-of-input-with-mcp",
	"dollar-signs-in-edit-expanded",
	"cancel-lost-while-servers-start",
	"cancel-without-turn-hits-next-prompt",
	"cancelled-calls-told-as-cancelled",
	"edit-diff-path-as-model-gave",
	"plan-forgets-steps-of-earlier-replies",
	"repeated-token-dropped",
	"link-title-hides-uri",
	"replay-stops-at-unfinished-call",
	"resume-of-open-session-keeps-old-place",
	"close-lets-running-call-finish",
	"mcp-servers-shared-by-name",
	"mode-of-other-session-counts",
	"provider-code-as-error-code",
	"refusal-after-call-stays-in-context",
	"reject-always-kept-as-allow",
	"stop-kills-shell-not-what-it-started",
	"signalled-command-told-as-completed",
	"cancelled-calls-answered-once",
	"edit-starts-from-disk",
	"mcp-tool-taken-for-reading",
])

const on = process.env["FAULT"] ?? ""
if (on && !names.has(on)) {
	console.error(`langchain-agent: there is no fault ${on}`)
	process.exit(2)
}

/** Reports whether the fault is on. */
export const fault = (name: string): boolean => on === name
