package agui_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/editors"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// TestMain lets this binary be the keeper of clients.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "keeper" {
		os.Exit(process.KeeperMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// bench judges clients.
func bench() editors.Bench {
	return editors.Bench{Self: os.Args[0], Env: os.Environ(), Timeout: 2 * time.Minute, Protocol: "ag-ui",
		Judge: replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical},
		Quote: func(words []string) string { return strings.Join(words, " ") },
		Front: func(script *serve.Script, log *transcript.Transcript) *serve.Web {
			return endpoint.Front(aguirecord.Protocol{}, script, nil, log)
		},
		Read: func(file string) (*transcript.Transcript, error) {
			in, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer in.Close()
			return aguirecord.Read(in)
		}}
}

// The official client does what the scenarios for front ends ask, but for what ci/agui/http-agent.known.yaml lists; and
// each of these it does.
func TestTheOfficialFrontEnd(t *testing.T) {
	installed(t)
	src, err := os.ReadFile(officialDir + "/http-agent.known.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known, err := agents.ParseKnownFailures("http-agent.known.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	list, err := agui.V1().ForEditors()
	if err != nil || len(list) < 26 {
		t.Fatalf("%d scenarios, %v", len(list), err)
	}
	program, err := filepath.Abs(officialDir + "/front-end.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		if !slices.ContainsFunc(list, func(s *scenarios.Scenario) bool { return s.ID == k.Scenario }) {
			t.Errorf("http-agent.known.yaml names %s, which does not exist", k.Scenario)
		}
	}
	outcomes := make(chan results.Result, len(list))
	b := bench()
	proof.Each(proof.Share(list), 3, func(s *scenarios.Scenario) {
		res, err := b.Run(context.Background(), s, []string{"node", program, "{agent}"},
			filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Error(err)
		}
		outcomes <- res
	})
	close(outcomes)
	for res := range outcomes {
		verdict.Expect(&res, known)
		if res.Verdict != results.Pass && res.Verdict != results.Lint && !res.Known {
			t.Errorf("%s: %s %s %+v %+v", res.ID, res.Verdict, res.Reason, res.Checks, res.Findings)
		}
		if !res.Known && slices.ContainsFunc(known, func(k agents.KnownFailure) bool {
			return k.Scenario == res.ID && !k.Flaky
		}) {
			t.Errorf("%s passes, and http-agent.known.yaml says that it fails", res.ID)
		}
	}
}

// A front end that nobody judges well: it posts once, whatever comes, and shows nothing.
func TestAFrontEndThatDoesNothing(t *testing.T) {
	list, err := agui.V1().ForEditors()
	if err != nil {
		t.Fatal(err)
	}
	post := `exec curl -s -o /dev/null -H 'Content-Type: application/json' -d ` +
		`'{"threadId":"t","runId":"r","messages":` +
		`[{"id":"u","role":"user","content":"Begin."}]}' "$1"`
	failed := 0
	b := bench()
	for _, s := range list[:6] {
		res, err := b.Run(context.Background(), s, []string{"sh", "-c", post, "sh", "{agent}"}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if res.Verdict == results.Fail {
			failed++
		}
	}
	if failed != 6 {
		t.Errorf("%d of 6 scenarios fail", failed)
	}
	res, err := b.Run(context.Background(), list[0], []string{"true"}, t.TempDir())
	if err != nil || res.Verdict != results.Error {
		t.Errorf("who never posts: %s %s, %v", res.Verdict, res.Reason, err)
	}
}
