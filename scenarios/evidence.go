package scenarios

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/scenarios/results"
)

// folder returns the opened folder for a run's artifacts, and the run's path within that folder.
func (e *Engine) folder() (*evidence.Folder, string, error) {
	if e.Folder != nil {
		return e.Folder, e.below, nil
	}
	f, err := evidence.Open(e.Out, nil)
	return f, e.below, err
}

// artifact returns the path of one of this scenario's files within the folder for artifacts.
func (r *run) artifact(name string) string {
	return filepath.Join(r.below, filepath.FromSlash(r.scenario.ID), name)
}

// seal checks that no other program wrote to the transcript's file. If one did, seal writes the transcript again from
// memory. If the transcript is no longer completely in memory, the verdict becomes error.
func (r *run) seal(res *results.Result) error {
	if r.log == nil {
		return nil
	}
	if r.engine.Folder == nil {
		defer r.folder.Close()
	}
	var again func(io.Writer) error
	if r.t.InMemory() {
		again = r.t.Save
	}
	err := r.log.Finish(again)
	switch {
	case err == nil:
	case errors.Is(err, evidence.ErrMoved):
		res.Findings = append(res.Findings, results.Finding{Rule: "EVIDENCE", Class: results.Warn,
			Message: fmt.Sprintf("Something changed the transcript while the agent ran: %v.", err)})
	default:
		res.Verdict, res.Reason = results.Error, "something changed the transcript while the agent ran: "+err.Error()
	}
	return nil
}

// inspect checks whether artifacts were removed or changed while agents ran. It must run after the last agent has
// exited. If an artifact was, the verdict of its scenario becomes error.
func (e *Engine) inspect(run *results.Run) {
	if e.Folder == nil {
		return
	}
	if e.Folder.Replaced() {
		run.Notes = append(run.Notes, "something removed or replaced the folder of the reports while agents ran")
	}
	changed := e.Folder.Changed()
	for i := range run.Results {
		r := &run.Results[i]
		lost := slices.DeleteFunc(slices.Clone(changed), func(name string) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Values(r.Artifacts)), func(a string) bool {
				return a == filepath.ToSlash(name)
			})
		})
		if len(lost) > 0 {
			r.Verdict = results.Error
			r.Reason = "something removed or changed files kept of this scenario: " + strings.Join(lost, ", ")
		}
	}
}
