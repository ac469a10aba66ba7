// Acp-test tests agents and editors of the Agent Client Protocol. This package holds only flags, wiring and exit
// codes. Exit code 0 is a pass, 1 a failure of the tested program, 2 an error of the command line, the environment or
// the harness.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/schema"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "keeper" {
		// This must come first: the keeper takes over the process.
		os.Exit(process.KeeperMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "isolate" {
		os.Exit(isolate.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "canary" {
		// The MCP server that scenarios give to agents; see mcp canary.
		os.Exit(canary.Main(context.Background(), os.Args[2:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		// Agents can send data faster than the default garbage collector frees it.
		debug.SetMemoryLimit(200 << 20)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // most commands end before garbage collection would pay off
	}
	process.AdoptOrphans()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	// After the first interrupt, stop catching signals: a second one ends the process, and the keepers clean up.
	context.AfterFunc(ctx, cancel)
	code := execute(ctx, os.Args[1:], system())
	process.EndKeepers()
	os.Exit(code)
}

// host is the environment of a command: its streams, variables, folder and command line.
type host struct {
	in       io.Reader
	out, err io.Writer
	env      []string // in the format of os.Environ
	cwd      string   // absolute
	self     string   // path of this program
	args     []string // the words of the command line
	protocol string   // value of --protocol, or ""
	trouble  error    // error from system that left cwd or self unknown
}

func system() *host {
	h := &host{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ()}
	var err1, err2 error
	h.cwd, err1 = os.Getwd()
	h.self, err2 = os.Executable()
	h.trouble = errors.Join(err1, err2)
	return h
}

// say prints text that may contain output of other programs. It removes control sequences.
func (h *host) say(format string, args ...any) {
	fmt.Fprint(h.out, printable.Text(fmt.Sprintf(format, args...)))
}

// status is a nonzero exit status of a command that has already printed its error.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ended returns an exit status as an error, or nil for 0.
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

// complain prints an error and returns exit status 2. The lines of a joined error are separate mistakes.
func complain(h *host, err error) int {
	fmt.Fprintf(h.err, "acp-test: %s\n", printable.Text(err.Error()))
	return 2
}

func rootCommand(h *host) *cobra.Command {
	var told bool
	root := command("acp-test", knownCommand, func(c *cobra.Command, _ []string) error {
		if told {
			fmt.Fprintln(h.out, tool())
			return nil
		}
		h.explain(c, true)
		return nil
	})
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Flags().BoolVar(&told, "version", false, "the version of this program")
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { h.explain(c, false) })
	if len(h.args) > 0 && h.args[0] == "refagent" { // started once per scenario; the other commands would only cost time
		root.AddCommand(refagentCommand(h))
	} else {
		root.AddCommand(commands(h)...)
	}
	root.SetHelpCommand(helpCommand(h))
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&h.protocol, "protocol", "", "the protocol, by `NAME`: "+
		strings.Join(protocolNames(), ", ")+" (default: the one of the agent, the scenario or the recording)")
	completeWords(root, "protocol", protocolNames)
	root.PersistentFlags().BoolP("help", "h", false, "show what the command does, and its flags")
	return root
}

func commands(h *host) []*cobra.Command {
	return []*cobra.Command{
		runCommand(h), conformanceCommand(h), lintCommand(h), formatCommand(h), showCommand(h), agentsCommand(h),
		reportCommand(h), uiCommand(h), initCommand(h),
		reviewCommand(h), sweepCommand(h), exploreCommand(h), upgradeCommand(h), matrixCommand(h), promptCommand(h),
		fakellmCommand(h), refagentCommand(h), versionCommand(h),
		recordCommand(h), keepCommand(h), checkCommand(h), diffCommand(h), replayCommand(h), serveCommand(h),
		editorsCommand(h), convertRecordingCommand(h), reduceCommand(h), mcpCommand(h),
	}
}

// knownCommand returns an error if args name no command.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("there is no command %q%s: acp-test help lists them", args[0],
		mistake.Meant(args[0], commandNames(c)))
}

// commandNames returns the names of the visible subcommands of a command.
func commandNames(c *cobra.Command) []string {
	return lists.Map(lists.Where(c.Commands(), (*cobra.Command).IsAvailableCommand), (*cobra.Command).Name)
}

// flagError returns a message for a wrong flag that suggests the flag that the user probably meant.
func flagError(c *cobra.Command, err error) error {
	where, lists := "", "acp-test help"
	if name, sub := strings.CutPrefix(c.CommandPath(), "acp-test "); sub {
		where, lists = name+": ", lists+" "+name
	} else if err := knownCommand(c, c.Flags().Args()); err != nil {
		return err
	}
	var invalid *pflag.InvalidValueError
	var lacking *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return fmt.Errorf("%s--%s: %s is expected, not %q", where, f.Name, allowed(f), invalid.GetValue())
	case errors.As(err, &lacking):
		f := lacking.GetFlag()
		return fmt.Errorf("%s--%s: a value is missing: %s", where, f.Name, allowed(f))
	case !errors.As(err, &unknown):
		return fmt.Errorf("%s%w: %s lists the flags", where, err, lists)
	}
	name := unknown.GetSpecifiedName()
	if len(name) < 2 {
		return fmt.Errorf("%sthere is no flag -%s: %s lists them", where, name, lists)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := ""
	if n := mistake.Closest(name, names); n != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", n)
	}
	hint = cmp.Or(hint, ": "+lists+" lists them")
	return fmt.Errorf("%sthere is no flag --%s%s", where, name, hint)
}

// allowed describes the values of a flag: from its type if possible, else from its usage text.
func allowed(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "int", "int64":
		return "a whole number"
	case "jobs":
		return "auto or a whole number from 1"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 500ms, 30s or 2m"
	case "bool":
		return "true or false"
	}
	name, usage := pflag.UnquoteUsage(f)
	return name + " (" + usage + ")"
}

// tool returns the name and version of this program, for headers and reports.
func tool() string { return "acp-test " + version() }

// released is the version number, which ci/release sets.
var released string

func version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func versionCommand(h *host) *cobra.Command {
	var protocols bool
	c := command("version", atMost(0), func(*cobra.Command, []string) error {
		if protocols {
			writeProtocols(h.out, schema.LatestNews())
			return nil
		}
		fmt.Fprintf(h.out, "%s %s %s/%s\n", tool(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				switch s.Key {
				case "vcs.revision", "vcs.time", "vcs.modified":
					fmt.Fprintf(h.out, "%s %s\n", s.Key, s.Value)
				}
			}
		}
		return nil
	})
	c.Flags().BoolVar(&protocols, "protocols", false, "show the version of the specification for each protocol")
	return c
}

// writeProtocols prints, for each protocol, the version of its schema and the features that are new in it.
func writeProtocols(w io.Writer, news *schema.News) {
	for _, p := range news.Protocols {
		fmt.Fprintf(w, "%s  schema %s\n", p.Protocol, p.Schema)
		for _, f := range news.Features {
			if slices.Contains(f.Protocols, p.Protocol) {
				fmt.Fprintf(w, "  %-10s  %-9s  %s\n", f.Date, f.State, f.Name)
			}
		}
	}
	fmt.Fprintf(w, "features of the specification read on %s; schema tables compared with %s\n", news.Read, news.Pinned)
}
