// Acp-test tests agents and editors of the Agent Client Protocol. This package
// holds flags, wiring and exit codes, and nothing else: 0 is a pass, 1 a fail
// of what was tested, 2 an error of the command line, the environment or the
// harness.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/process"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "keeper" {
		// Before all else: the keeper takes over the process.
		os.Exit(process.KeeperMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "isolate" {
		os.Exit(isolate.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "canary" {
		// The MCP server that scenarios give to agents; see mcp canary.
		os.Exit(canary.Main(context.Background(), os.Args[2:], os.Getenv, os.Stdin, os.Stdout))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		// What an agent sends becomes garbage faster than it is collected.
		debug.SetMemoryLimit(200 << 20)
	}
	process.AdoptOrphans()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	// The second interrupt ends the process at once: the keepers clean up.
	context.AfterFunc(ctx, cancel)
	os.Exit(execute(ctx, os.Args[1:], system()))
}

// host is all that a command may know of where it runs.
type host struct {
	in       io.Reader
	out, err io.Writer
	env      []string // as os.Environ gives it
	cwd      string   // absolute
	self     string   // this program
	args     []string // the words of the command line
	protocol string   // the name that --protocol gives, or ""
	trouble  error    // why cwd or self are not known
}

func system() *host {
	h := &host{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ()}
	var err1, err2 error
	h.cwd, err1 = os.Getwd()
	h.self, err2 = os.Executable()
	h.trouble = errors.Join(err1, err2)
	return h
}

// status is an exit status other than 0 of a command that has said all there
// is to say.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ended returns an exit status as an error, nil for 0.
func ended(code int) error {
	if code == 0 {
		return nil
	}
	return status(code)
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string, h *host) int {
	if h.trouble != nil {
		return complain(h, h.trouble)
	}
	h.args = args
	root := rootCommand(h)
	root.SetArgs(args)
	root.SetIn(h.in)
	root.SetOut(h.out)
	root.SetErr(h.err)
	err := root.ExecuteContext(ctx)
	var s status
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return int(s)
	}
	return complain(h, err)
}

// complain prints an error as one message. Each line of a joined error is a
// mistake of its own.
func complain(h *host, err error) int {
	fmt.Fprintf(h.err, "acp-test: %s\n", printable.Text(err.Error()))
	return 2
}
