package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/transcript"
)

// viewing are the flags of ui.
type viewing struct {
	port  int
	paths []string
}

func uiCommand(h *host) *cobra.Command {
	var o viewing
	c := &cobra.Command{
		Use:   "ui [PATH…]",
		Short: "runs and transcripts in a browser, also while they are written",
		Long: `Serves what lies in PATH to a browser on this machine, and prints the address. PATH is
the folder of a run, finished or going on (default acp-test-out), or one transcript or
recording in any of the forms that check takes. What is written meanwhile is shown at
once. Two or more can be compared with each other.

The address has a token, which changes each time, and leads only to this machine; only
what lies in the folders named is served. Ctrl-C ends it.

What the page shows and its filter language are in docs/inspector.md.`,
		RunE: func(c *cobra.Command, args []string) error {
			o.paths = args
			if len(args) == 0 {
				o.paths = []string{"acp-test-out"}
			}
			return h.ui(c.Context(), &o)
		},
	}
	c.Flags().IntVar(&o.port, "port", 0, "the port, a `NUMBER` (default any that is free)")
	return c
}

func (h *host) ui(ctx context.Context, o *viewing) (err error) {
	server := &inspector.Server{Protocol: inspected, Judge: h.judged, Canonical: h.canonical, Token: rand.Text(),
		Title: "acp-test"}
	defer server.Close()
	for _, name := range o.paths {
		source, remove, err := h.source(name)
		defer remove()
		if err != nil {
			return err
		}
		server.Sources = append(server.Sources, source)
	}
	return h.serveUI(ctx, server, o.port)
}

// serveUI serves until the context ends.
func (h *host) serveUI(ctx context.Context, server *inspector.Server, port int) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { web.Close() }) // what is still being sent is of no use
	defer stop()
	fmt.Fprintf(h.out, "http://%s/%s/\n", listener.Addr(), server.Token)
	fmt.Fprintln(h.err, "acp-test: Ctrl-C ends it")
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// inspected is the protocol of a transcript by the version in its header.
func inspected(version string) inspector.Protocol {
	of := protocolVersion(version)
	return inspector.Protocol{Classifier: of.Classifier, Text: of.Canonical}
}

// source is what a path names. A recording of another form is served as a transcript of
// this program, made for it; remove takes that away.
func (h *host) source(name string) (source inspector.Source, remove func(), err error) {
	remove = func() {}
	info, err := os.Stat(name)
	if err != nil {
		return source, remove, err
	}
	if info.IsDir() {
		return inspector.Source{Name: name, Dir: h.absolute(name)}, remove, nil
	}
	source = inspector.Source{Name: name, Dir: h.absolute(filepath.Dir(name)), File: filepath.Base(name)}
	if isTranscript(name) {
		return source, remove, nil
	}
	t, err := h.recordingOf(name)
	if err != nil {
		return source, remove, err
	}
	dir, err := os.MkdirTemp("", "acp-test-ui-")
	if err != nil {
		return source, remove, err
	}
	source.Dir = dir
	return source, func() { os.RemoveAll(dir) }, writeFile(filepath.Join(dir, source.File), t.Save)
}

// isTranscript reports whether a file begins as a transcript of this program, or is empty as one
// is before its first line.
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

// judged is what the rules say of a transcript.
func (h *host) judged(name string, in io.Reader) (any, error) {
	t, of, err := h.readSession(in)
	if err != nil {
		return nil, err
	}
	return of.judge("v1").Check(name, t), nil
}

// canonical is the text of a transcript for comparison.
func (h *host) canonical(in io.Reader) (string, error) {
	t, of, err := h.readSession(in)
	if err != nil {
		return "", err
	}
	return of.judge("v1").Canonical(t), nil
}

// readSession reads a transcript with its protocol.
func (h *host) readSession(in io.Reader) (*transcript.Transcript, protocol, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	of, err := h.protocolIn(buffered)
	if err != nil {
		return nil, of, err
	}
	t, err := of.read(buffered)
	return t, of, err
}
