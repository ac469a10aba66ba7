package schedules_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// Whatever a scenario says and its run logged, each schedule that is made of them is a
// scenario that can be read.
func FuzzWrite(f *testing.F) {
	for _, id := range []string{"prompt-turn/two-turns", "permission/allow-once-edit", "tool-calls/execute"} {
		text, log := ran(f, id)
		f.Add(text, log)
	}
	f.Fuzz(func(t *testing.T, text, recorded []byte) {
		if _, err := acp.V1().Parse("a/b", "b.txtar", text); err != nil {
			return
		}
		log, err := transcript.Load(bytes.NewReader(recorded), nil)
		if err != nil {
			return
		}
		defer log.Close()
		base, _ := schedules.V1().Base(acp.V1().CommandTable(), "a/b", text)
		if base == nil {
			return
		}
		base.Observe(log, []sweep.Effect{{What: "new", File: "a.txt"}, {What: "changed", File: "b"}})
		all := func(string) bool { return true }
		list, _ := base.Schedules(nil, sweep.Wanted{Action: all, Point: func(string, string) bool { return true },
			Drawn: func(turn int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(turn))) }})
		for i, s := range list {
			if i%7 != 0 && i > 20 { // of many, some of each kind
				continue
			}
			a, _ := s.Write(nil)
			if _, err := acp.V1().Parse("a/b", "b.txtar", a.Text()); err != nil {
				t.Fatalf("%s at %s: %v\n%s", s.Action, s.Point, err, a.Text())
			}
		}
	})
}

// ran returns a shipped scenario and the transcript of a run of it.
func ran(f *testing.F, id string) (text, log []byte) {
	f.Helper()
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	profile, err := agents.Shipped("reference")
	must(err)
	self, err := os.Executable()
	must(err)
	e := &scenarios.Engine{Protocol: acp.V1(), Profile: profile, Self: self, Cwd: f.TempDir(), Host: os.Environ(),
		Out: f.TempDir(), Temp: f.TempDir(), Seed: 1}
	list, err := acp.V1().Shipped()
	must(err)
	for _, sc := range list {
		if sc.ID == id {
			e.Run(context.Background(), sc)
			text, err = sc.Source()
			must(err)
		}
	}
	log, err = os.ReadFile(filepath.Join(e.Out, filepath.FromSlash(id), "transcript.jsonl"))
	must(err)
	return text, log
}
