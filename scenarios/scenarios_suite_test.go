package scenarios_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/refagent"
)

// TestMain lets this binary be the keeper and the reference agent, so that the
// tests run real processes without building anything.
//
// The others leave by syscall.Exit: built with the race detector, os.Exit
// sleeps for a second first.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "keeper":
			syscall.Exit(process.KeeperMain(os.Args[2:]))
		case "isolate":
			syscall.Exit(isolate.Main(os.Args[2:]))
		case "caller":
			syscall.Exit(call(os.Args[2:]))
		case "canary":
			syscall.Exit(canary.Main(context.Background(), os.Args[2:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
		case "refagent":
			o := refagent.Options{In: os.Stdin, Out: os.Stdout, Log: os.Stderr, Getenv: os.Getenv}
			if err := inside.Configure(&o, os.Args[2:]...); err != nil {
				fmt.Fprintln(os.Stderr, err)
				syscall.Exit(2)
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

func TestScenarios(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "scenarios")
}
