//go:build linux

// Command measure takes the measurements of ci/bench/run that a shell cannot take. Its subcommands are an agent that
// sends a burst of updates, the clients that receive the burst, a client that plays a single turn, and a stopwatch.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

var commands = map[string]func(args []string){
	"agent":      agent,
	"burst":      burst,
	"endpoint":   endpointServer,
	"web-burst":  webBurst,
	"turn":       turn,
	"time":       stopwatch,
	"transcript": transcriptFile,
}

//go:embed usage.txt
var usage string

func main() {
	if len(os.Args) > 1 {
		if run, ok := commands[os.Args[1]]; ok {
			must.Main("measure "+os.Args[1], 1, func() { run(os.Args[2:]) })
			return
		}
	}
	fmt.Fprint(os.Stderr, usage)
	os.Exit(2)
}

// number returns args[i] as a number.
func number(args []string, i int) int {
	if i >= len(args) {
		must.Fail("%d numbers are needed, got %q", i+1, args)
	}
	return must.Get(strconv.Atoi(args[i]))
}

// piped starts a program with pipes for its input and output.
func piped(argv []string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser) {
	cmd = exec.Command(argv[0], argv[1:]...)
	in, out = must.Get(cmd.StdinPipe()), must.Get(cmd.StdoutPipe())
	must.Do(cmd.Start())
	return cmd, in, out
}

// logged returns a transcript on disk like that of a run, and its folder. done removes the folder.
func logged(of transcript.Classifier) (log *transcript.Transcript, dir string, done func()) {
	dir = must.Get(os.MkdirTemp("", "measure-"))
	log = must.Get(transcript.New(transcript.Header{},
		transcript.Options{Classifier: of, Path: filepath.Join(dir, "transcript.jsonl")}))
	return log, dir, func() { os.RemoveAll(dir) }
}

// judged fails if the rules have findings, with the first finding as the message.
func judged(found []rules.Finding) {
	if len(found) > 0 {
		must.Fail("%s: %s", found[0].Rule, found[0].Message)
	}
}

// command returns the words after --.
func command(args []string) []string {
	i := slices.Index(args, "--")
	if i < 0 || i+1 == len(args) {
		must.Fail("a command must follow --, got %q", args)
	}
	return args[i+1:]
}

// stopwatch prints the median duration of a command in seconds and its largest memory, as "SECONDS MIB". Exit status
// 0 and 1 are both valid, because 1 only means that the agent failed the test. Any other status is an error.
func stopwatch(args []string) {
	argv, runs := command(args), number(args, 0)
	if runs < 1 {
		must.Fail("the number of runs must be at least 1, got %q", args[0])
	}
	var took []time.Duration
	var peak int64
	for range runs {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stderr = os.Stderr
		started := time.Now()
		err := cmd.Run()
		took = append(took, time.Since(started))
		if cmd.ProcessState.ExitCode() != 1 {
			must.Do(err)
		}
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, u.Maxrss)
		}
	}
	slices.Sort(took)
	fmt.Printf("%.4f %d\n", took[len(took)/2].Seconds(), peak>>10)
}
