package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
)

func mcpCommand(h *host) *cobra.Command {
	var agent string
	c := command("mcp", oneBeforeAgent("folder"), func(c *cobra.Command, args []string) error {
		ours, command := atDash(c, args)
		if agent != "" && command != nil {
			return errors.New("mcp: --agent and a command after -- contradict each other")
		}
		if !exists(ours[0], true) {
			return fmt.Errorf("mcp: %s: there is no such folder", ours[0])
		}
		root, err := confined.Open(ours[0])
		if err != nil {
			return err
		}
		defer root.Close()
		t := &toolbox{host: h, root: root}
		if agent != "" {
			t.agent = []string{"--agent", agent}
		} else if command != nil {
			t.agent = append([]string{"--"}, command...)
		}
		return t.server().Run(c.Context(), &mcp.IOTransport{Reader: io.NopCloser(h.in), Writer: unclosed{h.out}})
	})
	c.Flags().StringVar(&agent, "agent", "", "the agent that the tools may run, by the `NAME` or file of its profile")
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents)
	return c
}

// unclosed is stdout with a Close that does nothing. The end of an MCP connection must not close stdout.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// toolbox holds the tools of the MCP server. Most tools copy files from the folder and run a command of this program
// on the copies.
type toolbox struct {
	*host
	root  *confined.Root
	agent []string // final words of a command line, which name the agent; nil if no agent may be started
}

// The inputs of the tools. Files are named relative to the server's folder.
type (
	nothing struct{}
	theRun  struct {
		Run string `json:"run" jsonschema:"the path of a results.json or of its folder, as the tool list shows it"`
	}
	inRun struct {
		theRun
		Scenario string `json:"scenario" jsonschema:"the id of a scenario, as the tool causes shows it"`
	}
	theFile struct {
		File string `json:"file" jsonschema:"the path of a recording or transcript, as the tool list shows it"`
	}
	inFile struct {
		theFile
		From  int    `json:"from,omitempty" jsonschema:"the number of the first entry"`
		To    int    `json:"to,omitempty" jsonschema:"the number of the last entry"`
		Match string `json:"match,omitempty" jsonschema:"a regular expression for an entry's line, such as session/cancel"`
	}
	files struct {
		A string `json:"a" jsonschema:"a recording or transcript"`
		B string `json:"b" jsonschema:"the recording or transcript to compare it with"`
	}
	theTopic struct {
		Topic string `json:"topic" jsonschema:"a rule, requirement, scenario command or topic, such as CANCEL-REASON"`
	}
	theScenario struct {
		Scenario string `json:"scenario" jsonschema:"the id of a scenario, such as cancel/idle, or its file in the folder"`
	}
)

// server returns an MCP server with tools that read files and, if there is an agent, tools that play scenarios.
func (t *toolbox) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "acp-test", Version: version()}, &mcp.ServerOptions{
		Instructions: "Begin with list, then call causes for a run. failure shows one scenario of the run with its " +
			"decisive frames, frames any part of a transcript, explain the meaning of a rule or requirement."})
	offer(t, s, "list", "Lists the runs and recordings in the folder.", (*job).list)
	offer(t, s, "causes", "Lists each defect of the agent once, with the scenarios of the run that show it.",
		func(j *job, in theRun) error {
			return j.console(in.Run, func(c *reports.Console, run results.Run) error { return c.Summary(run) })
		})
	offer(t, s, "failure", "Shows one scenario of a run: what was expected and observed, the frames, the citation.",
		(*job).failure)
	offer(t, s, "frames", "Prints entries of a transcript, one per line, all or some.", (*job).frames)
	offer(t, s, "findings", "Shows what the rules find in a recording or transcript.", func(j *job, in theFile) error {
		return j.on([]string{"check", "--verbose"}, in.File)
	})
	offer(t, s, "diff", "Compares two transcripts, ignoring differences due to chance.", func(j *job, in files) error {
		return j.on([]string{"diff"}, in.A, in.B)
	})
	offer(t, s, "explain", "Explains a rule or a requirement, with an example that keeps it and one that breaks it.",
		func(j *job, in theTopic) error { return j.play("help", in.Topic) })
	if t.agent == nil {
		return s
	}
	offer(t, s, "run", "Runs one scenario against the agent, and shows the result and the transcript.", (*job).run)
	offer(t, s, "reduce", "Finds the smallest scenario that reproduces what went wrong in a recording.",
		func(j *job, in theFile) error {
			name, err := j.copied(in.File)
			if err != nil {
				return err
			}
			made := filepath.Join(j.dir, "reduced.txtar")
			command := []string{"reduce", name, "--out", made, "--quiet", "--budget", patience.String()}
			if err := j.play(append(command, t.agent...)...); err != nil {
				return err
			}
			if text, err := os.ReadFile(made); err == nil { // otherwise the command has printed the reason
				j.out.Write(text)
			}
			return nil
		})
	return s
}

