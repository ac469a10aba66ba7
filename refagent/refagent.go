// Package refagent is a small but genuine coding agent. It speaks the Agent
// Client Protocol v1 on a pair of streams and reaches its model through an OpenAI
// Chat Completions endpoint. With zero Hooks it breaks no rule of the protocol.
// It shares no code with the rest of acp-test, so that it is an independent
// reading of the specification.
package refagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Environment variables that the agent reads through Options.Getenv.
const (
	// EnvBaseURL is the model's base URL, with its version path
	// (http://127.0.0.1:1234/v1). Without it every prompt fails.
	EnvBaseURL = "OPENAI_BASE_URL"
	// EnvAPIKey is sent as the bearer token; "none" if unset.
	EnvAPIKey = "OPENAI_API_KEY"
	// EnvModel names the model; DefaultModel if unset.
	EnvModel = "OPENAI_MODEL"
	// EnvState is the state directory; see Options.StateDir.
	EnvState = "ACP_TEST_REFAGENT_STATE"
	// EnvAuth set to "agent" makes the agent advertise logout and one
	// authentication method with that id. session/new, load, resume, list and
	// delete then fail with -32000 until authenticate succeeded.
	EnvAuth = "ACP_TEST_REFAGENT_LOGIN"
	// EnvFork set to "yes" makes the agent advertise session/fork, which is an
	// unstable part of the protocol.
	EnvFork = "ACP_TEST_REFAGENT_FORK"
	// EnvProviders set to "yes" makes the agent advertise providers, an unstable
	// part of the protocol by which an editor tells the agent its model's
	// address.
	EnvProviders = "ACP_TEST_REFAGENT_PROVIDERS"
)

// DefaultModel is the model asked for when EnvModel is not set.
const DefaultModel = "reference-model"

// Version is the version in the agent's agentInfo.
const Version = "1.0.0"

// Options is everything that a run of the agent depends on. In and Out are
// required; the other fields have useful zero values.
type Options struct {
	In  io.Reader // messages of the editor; closed when the context ends, if it is an io.Closer
	Out io.Writer // messages to the editor, each frame in one Write
	Log io.Writer // log lines for people (stderr); nil: none

	// Getenv looks up the settings named by the Env constants, XDG_STATE_HOME
	// and HOME. nil: nothing is set.
	Getenv func(string) string

	// StateDir is the directory for sessions. Default: EnvState, else
	// XDG_STATE_HOME/acp-test-refagent, else HOME/.local/state/acp-test-refagent.
	StateDir string

	// AnswerGrace is how long a cancelled turn waits for the editor to answer an
	// open request, before the agent sends $/cancel_request and goes on. (The
	// protocol asks the editor to answer permissions with outcome cancelled.)
	// Default: half a second.
	AnswerGrace time.Duration

	// Hooks are the places that faults change. Zero: the correct agent.
	Hooks Hooks
	// Habits are ways in which this agent differs from the reference agent, as it
	// may.
	Habits Habits
}

// Run serves one connection until the input ends, the context is done or the
// output breaks. At the end of input it cancels running turns, kills the
// processes it started and returns nil. It returns an error for a missing option,
// an unusable state directory or a broken stream.
func Run(ctx context.Context, o Options) error {
	if o.In == nil || o.Out == nil {
		return errors.New("starting the reference agent: In and Out are required")
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	o.Log = cmp.Or(o.Log, io.Discard)
	if o.AnswerGrace <= 0 {
		o.AnswerGrace = time.Second / 2
	}
	dir := cmp.Or(o.StateDir, defaultStateDir(o.Getenv))
	if dir == "" {
		return fmt.Errorf("starting the reference agent: no state directory: set %s or HOME", EnvState)
	}
	if o.Habits.Forgets {
		own, err := os.MkdirTemp("", "refagent-")
		if err != nil {
			return fmt.Errorf("starting the reference agent: %w", err)
		}
		defer os.RemoveAll(own)
		dir = own
	}
	st, err := openStore(dir)
	if err != nil {
		return err
	}

	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &agent{ctx: ctx, end: end, options: o, hooks: o.Hooks, habits: &o.Habits, sessions: map[string]*session{},
		log: log.New(o.Log, "refagent: ", 0), store: st, model: OpenModel(o.Getenv, &o.Habits)}
	return a.serve()
}

func defaultStateDir(getenv func(string) string) string {
	for _, place := range [][2]string{{EnvState, ""}, {"XDG_STATE_HOME", "acp-test-refagent"},
		{"HOME", ".local/state/acp-test-refagent"}} {
		if dir := getenv(place[0]); dir != "" {
			return filepath.Join(dir, filepath.FromSlash(place[1]))
		}
	}
	return ""
}

// Serve serves a protocol over HTTP until ctx ends, on listener l or, if that is
// nil, at address. handler returns the HTTP handler for the host and port. Serve
// prints the URL on a line on out.
func Serve(ctx context.Context, protocol, path, address string, l net.Listener, out io.Writer,
	handler func(host string) http.Handler) (err error) {
	if l == nil {
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err != nil {
			return fmt.Errorf("serving %s: %w", protocol, err)
		}
	}
	h := &http.Server{Handler: handler(l.Addr().String()), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	if out != nil {
		fmt.Fprintf(out, "serving %s at http://%s%s\n", protocol, l.Addr(), path)
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", protocol, err)
	}
	return nil
}
