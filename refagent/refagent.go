// Package refagent is a small but genuine coding agent that speaks the Agent
// Client Protocol v1 on a pair of streams and reaches its model through an
// OpenAI Chat Completions endpoint. It is correct on purpose: with zero Hooks
// it breaks no rule of the protocol. It shares no code with the rest of
// acp-test, so that it stays a second opinion of the specification.
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
	// EnvAuth set to "agent" makes the agent advertise one authentication
	// method with that id, and logout; session/new, load, resume, list and
	// delete then fail with -32000 until authenticate succeeded.
	EnvAuth = "ACP_TEST_REFAGENT_LOGIN"
	// EnvFork set to "yes" makes the agent advertise session/fork, which is no stable part
	// of the protocol.
	EnvFork = "ACP_TEST_REFAGENT_FORK"
	// EnvProviders set to "yes" makes the agent advertise providers, which are no stable part of the
	// protocol: an editor says where its model is.
	EnvProviders = "ACP_TEST_REFAGENT_PROVIDERS"
)

// DefaultModel is the model asked for when EnvModel is not set.
const DefaultModel = "reference-model"

// Version is what the agent says of itself in agentInfo.
const Version = "1.0.0"

// Options is everything that a run of the agent depends on. In and Out are
// required, the rest has useful zero values.
type Options struct {
	In  io.Reader // messages of the editor; closed when the context ends, if it is an io.Closer
	Out io.Writer // messages to the editor, each frame in one Write
	Log io.Writer // log lines for people (stderr); nil: none

	// Getenv looks up the settings named by the Env constants, XDG_STATE_HOME
	// and HOME. nil: nothing is set.
	Getenv func(string) string

	// StateDir keeps the sessions. Default: EnvState, else
	// XDG_STATE_HOME/acp-test-refagent, else HOME/.local/state/acp-test-refagent.
	StateDir string

	// AnswerGrace is how long a cancelled turn waits for the editor to answer
	// a request that is still open (the protocol asks the editor to answer
	// permissions with outcome cancelled) before the agent sends
	// $/cancel_request and goes on. Default: half a second.
	AnswerGrace time.Duration

	// Hooks are the seams that faults use. Zero: the correct agent.
	Hooks Hooks
	// Habits are what the agent does in another way than this one, and may.
	Habits Habits
}

// Run serves one connection until the input ends, the context is done or the
// output breaks. At the end of input it cancels what runs, kills what it
// started and returns nil. A missing option, a state directory that cannot be
// used, and a broken stream are errors.
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

// Serve serves a protocol over HTTP until ctx ends, by a listener, or at an address if that is nil.
// handler makes what answers at host and port; where that is, a line on out says.
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
