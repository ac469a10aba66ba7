package replay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// The test binary is also the programs that the tests start.
//
// The others leave by syscall.Exit: built with the race detector, os.Exit
// sleeps for a second first.
var judge = replay.Judge{Protocol: recordings.V1(), Rules: invariants.V1(), Text: canonical.V1()}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "keeper":
			syscall.Exit(process.KeeperMain(os.Args[2:]))
		case "cat":
			_, _ = io.Copy(os.Stdout, os.Stdin)
			syscall.Exit(0)
		case "valid":
			syscall.Exit(validPipe())
		case "exit":
			fmt.Fprintln(os.Stderr, "going")
			syscall.Exit(7)
		case "wait-for-signal":
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGUSR1)
			fmt.Println(`{"jsonrpc":"2.0","method":"_ready"}`)
			<-c
			syscall.Exit(3)
		case "proxy": // proxy FILE AGENT…
			syscall.Exit(proxyMain(os.Args[2], os.Args[3:]))
		case "refagent": // refagent [FAULT]
			syscall.Exit(refagentMain(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func TestReplay(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // the end of it is a failure, never a verdict on speed
	RunSpecs(t, "replay")
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func keeper() []string { return []string{self(), "keeper"} }

// validPipe is the least a proxy that looks at what it passes can do.
func validPipe() int {
	in, out := bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		if !json.Valid(line) {
			return 1
		}
		_, _ = out.Write(line)
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

func proxyMain(file string, argv []string) int {
	log, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Path: file, Through: true, Memory: 8 << 20,
			Redact: replay.Redaction{Protocol: recordings.V1()}.Func()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	p := replay.Proxy{Agent: mockclient.Command{Path: argv[0], Args: argv[1:], Env: os.Environ(), Keeper: keeper(),
		TrimOnExit: file}, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Log: log}
	exit, err := p.Run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	_ = log.Close()
	return exit.Code
}

func refagentMain(args []string) int {
	var hooks refagent.Hooks
	if len(args) > 0 {
		f, ok := faults.Find(faults.ACPv1, args[0])
		if !ok {
			fmt.Fprintln(os.Stderr, "no such fault")
			return 2
		}
		hooks = f.Hooks()
	}
	if err := refagent.Run(context.Background(),
		refagent.Options{In: os.Stdin, Out: os.Stdout, Log: os.Stderr, Hooks: hooks, Getenv: os.Getenv}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
