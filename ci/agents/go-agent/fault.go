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