// offer adds a tool to the server. do performs a call of the tool. The tool returns do's output, and its error if
// there is one.
func offer[In any](t *toolbox, s *mcp.Server, name, says string, do func(*job, In) error) {
	no := false
	hint := &mcp.ToolAnnotations{
		ReadOnlyHint: name != "run" && name != "reduce", DestructiveHint: &no, OpenWorldHint: &no,
	}
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: says, Annotations: hint},
		func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			dir, err := os.MkdirTemp("", "acp-test-mcp-")
			if err != nil {
				return nil, nil, err
			}
			defer os.RemoveAll(dir)
			j := &job{toolbox: t, ctx: ctx, dir: dir}
			if err := do(j, in); err != nil {
				fmt.Fprintf(&j.out, "%s\n", err)
				return &mcp.CallToolResult{Content: j.said(), IsError: true}, nil, nil
			}
			return &mcp.CallToolResult{Content: j.said()}, nil, nil
		})
}

// job is one call of a tool.
type job struct {
	*toolbox
	ctx context.Context
	dir string // a temporary folder that only this job uses
	out bytes.Buffer
}

// patience is how long an MCP client waits for the answer to a call.
const patience = 50 * time.Second

// most is the maximum size of an answer, in bytes. A longer answer would fill the context of the client's model.
const most = 64 << 10

// said returns the answer of a tool call. It removes secrets and the path of the temporary folder, and cuts the text
// after most bytes.
func (j *job) said() []mcp.Content {
	text := strings.ReplaceAll(j.secrets().Text(printable.Text(j.out.String())), j.dir+string(filepath.Separator), "")
	if len(text) > most {
		text = fmt.Sprintf("%s\n(%d of %d bytes: ask for less)\n", strings.ToValidUTF8(text[:most], ""), most, len(text))
	}
	return []mcp.Content{&mcp.TextContent{Text: text}}
}

// play runs a command of this program and adds its output to the answer. A command that found failures is no error.
func (j *job) play(args ...string) error {
	h := *j.host
	h.in, h.out, h.err, h.protocol = strings.NewReader(""), &j.out, &j.out, ""
	if execute(j.ctx, args, &h) == 2 {
		return fmt.Errorf("acp-test %s failed", args[0])
	}
	return nil
}

// on runs a command on copies of the named files.
func (j *job) on(command []string, names ...string) error {
	for _, name := range names {
		file, err := j.copied(name)
		if err != nil {
			return err
		}
		command = append(command, file)
	}
	return j.play(command...)
}

// copied copies a file from the folder, and returns the path of the copy.
func (j *job) copied(name string) (string, error) {
	data, err := j.root.ReadFile(j.ctx, filepath.FromSlash(name), confined.Limit)
	if err != nil {
		return "", err
	}
	to, err := confined.Open(j.dir)
	if err != nil {
		return "", err
	}
	defer to.Close()
	return filepath.Join(j.dir, filepath.FromSlash(name)), to.WriteFile(filepath.FromSlash(name), data, 0o600)
}

