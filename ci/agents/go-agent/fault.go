package main

import (
	"fmt"
	"os"
)

// faults names the mistakes that FAULT=NAME switches on, one at a time; faults.yaml says what each of them does.
var faults = map[string]bool{
	"cancel-stops-every-session":                      true,
	"second-terminal-of-turn-not-killed-by-cancel":    true,
	"cancelled-command-leaves-children":               true,
	"prompt-with-meta-cancelled-after-earlier-cancel": true,
	"never-not-remembered":                            true,
	"always-for-one-program-covers-all":               true,
	"no-and-never-share-option-id":                    true,
	"unflushed-text-before-call-lost":                 true,
	"commands-sent-before-session-response":           true,
	"reset-beside-other-blocks-ignored":               true,
	"tool-call-ids-restart-every-turn":                true,
	"failed-terminal-not-released":                    true,
	"child-runs-in-first-sessions-folder":             true,
	"image-only-prompt-refused":                       true,
	"token-limit-told-as-end-turn":                    true,
	"empty-list-is-null":                              true,
	"close-does-not-stop-turn":                        true,
	"close-leaves-mcp-servers":                        true,
	"broken-stream-ends-as-end-turn":                  true,
	"running-command-survives-end-of-input":           true,
	"cancel-while-mcp-connects-not-heard":             true,
	"cancel-before-output-ends-as-end-turn":           true,
	"cancel-kills-released-terminals":                 true,
	"never-kept-as-always":                            true,
	"thoughts-shown-as-message":                       true,
	"long-text-split-inside-character":                true,
	"listed-title-differs-from-told":                  true,
	"nonzero-exit-in-terminal-completed":              true,
	"terminal-shown-only-after-release":               true,
	"only-last-image-reaches-model":                   true,
	"failed-turn-forgets-conversation":                true,
	"list-filter-lost-on-later-pages":                 true,
	"list-page-repeats-last-session":                  true,
	"close-answers-before-turn-ends":                  true,
	"sessions-of-same-second-share-id":                true,
	"terminal-output-asked-after-release":             true,
	"terminal-used-when-only-files-offered":           true,
	"command-eats-editors-messages":                   true,
	"mcp-servers-left-at-end-of-input":                true,
	"mcp-args-dropped":                                true,
	"results-of-cancelled-calls-not-in-history":       true,
	"cancel-while-model-works-is-error":               true,
	"held-text-sent-after-cancelled-response":         true,
	"permission-names-last-call-of-answer":            true,
	"always-covers-programs-that-begin-alike":         true,
	"failed-question-counts-as-yes":                   true,
	"pieces-of-only-blanks-lost":                      true,
	"call-without-output-never-completed":             true,
	"call-without-arguments-dropped":                  true,
	"request-cap-told-as-end-turn":                    true,
	"list-filter-takes-folders-that-begin-alike":      true,
	"list-ordered-by-second-only":                     true,
	"close-while-mcp-connects-leaves-servers":         true,
	"always-and-never-shared-by-sessions-of-folder":   true,
	"mcp-server-of-same-name-shared-by-sessions":      true,
	"mcp-env-loses-to-agents-own":                     true,
	"broken-mcp-server-hides-later-ones":              true,
	"command-ended-by-signal-in-terminal-completed":   true,
	"refused-prompt-leaves-session-busy":              true,
	"usage-limit-told-as-login-needed":                true,
	"second-cancel-of-turn-hits-next-prompt":          true,
	"cancel-at-question-ends-as-end-turn":             true,
	"refused-second-prompt-takes-cancel-of-first":     true,
	"cancel-does-not-reach-mcp-call":                  true,
	"prompt-ended-by-close-gets-not-found":            true,
	"declined-turn-told-as-refusal":                   true,
	"yes-covers-same-program-in-answer":               true,
	"question-carries-session-of-newest-turn":         true,
	"unoffered-option-counts-as-yes":                  true,
	"cancel-kills-newest-terminal-of-all-sessions":    true,
	"older-turns-fall-out-of-history":                 true,
	"repeated-piece-lost":                             true,
	"text-before-call-told-twice":                     true,
	"overload-in-stream-told-as-text":                 true,
	"editor-line-over-64-kib-lost":                    true,
	"links-of-same-name-are-one":                      true,
	"annotated-text-without-audience-dropped":         true,
	"last-page-has-empty-cursor":                      true,
	"mcp-servers-of-folder-offered-to-all":            true,
	"command-with-much-output-hangs":                  true,
}

var on = os.Getenv("FAULT")

func init() {
	if on != "" && !faults[on] {
		fmt.Fprintf(os.Stderr, "gofer: there is no fault %s\n", on)
		os.Exit(2)
	}
}

// fault reports whether the mistake is switched on.
func fault(name string) bool { return on == name }
