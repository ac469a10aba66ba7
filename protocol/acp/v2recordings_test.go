package acp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// recordedAgain are scenarios whose recordings become scenarios again: each has something
// that version 2 alone has.
var recordedAgain = []string{"turns/requires-action", "queue/in-order", "items/cancel-call", "items/cancel-terminal",
	"background/stopped", "replay/null", "resume/silent", "opened/unknown-type", "negotiation/without-info",
	"cancel/other-session-goes-on"}

// A recording of version 2 becomes a scenario of version 2 that asks for the same: the correct
// agent passes it with the golden that was made with it, and one with a fault does not.
func TestRecordingsOfVersion2(t *testing.T) {
	list := slices.DeleteFunc(shipped(t, recordedAgain...),
		func(s *scenarios.Scenario) bool { return !slices.Contains(recordedAgain, s.ID) })
	e := engine(t, "")
	e.Out = t.TempDir()
	e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 4})
	store, again := golden.Store{Dir: t.TempDir()}, []*scenarios.Scenario{}
	for _, id := range recordedAgain {
		f, err := os.Open(filepath.Join(e.Out, id, "transcript.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		recording, err := replay.Read(recordings.V2(), f, nil)
		if f.Close(); err != nil {
			t.Fatal(err)
		}
		made, err := recordings.Convert(acp.V2(), recording, "Recorded.", nil)
		if err != nil || len(made.Left) > 0 {
			t.Fatalf("%s: %v, left out: %v", id, err, made)
		}
		s, err := acp.V2().Parse(id, id+".txtar", made.Text)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Write(e.Profile.Name, id,
			made.Golden(acp.V2().Canonical, scenarios.GoldenOptions(e.Profile))); err != nil {
			t.Fatal(err)
		}
		again = append(again, s)
	}
	run := func(fault string) (red int) {
		e := engine(t, fault)
		e.Golden = &store
		for _, r := range e.RunAll(context.Background(), again, scenarios.Plan{Jobs: 4}).Results {
			if r.Verdict == results.Pass {
				continue
			}
			if red++; fault == "" {
				t.Errorf("%s: %s %s %+v", r.ID, r.Verdict, r.Reason, r.Golden)
			}
		}
		return red
	}
	run("")
	for _, fault := range []string{"call-cancel-ends-the-turn", "resume-replays", "no-stop-reason"} {
		if run(fault) == 0 {
			t.Errorf("with %s nothing is red", fault)
		}
	}
}
