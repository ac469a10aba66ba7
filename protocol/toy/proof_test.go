package toy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

func engine(t *testing.T, broken bool) *scenarios.Engine {
	t.Helper()
	return &scenarios.Engine{
		Protocol: toy(t), Profile: &agents.Profile{Name: "toy", URL: "toy://here"}, Out: t.TempDir(), Temp: t.TempDir(),
		Cwd: t.TempDir(),
		Connect: func(_ context.Context, log *transcript.Transcript, conn int, _ agents.Launch) (*transport.Agent,
			error) {
			return transport.InProcess(log, conn, agent(broken)), nil
		},
		Golden: &golden.Store{Dir: t.TempDir()},
	}
}

const stopped = `# A question is stopped in the middle of its answer.
check stops
ask 'one slow two'
await word word=slow
stop
await turn stopped
text ~ '^oneslow'
check goes-on
ask 'three'
await word word=three
await turn done
`

func run(t *testing.T, e *scenarios.Engine, script string) results.Result {
	t.Helper()
	s, err := e.Protocol.Parse("toy/case", "case.txtar", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return e.Run(context.Background(), s)
}

func TestScenarioRuleAndGolden(t *testing.T) {
	e := engine(t, false)
	e.Update = true
	if r := run(t, e, stopped); r.Verdict != results.Pass || r.Golden == nil || r.Golden.State != "updated" {
		t.Fatalf("got %s %s %+v, golden %+v", r.Verdict, r.Reason, r.Checks, r.Golden)
	}
	e.Update = false
	if r := run(t, e, stopped); r.Golden == nil || r.Golden.State != "match" {
		t.Errorf("golden %+v, want a match", r.Golden)
	}
	broken := engine(t, true)
	broken.Golden = e.Golden
	r := run(t, broken, stopped)
	if len(r.Findings) != 1 || r.Findings[0].Rule != "LATE" || r.Verdict != results.Fail {
		t.Errorf("got %s, findings %+v, golden %+v; want LATE", r.Verdict, r.Findings, r.Golden)
	}
}

func TestMistakesNameItsWords(t *testing.T) {
	_, err := toy(t).Parse("x", "x.txtar", []byte("# X.\nask 'a'\nawait wrod\n"))
	if err == nil || !strings.Contains(err.Error(), `x.txtar:3:7: "wrod" is not a pattern (did you mean "word"?`) {
		t.Errorf("got %v", err)
	}
}

func TestSweep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "once.txtar")
	if err := os.WriteFile(file, []byte("# One question.\ncheck answers\nask 'one two'\nawait turn done\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{false, true} {
		e := engine(t, broken)
		list, err := e.Protocol.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		w := sweep.Sweeper{Engine: e, Planner: planner(), Repro: t.TempDir()}
		out, err := w.Run(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !broken && (len(out.Findings) != 0 || out.Run.Sweep.Explored != 1):
			t.Errorf("the correct agent: %d explored, findings %+v", out.Run.Sweep.Explored, out.Findings)
		case broken && (len(out.Findings) != 1 || out.Findings[0].Rule != "LATE" ||
			out.Findings[0].Action != "ask again"):
			t.Errorf("the broken agent: findings %+v, want LATE after ask again", out.Findings)
		}
	}
}

func TestReplay(t *testing.T) {
	e := engine(t, false)
	r := run(t, e, stopped)
	file, err := os.Open(filepath.Join(e.Out, r.Artifacts["transcript"]))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recording, err := transcript.Load(file, frames{})
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: frames{}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := replay.Player{Recording: recording, Protocol: recordings{},
		Start: func(_ context.Context, conn int) (*transport.Agent, error) {
			return transport.InProcess(log, conn, agent(false)), nil
		}}
	played, err := p.Play(context.Background(), log)
	if err != nil || len(played.Missed) > 0 {
		t.Fatalf("missed %q, %v", played.Missed, err)
	}
	want, got := text{}.Render(recording.All(), golden.Options{}), text{}.Render(log.All(), golden.Options{})
	if got != want || !strings.Contains(got, "slow") {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
