package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/logs"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

func checkCommand(h *host) *cobra.Command {
	var o struct {
		judging
		output
		sabotage sabotageFlag
	}
	c := command("check", someArgs("a transcript"), func(c *cobra.Command, args []string) error {
		if err := cmp.Or(checkSeverity(o.severity), checkFormats("--report", o.reports), o.sabotage.find()); err != nil {
			return err
		}
		run := h.newRun(results.Agent{})
		run.Recorded, run.Strict = true, o.strict
		for _, name := range args {
			var res results.Result
			_, of, err := h.recordingIn(name, func(in io.Reader) (t *transcript.Transcript, of protocol, err error) {
				res, t, of, err = h.sabotaged(&o.sabotage, name, in, o.severity)
				return t, of, err
			})
			if err != nil && len(args) == 1 {
				return err
			} else if err != nil { // the remaining files are still judged
				run.Results = append(run.Results, results.Result{ID: name, File: name, Verdict: results.Error,
					Reason: err.Error()})
				continue
			}
			run.Protocol = of.Version
			run.Results = append(run.Results, res)
		}
		o.sabotage.conclude(&run)
		return h.conclude(&run, o.reports, o.verbose)
	})
	c.Flags().BoolVar(&o.strict, "strict", false, "exit with status 1 if something could not be judged")
	o.severities(c)
	o.sabotage.flag(c, "change the session before judging it, by a `NAME` from acp-test help sabotage or a FILE")
	o.shown(c, "a report", "show warnings, lints and notes too")
	return c
}

func diffCommand(h *host) *cobra.Command {
	return command("diff", exactArgs(2, "a transcript"), func(_ *cobra.Command, args []string) error {
		a, of, err := h.recordingOf(args[0])
		if err != nil {
			return err
		}
		b, _, err := h.recordingOf(args[1])
		if err != nil {
			return err
		}
		diff := golden.Diff(of.judge("").Canonical(a), of.judge("").Canonical(b))
		if diff == "" {
			return nil
		}
		if _, err := io.WriteString(h.out, diff); err != nil {
			return err
		}
		return status(1)
	})
}

// reading reads a recording and returns it with its protocol.
type reading func(io.Reader) (*transcript.Transcript, protocol, error)

// recordingOf reads a recording in any format, and returns it with its protocol. If a crash cut the recording off, it
// returns the part before the cut.
func (h *host) recordingOf(name string) (*transcript.Transcript, protocol, error) {
	return h.recordingIn(name, h.session)
}

// recordingIn opens a recording and parses it with read. It tells the user which parts could not be read.
func (h *host) recordingIn(name string, read reading) (*transcript.Transcript, protocol, error) {
	t, of, err := h.openRecording(name, read)
	if err == nil && t.Torn() {
		fmt.Fprintf(h.err, "acp-test: %s ends in the middle of a line, as after a crash; earlier lines are read\n",
			name)
	}
	if err == nil {
		h.leftOut(name, t)
	}
	return t, of, err
}

// leftOut handles recordings of other programs. It tells the user the detected format and the lines that could not be
// read.
func (h *host) leftOut(name string, t *transcript.Transcript) {
	if as := t.ImportedAs(); as != "" {
		fmt.Fprintf(h.err, "acp-test: %s: read as %s\n", name, as)
	}
	const most = 10
	for i, bad := range t.Skipped() {
		if i == most {
			fmt.Fprintf(h.err, "acp-test: %s: %d more lines are left out\n", name, len(t.Skipped())-most)
			break
		}
		fmt.Fprintf(h.err, "acp-test: %s: line %d is left out: %v\n", name, bad.Line, bad.Err)
	}
}

func (h *host) openRecording(name string, read reading) (t *transcript.Transcript, of protocol, err error) {
	in := h.in
	if name != "-" {
		if name, err = member(name, "transcript.jsonl"); err != nil {
			return nil, of, err
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, of, err
		}
		defer f.Close()
		in = f
	}
	text, err := logs.Open(in)
	if err == nil {
		t, of, err = read(text)
	}
	if err != nil {
		return nil, of, fmt.Errorf("%s: %w", name, err)
	}
	return t, of, nil
}

// conclude summarizes a run that had no engine, prints it and writes its reports. It returns the exit status as an
// error, or nil if the status is 0.
func (h *host) conclude(run *results.Run, asked []string, verbose bool, env ...string) error {
	h.summed(run, env...)
	console := h.console(&options{output: output{verbose: verbose}}, len(run.Results))
	defer console.Close()
	return h.concluded(console, *run, asked)
}

// summed removes secrets from a run that had no engine, and summarizes it.
func (h *host) summed(run *results.Run, env ...string) {
	*run = secret.Value(h.secrets(env...), *run)
	run.Duration = time.Since(run.Started)
	verdict.Conclude(run)
}

// concluded prints a summarized run and writes its reports. It writes the requested reports and, if the run has a
// folder, the usual ones into that folder. It returns the exit status as an error, or nil if the status is 0.
func (h *host) concluded(console *reports.Console, run results.Run, asked []string) error {
	for _, r := range run.Results {
		console.Finished(r)
	}
	return h.shown(console, run, asked)
}

// shown writes the reports and the summary of a run whose results have already been printed. It returns the exit
// status as an error, or nil if the status is 0.
func (h *host) shown(console *reports.Console, run results.Run, asked []string) error {
	return cmp.Or(errors.Join(h.writeReports(run, run.Out, asked), console.Summary(run)), ended(run.Exit))
}
