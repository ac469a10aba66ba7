// Package inside runs the reference agent within this process: most of what a short run
// with a process costs is to start it.
package inside

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Connecting is how a scenarios.Engine reaches an agent.
type Connecting = func(context.Context, *transcript.Transcript, int, agents.Launch) (*transport.Agent, error)

// Connect returns a way to the agent that starts no process. What stands behind refagent
// in the command line, and extra, are --fault and --liberty with their values.
func Connect(extra ...string) Connecting {
	return func(_ context.Context, t *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent, error) {
		env := map[string]string{}
		for _, kv := range l.Env {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		o := refagent.Options{Getenv: func(name string) string { return env[name] }}
		args := slices.Concat(l.Args[slices.Index(l.Args, "refagent")+1:], extra)
		for at := 0; at+1 < len(args); at += 2 {
			if !Configure(&o, args[at], args[at+1]) {
				return nil, fmt.Errorf("no such fault or liberty: %s", args[at+1])
			}
		}
		return transport.InProcess(t, conn, func(ctx context.Context, in io.Reader, out io.Writer) error {
			o.In, o.Out = in, out
			return refagent.Run(ctx, o)
		}), nil
	}
}

// Configure gives the agent the fault of --fault, or the liberties of --liberty, and
// reports whether there are such.
func Configure(o *refagent.Options, flag, value string) bool {
	if flag == "--fault" {
		f, ok := faults.Find(value)
		if ok {
			o.Hooks = f.Hooks()
		}
		return ok
	}
	var taken []liberties.Liberty
	for name := range strings.SplitSeq(value, ",") {
		l, ok := liberties.Find(name)
		if !ok {
			return false
		}
		taken = append(taken, l)
	}
	o.Habits = liberties.Habits(taken)
	return true
}
