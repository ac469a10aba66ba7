package agui_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// recorded are the transcripts of a run of scenarios.
func recorded(t *testing.T, e *scenarios.Engine, list []*scenarios.Scenario) (files []string) {
	t.Helper()
	e.Out = t.TempDir()
	run := e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 8})
	for _, r := range run.Results {
		files = append(files, filepath.Join(e.Out, filepath.FromSlash(r.Artifacts["transcript"])))
	}
	return files
}

func load(t *testing.T, file string) *transcript.Transcript {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	log, err := transcript.Load(in, agui.V1().Classifier)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// Each run of a shipped scenario is a scenario again, with nothing left out, and the correct agent passes it.
func TestConvert(t *testing.T) {
	t.Parallel()
	var again []*scenarios.Scenario
	var texts []string
	for _, file := range recorded(t, engine(t, ""), shipped(t)) {
		text, left, err := aguirecord.Convert(agui.V1(), load(t, file), "Recorded.", nil)
		if err != nil || len(left) > 0 {
			t.Fatalf("%s: %v, left out: %q", file, err, left)
		}
		s, err := agui.V1().Parse(filepath.Base(filepath.Dir(filepath.Dir(file)))+"/"+filepath.Base(filepath.Dir(file)),
			file, text)
		if err != nil {
			t.Fatal(err)
		}
		again, texts = append(again, s), append(texts, string(text))
	}
	run := engine(t, "").RunAll(context.Background(), again, scenarios.Plan{Jobs: 8})
	for i, r := range run.Results {
		if r.Verdict != results.Pass {
			t.Errorf("%s: %s %s\n%s", r.ID, r.Verdict, r.Reason, texts[i])
		}
	}
	if posts, script := len(again),
		strings.Join(texts, "\n"); posts < 80 || !strings.Contains(script, "\nresume reject") ||
		!strings.Contains(script, "\nhang-up") || !strings.Contains(script, "\ntool-result 1 ") ||
		!strings.Contains(script, "\npost ") {
		t.Errorf("%d scenarios, which do not post all that there is", posts)
	}
}

// A recording in which something went wrong is made as small as what shows it again.
func TestReduce(t *testing.T) {
	t.Parallel()
	file := recorded(t, engine(t, "args-after-end"), shippedAs(t, "tools/three-rounds"))[0]
	text, _, err := aguirecord.Convert(agui.V1(), load(t, file), "Reduced.", nil)
	if err != nil {
		t.Fatal(err)
	}
	e := engine(t, "args-after-end")
	e.Out, e.StepTimeout = t.TempDir(), time.Second
	made, err := (&sweep.Reduction{Engine: e, Confirm: 2, Cause: "TOOL-PAIR"}).
		Run(context.Background(), aguirecord.Relaxed(text))
	if err != nil {
		t.Fatal(err)
	}
	if made.Hits != made.Runs || made.Lines > 4 || strings.Count(made.Script.Model, "tool:") != 1 {
		t.Errorf("%d of %d runs show it, %d lines:\n%s", made.Hits, made.Runs, made.Lines, made.Script.Text())
	}
}

func shippedAs(t *testing.T, id string) []*scenarios.Scenario {
	t.Helper()
	for _, s := range shipped(t) {
		if s.ID == id {
			return []*scenarios.Scenario{s}
		}
	}
	t.Fatalf("there is no scenario %s", id)
	return nil
}
