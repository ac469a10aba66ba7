package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// viewing holds the flags of ui.
type viewing struct {
	port          int
	paths         []string
	agent         []string // final words of a command line, which name the agent
	subject       options  // options that select the same agent
	scratch, step bool
	watch         bool
}

func uiCommand(h *host) *cobra.Command {
	var o viewing
	c := command("ui", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		o.paths, o.subject.command = atDash(c, args)
		for _, f := range [][2]string{{"--agent", o.subject.agent}, {"--fault", o.subject.fault}} {
			if f[1] != "" {
				o.agent = append(o.agent, f[0], f[1])
			}
		}
		if c.ArgsLenAtDash() >= 0 {
			o.agent = append(append(o.agent, "--"), o.subject.command...)
		}
		if err := wrong([]contradiction{
			{o.port < 0 || o.port > 65535, fmt.Sprintf("--port %d: a port is a number from 0 to 65535", o.port)},
			{o.watch && o.scratch, "--watch and --scratch contradict each other"},
			{o.step && !o.scratch, "--step requires --scratch"},
		}); err != nil {
			return err
		}
		if len(o.paths) == 0 && !o.scratch && !o.watch {
			o.paths = []string{"acp-test-out"}
		}
		return h.ui(c.Context(), &o)
	})
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&o.watch, "watch", false, "run the scenarios in PATH, and rerun those that a saved file affects")
	f.BoolVar(&o.scratch, "scratch", false, "play the editor and the model by hand, against the agent")
	f.BoolVar(&o.step, "step", false, "with --scratch: pause the model before each part of its reply")
	f.StringVar(&o.subject.agent, "agent", "", "the agent that the page may run, by the `NAME` or file of its profile")
	f.StringVar(&o.subject.fault, "fault", "", "give the reference agent the deliberate fault `NAME`")
	f.IntVar(&o.port, "port", 0, "the port, a `NUMBER` (default any that is free)")
	completeWords(c, "fault", faultNames)
	return c
}

func (h *host) ui(ctx context.Context, o *viewing) (err error) {
	temp, err := os.MkdirTemp("", "acp-test-ui-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	server := &inspector.Server{Protocol: inspected, Judge: h.judged, Canonical: h.canonical, Token: rand.Text(),
		Title: "acp-test"}
	defer server.Close()
	for _, name := range o.shown() {
		source, err := h.source(name, temp)
		if err != nil {
			return err
		}
		server.Add(source)
	}
	do := &doer{h, server, o.agent, temp}
	server.Actions = do.actions()
	if o.scratch {
		stop, err := h.scratch(ctx, o, server, temp)
		if err != nil {
			return err
		}
		defer stop()
	}
	if !o.watch {
		return h.serveUI(ctx, server, o.port)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() {
		watched <- h.rounds(ctx, o, do)
		stop() // when watching ends, the page ends too
	}()
	err = h.serveUI(ctx, server, o.port)
	stop()
	return errors.Join(err, <-watched)
}

// shown returns the paths of results and transcripts to show.
func (o *viewing) shown() []string {
	if o.watch {
		return nil // the paths name scenarios
	}
	return o.paths
}

// serveUI serves the page until ctx ends.
func (h *host) serveUI(ctx context.Context, server *inspector.Server, port int) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	fmt.Fprintf(h.out, "http://%s/%s/\n", listener.Addr(), server.Token)
	fmt.Fprintln(h.err, "acp-test: Ctrl-C stops the server")
	return serveHTTP(ctx, listener, server)
}

// inspected returns the inspector's protocol for the version in a transcript's header.
func inspected(version string) inspector.Protocol {
	of := protocolVersion(version)
	return inspector.Protocol{Classifier: of.Classifier, Text: of.Canonical, Kind: of.kind, Fields: of.fields}
}

