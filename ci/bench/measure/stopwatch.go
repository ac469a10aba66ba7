//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/ci/must"
)

// stopwatch prints the median of the seconds a command takes from its start to
// its end and the most memory it had, as "SECONDS MIB". An exit status is a
// failure, except 1, which is a verdict.
func stopwatch(args []string) {
	argv, runs := command(args), number(args, 0)
	if runs < 1 {
		must.Fail("the number of runs is needed, got %q", args[0])
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
