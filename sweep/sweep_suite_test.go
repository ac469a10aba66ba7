package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/refagent"
)

// TestMain lets this binary be the keeper and the reference agent, as it is,
// with a fault or with a flag below, so that the tests run real processes without building
// anything.
//
// The others leave by syscall.Exit: built with the race detector, os.Exit
// sleeps for a second first.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "keeper":
			syscall.Exit(process.KeeperMain(os.Args[2:]))
		case "canary":
			syscall.Exit(canary.Main(context.Background(), os.Args[2:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
		case "refagent":
			o := refagent.Options{In: os.Stdin, Out: os.Stdout, Log: os.Stderr, Getenv: os.Getenv}
			if i := slices.Index(os.Args, "--fault"); i > 0 {
				if err := inside.Configure(&o, os.Args[i:i+2]...); err != nil {
					fmt.Fprintln(os.Stderr, err)
					syscall.Exit(2)
				}
			}
			if slices.Contains(os.Args, "--wears-out") {
				o.Hooks = wearsOut()
			}
			if slices.Contains(os.Args, "--one-turn") {
				o.Hooks = oneTurn()
			}
			if i := slices.Index(os.Args, "--moody"); i > 0 {
				o.Hooks = moody(os.Args[i+1])
			}
			if i := slices.Index(os.Args, "--stays"); i > 0 {
				n, err := strconv.Atoi(os.Args[i+2])
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					syscall.Exit(2)
				}
				o.Hooks = stays(os.Args[i+1], n)
			}
			if err := refagent.Run(context.Background(), o); err != nil {
				fmt.Fprintln(os.Stderr, err)
				syscall.Exit(1)
			}
			syscall.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// wearsOut is an agent that counts the cancels of its process instead of a
// session's: after the first it says that a cancelled turn ended by itself. No
// cancel of one turn alone shows it.
func wearsOut() refagent.Hooks {
	var cancelled atomic.Int32
	return refagent.Hooks{Stop: func(_, reason string, err error) (string, error) {
		if reason == "cancelled" && cancelled.Add(1) > 1 {
			return "end_turn", err
		}
		return reason, err
	}}
}

// oneTurn is an agent whose sessions take one prompt each.
func oneTurn() refagent.Hooks {
	var turns sync.Map
	return refagent.Hooks{Stop: func(session, reason string, err error) (string, error) {
		if _, had := turns.LoadOrStore(session, true); had {
			return "", errors.New("the session is over")
		}
		return reason, err
	}}
}

// moody is an agent whose first turn ends in another way than all others, whatever the process.
func moody(dir string) refagent.Hooks {
	return refagent.Hooks{Stop: func(_, reason string, err error) (string, error) {
		if os.Mkdir(filepath.Join(dir, "mood"), 0o700) == nil {
			return "refusal", err
		}
		return reason, err
	}}
}

// stays is an agent of which the n-th process to end does not end until it is
// killed. The processes are counted by the files they make in a folder.
func stays(dir string, n int) refagent.Hooks {
	return refagent.Hooks{End: func(context.Context) {
		for i := 1; ; i++ {
			f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(i)), os.O_CREATE|os.O_EXCL, 0o600)
			if os.IsExist(err) {
				continue
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			_ = f.Close()
			if i == n {
				time.Sleep(time.Hour) // with nothing to wait for, Go would end it
			}
			return
		}
	}}
}

func TestSweep(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "sweep")
}