// source returns the source for a path: a folder of results, or a single transcript. It converts a recording in
// another format to a transcript in the folder temp.
func (h *host) source(name, temp string) (source inspector.Source, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return source, fmt.Errorf("ui: %w; acp-test run writes a results folder", err)
	}
	if info.IsDir() {
		return inspector.Source{Name: name, Dir: h.absolute(name)}, nil
	}
	source = inspector.Source{Name: name, Dir: h.absolute(filepath.Dir(name)), File: filepath.Base(name)}
	if isTranscript(name) {
		return source, nil
	}
	t, _, err := h.recordingOf(name)
	if err != nil {
		return source, err
	}
	if source.Dir, err = os.MkdirTemp(temp, "recording-"); err != nil {
		return source, err
	}
	return source, writeFile(filepath.Join(source.Dir, source.File), t.Save)
}

// isTranscript reports whether a file begins with a transcript header of this program. It also returns true for an
// empty file, because a new transcript is empty.
func isTranscript(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, 64<<10).ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return true
	}
	_, err = transcript.DecodeHeader(line)
	return err == nil
}

// judged returns the verdict of the rules on a transcript.
func (h *host) judged(name string, in io.Reader) (any, error) {
	res, _, _, err := h.checkedSession(name, in, "v1")
	return res, err
}

// canonical returns the canonical text of a transcript.
func (h *host) canonical(in io.Reader) (string, error) {
	t, of, err := h.session(in)
	if err != nil {
		return "", err
	}
	return of.judge("v1").Canonical(t), nil
}

// session reads a recording and returns it with its protocol.
func (h *host) session(in io.Reader) (*transcript.Transcript, protocol, error) {
	return h.readSession(in, func(protocol) func(transcript.Entry) { return nil })
}

// readSession reads a recording and returns it with its protocol. It calls seer with the protocol. The function that
// seer returns is then called with each entry.
func (h *host) readSession(in io.Reader, seer func(protocol) func(transcript.Entry)) (*transcript.Transcript, protocol,
	error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	of, err := h.protocolIn(buffered)
	if err != nil {
		return nil, of, err
	}
	t, err := of.read(buffered, seer(of))
	return t, of, err
}

// checkedSession reads a transcript, and judges it while reading.
func (h *host) checkedSession(id string, in io.Reader, severity string) (results.Result, *transcript.Transcript,
	protocol, error) {
	var checking *replay.Checking
	t, of, err := h.readSession(in, func(of protocol) func(transcript.Entry) {
		checking = of.judge(severity).Checking()
		return checking.See
	})
	if err != nil {
		return results.Result{}, nil, of, err
	}
	return checking.Result(id, t), t, of, nil
}

// rounds runs all scenarios once. After each saved file it runs the scenarios that the file affects. Each round
// writes a new folder, which the page shows next to the earlier ones. rounds returns when ctx ends.
func (h *host) rounds(ctx context.Context, o *viewing, do *doer) error {
	all := o.subject
	all.paths, all.out, all.golden = o.paths, do.temp, "golden"
	var dirs []string
	whole := -1 // index of the last round that ran all scenarios
	return h.again(ctx, &all, func(files map[string]bool) {
		n := len(dirs) + 1
		dirs = append(dirs, filepath.Join(do.temp, fmt.Sprint("round-", n), "acp-test-out"))
		paths := o.paths
		if files != nil {
			paths = slices.Sorted(maps.Keys(files))
		}
		name := fmt.Sprint("round ", n)
		do.server.Add(inspector.Source{Name: name, Dir: dirs[n-1], Round: n})
		words := append(append([]string{"run", "-q", "--no-smoke", "--out", dirs[n-1]}, paths...), do.agent...)
		if _, err := do.run(ctx, words); err != nil && ctx.Err() == nil {
			do.server.Tell(name, err.Error())
		}
		if files != nil {
			return
		}
		// Rounds before the last full round are removed from the page.
		for k := range max(whole, 0) {
			do.server.Drop(fmt.Sprint("round ", k+1))
			os.RemoveAll(filepath.Dir(dirs[k])) // the rest of temp is removed when ui ends
		}
		whole = n - 1
	})
}
