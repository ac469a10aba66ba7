//go:build linux

// Command measure takes the figures of ci/bench/run that a shell cannot: it is
// the agent that sends a burst, the clients that take it, a client that does
// nothing but one turn, and a stopwatch.
package main

import (
	"fmt"
	"os"
	"strings"
)

var commands = map[string]func(args []string) error{
	"agent":      agent,
	"burst":      burst,
	"endpoint":   endpointServer,
	"web-burst":  webBurst,
	"turn":       turn,
	"time":       stopwatch,
	"transcript": transcriptFile,
}

const usage = `usage:
  measure burst UPDATES ROUNDS [SDK-CLIENT.mjs]  clients that take a burst, a line each
  measure web-burst EVENTS ROUNDS CLIENT.mjs     the same of an endpoint of AG-UI
  measure endpoint EVENTS                        an endpoint that answers with a burst
  measure agent UPDATES [RATE]                   an agent that sends a burst in each turn
  measure turn -- AGENT…                         one turn, by a client that does nothing else
  measure time RUNS -- COMMAND…                  median seconds and peak MiB of a command
  measure transcript ENTRIES FILE                a long, ordinary conversation`

func main() {
	if len(os.Args) > 1 {
		if run, ok := commands[os.Args[1]]; ok {
			if err := run(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "measure %s: %v\n", os.Args[1], err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, usage)
	os.Exit(2)
}

// command is what follows --.
func command(args []string) ([]string, error) {
	for i, a := range args {
		if a == "--" && i+1 < len(args) {
			return args[i+1:], nil
		}
	}
	return nil, fmt.Errorf("a command has to follow --, got %q", strings.Join(args, " "))
}
