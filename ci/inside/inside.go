// Package inside runs the reference agents within the test's process. This saves the start of a process, which takes
// most of the time of a short run.
package inside

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Connecting is the type of Engine.Connect in package scenarios.
type Connecting = func(context.Context, *transcript.Transcript, int, agents.Launch) (*transport.Agent, error)

// Connect returns a function that connects to the ACP reference agent without starting a process. Configure gets the
// words after "refagent" in the launch's command line, followed by extra.
func Connect(extra ...string) Connecting {
	return func(_ context.Context, t *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent, error) {
		o := refagent.Options{Getenv: Getenv(l)}
		if err := Configure(&o, slices.Concat(l.Args[slices.Index(l.Args, "refagent")+1:], extra)...); err != nil {
			return nil, err
		}
		return transport.InProcess(t, conn, func(ctx context.Context, in io.Reader, out io.Writer) error {
			o.In, o.Out = in, out
			return refagent.Run(ctx, o)
		}), nil
	}
}

// ConnectWeb returns a function that connects to the AG-UI reference agent without starting a process. extra are the
// arguments of ConfigureWeb. accept is the Accept header for posts that set none. dir is the agent's folder; "" means
// the launch's folder.
func ConnectWeb(accept, dir string, extra ...string) Connecting {
	return func(_ context.Context, t *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		o := webagent.Options{Listener: listener, Dir: cmp.Or(dir, l.Dir), Getenv: Getenv(l)}
		if err := ConfigureWeb(&o, extra...); err != nil {
			return nil, err
		}
		at := endpoint.At("http://" + listener.Addr().String() + "/")
		at.Accept = accept
		return transport.InProcessServer(t, conn, at, func(ctx context.Context) error { return webagent.Serve(ctx, o) }), nil
	}
}

// Getenv returns a lookup function for the environment of a launch.
func Getenv(l agents.Launch) func(name string) string {
	env := map[string]string{}
	for _, kv := range l.Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return func(name string) string { return env[name] }
}

// Configure sets a fault (--fault) and liberties (--liberty) in the options of the ACP reference agent. --protocol
// selects the protocol whose faults are used. In args, each flag is followed by its value.
func Configure(o *refagent.Options, args ...string) error {
	f, taken, err := take(faults.ACPv1, args)
	if err == nil && f.Name != "" {
		o.Hooks = f.Hooks()
	}
	o.Habits = liberties.Habits(taken)
	return err
}

// ConfigureWeb is like Configure, but for the AG-UI reference agent.
func ConfigureWeb(o *webagent.Options, args ...string) error {
	f, taken, err := take(faults.AGUI, args)
	if err == nil && f.Name != "" {
		o.Hooks = f.Web()
	}
	o.Habits = liberties.Web(taken)
	return err
}

func take(protocol string, args []string) (f faults.Fault, taken []liberties.Liberty, err error) {
	for at := 0; at+1 < len(args); at += 2 {
		value, unknown, ok := args[at+1], "", true
		switch args[at] {
		case "--protocol":
			protocol = value
		case "--fault":
			f, ok = faults.Find(protocol, value)
		case "--liberty":
			taken, unknown = liberties.Find(protocol, strings.Split(value, ",")...)
		}
		if !ok || unknown != "" {
			return f, nil, fmt.Errorf("%s %s: %s has no such fault or liberty", args[at], value, protocol)
		}
	}
	return f, taken, nil
}
