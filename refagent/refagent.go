// Package refagent is the reference agent: a small but complete coding agent. It speaks the Agent Client Protocol on
// a pair of streams and accesses its model through an OpenAI Chat Completions endpoint. With zero Hooks it violates
// no rule of the protocol. It shares no code with the rest of acp-test, so that it is an independent implementation
// of the specification.
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
	// EnvBaseURL is the model's base URL, with its version path (http://127.0.0.1:1234/v1). If it is unset, every
	// prompt fails.
	EnvBaseURL = "OPENAI_BASE_URL"
	// EnvAPIKey is the key that is sent as the bearer token; "none" if unset.
	EnvAPIKey = "OPENAI_API_KEY"
	// EnvModel is the name of the model; DefaultModel if unset.
	EnvModel = "OPENAI_MODEL"
	// EnvState is the state directory; see Options.StateDir.
	EnvState = "ACP_TEST_REFAGENT_STATE"
	// EnvAuth set to "agent" or "key" makes the agent advertise logout and one authentication method with that id.
	// session/new, load, resume, fork, list and delete then fail with -32000 until authenticate succeeds. With
	// "terminal", an editor that can run a login in a terminal is offered one, and these requests fail until LogIn has
	// stored a key.
	EnvAuth = "ACP_TEST_REFAGENT_LOGIN"
	// EnvFork, if set to "yes", makes the agent advertise session/fork, which is an unstable part of the protocol.
	EnvFork = "ACP_TEST_REFAGENT_FORK"
	// EnvProviders, if set to "yes", makes the agent advertise providers. With this unstable part of the protocol, an
	// editor configures the address of the agent's model.
	EnvProviders = "ACP_TEST_REFAGENT_PROVIDERS"
)

// DefaultModel is the name of the model if EnvModel is unset.
const DefaultModel = "reference-model"

// Version is the version in the agent's agentInfo.
const Version = "1.0.0"

// Options configures a run of the agent. In and Out are required; the other fields have useful zero values.
type Options struct {
	In  io.Reader // messages from the editor; closed when ctx ends if it is an io.Closer
	Out io.Writer // messages to the editor, each frame in one Write
	Log io.Writer // log lines for people (stderr); nil means none

	// Getenv looks up the variables of the Env constants, XDG_STATE_HOME and HOME. nil means that none is set.
	Getenv func(string) string

	// StateDir is the directory for stored sessions. The default is EnvState, else XDG_STATE_HOME/acp-test-refagent,
	// else HOME/.local/state/acp-test-refagent.
	StateDir string

	// AnswerGrace is the time that a cancelled turn waits for the editor to answer an open request. After that time,
	// the agent sends $/cancel_request and continues. The default is half a second. (The protocol requires the editor
	// to answer permission requests with the outcome cancelled.)
	AnswerGrace time.Duration

	// Hooks contains functions by which faults change the agent. The zero value is the correct agent.
	Hooks Hooks
	// Habits are permitted differences from the reference agent.
	Habits Habits
}

// Run serves one connection until the input ends, ctx ends or the output fails. At the end of input it cancels
// running turns, kills the processes that it started and returns nil. It returns an error if an option is missing,
// the state directory is unusable or a stream breaks.
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

// Serve serves a protocol over HTTP until ctx ends. It uses the listener l or, if l is nil, listens at address.
// handler returns the HTTP handler, given the host and port. Serve prints a line with the URL to out, unless out is
// nil.
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