// list prints the runs and recordings in the folder.
func (j *job) list(nothing) error {
	var runs, rest []string
	err := fs.WalkDir(os.DirFS(j.root.Dir()), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || !e.Type().IsRegular():
			return nil // a file that cannot be read is not listed
		case len(runs)+len(rest) >= 1000:
			return fs.SkipAll
		case path.Base(name) == "results.json":
			runs = append(runs, name)
		case slices.Contains([]string{".jsonl", ".log", ".har", ".txtar"}, path.Ext(name)):
			rest = append(rest, name)
		}
		return nil
	})
	for _, name := range runs {
		run, err := j.results(name)
		if err != nil {
			fmt.Fprintf(&j.out, "%s  %v\n", name, err)
			continue
		}
		fmt.Fprintf(&j.out, "%s  a run of %s, %s: %d scenarios, %d causes\n", name, cmp.Or(run.Agent.Profile, "recordings"),
			run.Started.Format(time.DateTime), len(run.Results), len(run.Causes))
	}
	for _, name := range rest {
		fmt.Fprintln(&j.out, name)
	}
	if len(runs)+len(rest) == 0 {
		fmt.Fprintln(&j.out, "There is neither a results.json nor a recording in the folder.")
	}
	return err
}

// results reads a results.json file. name is its path or that of its folder.
func (j *job) results(name string) (results.Run, error) {
	if info, err := j.root.Stat(filepath.FromSlash(name)); err == nil && info.IsDir() {
		name = path.Join(name, "results.json")
	}
	data, err := j.root.ReadFile(j.ctx, filepath.FromSlash(name), confined.Limit)
	if err != nil {
		return results.Run{}, err
	}
	return reports.Read(bytes.NewReader(data))
}

// console prints one part of a run, chosen by say, in the format of the console.
func (j *job) console(name string, say func(*reports.Console, results.Run) error) error {
	run, err := j.results(name)
	if err != nil {
		return err
	}
	return say(reports.NewConsole(&j.out, reports.ConsoleOptions{Verbose: true}), run)
}

// failure prints the result of one scenario.
func (j *job) failure(in inRun) error {
	return j.console(in.Run, func(c *reports.Console, run results.Run) error {
		for _, r := range run.Results {
			if r.ID == in.Scenario {
				c.Finished(r)
				return nil
			}
		}
		return fmt.Errorf("the run has no scenario %q", in.Scenario)
	})
}

// entry matches the start of an entry's line in the output of show.
var entry = regexp.MustCompile(`^#(\d+)`)

// frames prints the entries of a transcript that match the call's range and pattern.
func (j *job) frames(in inFile) error {
	match, err := regexp.Compile(in.Match)
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if err := j.on([]string{"show"}, in.File); err != nil {
		return err
	}
	shown := j.out.String()
	j.out.Reset()
	for line := range strings.Lines(shown) {
		if m := entry.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			if n < in.From || in.To > 0 && n > in.To || !match.MatchString(line) {
				continue
			}
		}
		j.out.WriteString(line)
	}
	return nil
}

// run plays a scenario and prints its result and transcript.
func (j *job) run(in theScenario) error {
	args := []string{"run", "--out", filepath.Join(j.dir, "out"), "--golden", "none", "--no-smoke", "--verbose"}
	if strings.HasSuffix(in.Scenario, ".txtar") {
		file, err := j.copied(in.Scenario)
		if err != nil {
			return err
		}
		args = append(args, file)
	} else {
		args = append(args, "--run", "^"+regexp.QuoteMeta(in.Scenario)+"$")
	}
	if err := j.play(append(args, j.agent...)...); err != nil {
		return err
	}
	run, err := readResults(filepath.Join(j.dir, "out"))
	if err != nil {
		return err
	}
	for _, r := range run.Results {
		if name := r.Artifacts["transcript"]; name != "" {
			if err := j.play("show", filepath.Join(run.Out, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
	}
	return nil
}
