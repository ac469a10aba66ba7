package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// earlier is a run that a new one is compared with. It is read before the new
// one begins, which may replace its folder.
type earlier struct {
	run   results.Run
	texts map[string]string
}

func (o *options) earlier() (*earlier, error) {
	if o.against == "" {
		return nil, nil
	}
	run, err := readResults(o.against)
	if err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	return &earlier{run, canonicalTexts(run)}, nil
}

// compare says what changed in the scenarios that ran now: one that was left
// out by choice has not changed. What a scenario said before is kept beside what
// it says now, so that a page can show both.
func (e *earlier) compare(folder *evidence.Folder, run *results.Run, chosen []*scenarios.Scenario) error {
	if e == nil {
		return nil
	}
	old, texts := e.run, canonicalTexts(*run)
	old.Results = slices.DeleteFunc(slices.Clone(old.Results), func(r results.Result) bool {
		return !slices.ContainsFunc(chosen, func(s *scenarios.Scenario) bool { return s.ID == r.ID })
	})
	run.Against = verdict.Compare(old, *run, e.texts, texts)
	for _, r := range run.Results {
		was, ok := e.texts[r.ID]
		name := r.Artifacts["rendered"]
		if !ok || name == "" || was == texts[r.ID] {
			continue
		}
		name = path.Join(path.Dir(name), "before.txt")
		if err := folder.Write(filepath.FromSlash(name), []byte(was)); err != nil {
			return fmt.Errorf("--against: %w", err)
		}
		r.Artifacts["before"] = name
	}
	return nil
}

// canonicalTexts reads the text of each scenario, of the first repeat. One that
// is not there is not compared.
func canonicalTexts(run results.Run) map[string]string {
	texts := map[string]string{}
	root, err := os.OpenRoot(run.Out)
	if err != nil {
		return texts
	}
	defer root.Close()
	for _, r := range run.Results {
		if name := r.Artifacts["rendered"]; name != "" && r.Repeat <= 1 {
			if text, err := root.ReadFile(filepath.FromSlash(name)); err == nil {
				texts[r.ID] = string(text)
			}
		}
	}
	return texts
}

// writeBaseline lists all that fails in a run as known, if that is asked for. rebase judges the run
// by that, and returns the list.
func (o *options) writeBaseline(run *results.Run, rebase func() []agents.KnownFailure) error {
	if o.baselineWrite == "" {
		return nil
	}
	list := rebase()
	text := "# What is known to fail with " + run.Agent.Profile + ". Say why, and delete what is mended.\n" +
		string(agents.FormatKnownFailures(list))
	if err := os.WriteFile(o.baselineWrite, []byte(text), 0o644); err != nil {
		return fmt.Errorf("--baseline-write: %w", err)
	}
	run.Notes = append(run.Notes, fmt.Sprintf("known failures in %s: %d", o.baselineWrite, len(list)))
	return nil
}
