package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/transcript"
)

// modelServer holds the flags of fakellm.
type modelServer struct {
	port                     int
	wire, record, transcript string
	upstreams                []string
}

func fakellmCommand(h *host) *cobra.Command {
	var o modelServer
	c := command("fakellm", func(c *cobra.Command, args []string) error {
		if len(o.upstreams) == 0 {
			return exactArgs(1, "a model script")(c, args)
		}
		if len(args) > 0 {
			return fmt.Errorf("fakellm: unexpected argument %q: --upstream takes no script", args[0])
		}
		return nil
	}, func(c *cobra.Command, args []string) error {
		switch {
		case o.wire != "" && !slices.Contains(fakellm.Wires(), o.wire):
			return oneOf("--wire", "wire format", o.wire, fakellm.Wires())
		case len(o.upstreams) > 0 && o.record == "":
			return fmt.Errorf("fakellm: --upstream needs --record OUT.yaml, the script to write")
		case len(o.upstreams) == 0 && o.record != "":
			return fmt.Errorf("fakellm: --record needs --upstream URL, the provider to record (--transcript FILE has " +
				"the log of this server)")
		}
		t, err := transcript.New(transcript.Header{Tool: tool()},
			transcript.Options{Path: o.transcript, Redact: h.redactor(acpV1())})
		if err != nil {
			return err
		}
		defer t.Close()
		secrets := h.secrets()
		t.Observe(func(e transcript.Entry) { fmt.Fprintln(h.err, printable.Text(secrets.Text(canonical.V1().Line(e)))) })
		if len(o.upstreams) > 0 {
			err = h.recordModel(c.Context(), &o, t)
		} else {
			err = h.serveModel(c.Context(), &o, args[0], t)
		}
		if err != nil {
			return err
		}
		return t.Close()
	})
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.port, "port", 0, "the TCP port; 0 takes a free one")
	f.StringVar(&o.wire, "wire", "",
		"the only wire `FORMAT` to answer: openai-chat, openai-responses, anthropic or gemini")
	f.StringArrayVar(&o.upstreams, "upstream", nil,
		"pass requests on to a provider, `[FORMAT=]URL` (repeatable: one for each wire format)")
	f.StringVar(&o.record, "record", "", "save the answers of --upstream as a script, the new file `OUT.yaml`")
	f.StringVar(&o.transcript, "transcript", "", "also log each request and reply in a transcript `FILE`")
	completeWords(c, "wire", fakellm.Wires)
	return c
}

func (o *modelServer) listen() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)) }

// serveModel serves a script until ctx ends.
func (h *host) serveModel(ctx context.Context, o *modelServer, file string, t *transcript.Transcript) error {
	src, err := h.read(file)
	if err != nil {
		return err
	}
	script, err := fakellm.ParseScript(file, src, func(text string) (string, error) { return text, nil })
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return fmt.Errorf("%s: the script is empty; acp-test help model describes the format", file)
	}
	server, err := fakellm.Start(fakellm.Config{Script: script, Transcript: t, Wire: o.wire, Listen: o.listen()})
	if err != nil {
		return err
	}
	if err := openGates(server, script); err != nil {
		return err
	}
	fmt.Fprintln(h.out, server.URL())
	<-ctx.Done()
	return server.Close()
}

// openGates releases all gates of a script, for commands that play no scenario.
func openGates(server *fakellm.Server, script *fakellm.Script) error {
	for _, gate := range script.Gates() {
		if _, err := server.Release(gate); err != nil {
			return err
		}
	}
	return nil
}

// read reads a file from the command line; - is stdin.
func (h *host) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(h.in)
	}
	return os.ReadFile(name)
}

// recordModel forwards model requests to providers and writes their answers as a script, until ctx ends.
func (h *host) recordModel(ctx context.Context, o *modelServer, t *transcript.Transcript) error {
	if _, err := os.Lstat(o.record); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--record %s: the file exists already, and fakellm does not overwrite it", o.record)
	}
	c, err := o.recording()
	if err != nil {
		return err
	}
	c.Transcript, c.Listen, c.Transport = t, o.listen(), wayOut()
	rec, err := fakellm.Record(c)
	if err != nil {
		return err
	}
	failed, stop := keepScript(rec, t, o.record)
	fmt.Fprintln(h.out, rec.URL())
	select {
	case <-ctx.Done():
	case <-failed:
	}
	if err := stop(); err != nil {
		return err
	}
	if len(rec.Script()) == 0 {
		return fmt.Errorf("--record %s: nothing was recorded, because fakellm got no model request", o.record)
	}
	return nil
}

// wayOut returns the transport for requests to model providers. It uses the proxy of the user's environment; agents
// under test do not.
func wayOut() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, IdleConnTimeout: time.Minute}
}

// keepScript saves the recorded script after each answer, because answers may have cost money. Before the first
// answer, no file exists. failed is closed if saving fails. stop ends the recorder and returns any error.
func keepScript(rec *fakellm.Recorder, t *transcript.Transcript, file string) (failed <-chan struct{},
	stop func() error) {
	answered, quit, bad := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	t.Observe(func(e transcript.Entry) {
		if e.Kind == transcript.ModelDone {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	ended := make(chan error, 1)
	go func() {
		for {
			select {
			case <-answered:
				if err := replaceFile(file, rec.Script(), 0o600); err != nil {
					close(bad)
					ended <- err
					return
				}
			case <-quit:
				ended <- nil
				return
			}
		}
	}()
	return bad, func() error {
		close(quit)
		if err := errors.Join(<-ended, rec.Close()); err != nil {
			return err
		}
		if script := rec.Script(); len(script) > 0 {
			return replaceFile(file, script, 0o600)
		}
		return nil
	}
}

// recording returns the configuration for the values [FORMAT=]URL of --upstream.
func (o *modelServer) recording() (c fakellm.RecordConfig, err error) {
	c.Upstreams = map[string]string{}
	for _, u := range o.upstreams {
		format, url, ok := strings.Cut(u, "=")
		switch {
		case !ok || strings.Contains(format, ":"): // a URL may contain =
			c.Upstream = u
		case !slices.Contains(fakellm.Wires(), format):
			return c, oneOf("--upstream", "wire format", format, fakellm.Wires())
		default:
			c.Upstreams[format] = url
		}
	}
	if o.wire != "" {
		c.Upstreams = map[string]string{o.wire: cmp.Or(c.Upstreams[o.wire], c.Upstream)}
		c.Upstream = ""
	}
	return c, nil
}
