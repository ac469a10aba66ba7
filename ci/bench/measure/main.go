//go:build linux

// Command measure takes the figures of ci/bench/run that a shell cannot: it is
// the agent that sends a burst, the clients that take it, a client that does
// nothing but one turn, and a stopwatch.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
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

// numbers reads the first n words as numbers.
func numbers(args []string, n int) (list []int, err error) {
	if len(args) < n {
		return nil, fmt.Errorf("%d numbers are needed, got %q", n, strings.Join(args, " "))
	}
	for _, word := range args[:n] {
		number, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		list = append(list, number)
	}
	return list, nil
}

// piped starts a program whose input and output are ours.
func piped(argv []string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser, err error) {
	cmd = exec.Command(argv[0], argv[1:]...)
	if in, err = cmd.StdinPipe(); err == nil {
		out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	return cmd, in, out, err
}

// logged makes a transcript on the disk, as a run has one. done removes it.
func logged(of transcript.Classifier) (log *transcript.Transcript, dir string, done func(), err error) {
	if dir, err = os.MkdirTemp("", "measure-"); err != nil {
		return nil, "", nil, err
	}
	log, err = transcript.New(transcript.Header{},
		transcript.Options{Classifier: of, Path: filepath.Join(dir, "transcript.jsonl")})
	return log, dir, func() { os.RemoveAll(dir) }, err
}

// broken is the first thing that the rules found, as an error.
func broken(found []rules.Finding) error {
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", found[0].Rule, found[0].Message)
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
