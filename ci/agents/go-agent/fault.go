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
