package sweep

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Calibrate learns how an agent behaves from simple turns, which are not
// judged. If keep is not "", it tries to save the transcripts and the agent's
// version in that folder. Recall can load them later. learned is a paragraph
// for the user. If ctx has a deadline and it passes after the basic turns,
// Calibrate returns what they show, and saves nothing.
func (w *Sweeper) Calibrate(ctx context.Context, from *Generator, keep, version string) (g Grammar, learned string,
	err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSweep(ctx, w)
	temp, err := s.engine.MakeTemp()
	if err != nil {
		return nil, "", err
	}
	defer temp.Close()
	seen := map[string]*transcript.Transcript{}
	if err := s.ask(ctx, from.Questions(w.Engine.Profile), seen); err != nil {
		return nil, "", cmp.Or(context.Cause(ctx), err)
	}
	g, learned = from.Learn(seen)
	more := maps.Clone(seen)
	if from.More != nil && ctx.Err() == nil {
		err = s.ask(ctx, from.More(g), more)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // the basic turns suffice
		return g, learned + " There was no time to learn more.", nil
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		return nil, "", err
	}
	seen = more
	g, learned = from.Learn(seen)
	if keep != "" {
		if err := keepCalibration(s.engine.Out, keep, version, maps.Keys(seen)); err != nil {
			learned = fmt.Sprintf("%s acp-test cannot save this in %s and will learn it again: %v.", learned, keep, err)
		}
	}
	return g, learned, nil
}

// ask plays plain turns and adds their transcripts to seen.
func (s *sweep) ask(ctx context.Context, list map[string]Archive, seen map[string]*transcript.Transcript) error {
	var problems []error
	each(ctx, s, slices.Values(slices.Sorted(maps.Keys(list))), func(name string) {
		id := "calibration/" + name
		res, _ := s.runText(ctx, s.engine, list[name], id)
		t, _, err := logged(s.engine.Out, id)
		if res.Verdict == results.Error {
			err = errors.New(res.Reason)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", id, err))
			return
		}
		seen[name] = t
	})
	return errors.Join(problems...)
}

// versionFile is the name of the file that a calibration writes last. A
// calibration without it is incomplete.
const versionFile = "version"

// keepCalibration replaces the saved calibration. If several runs do this at
// the same time, one of them succeeds.
func keepCalibration(out, keep, version string, names iter.Seq[string]) error {
	if err := os.MkdirAll(filepath.Dir(keep), 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(keep), ".made-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	var errs []error
	for name := range names {
		dir := filepath.Join(made, filepath.FromSlash(name))
		text, err := confined.ReadBelow(filepath.Join(out, "calibration", filepath.FromSlash(name)), "transcript.jsonl")
		errs = append(errs, err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "transcript.jsonl"), text, 0o600))
	}
	errs = append(errs, os.WriteFile(filepath.Join(made, versionFile), []byte(version), 0o600))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_ = os.Rename(keep, filepath.Join(made, "before")) // the folder may not exist, or another run may move it
	if err := os.Rename(made, keep); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.RemoveAll(filepath.Join(keep, "before"))
}

// Recall learns an agent's behavior from the transcripts that Calibrate saved
// in a folder. version is the agent's version at that time. ok is false if the
// folder has no complete calibration.
func Recall(from *Generator, keep string) (g Grammar, learned, version string, ok bool) {
	text, err := os.ReadFile(filepath.Join(keep, versionFile))
	if err != nil {
		return nil, "", "", false
	}
	seen := map[string]*transcript.Transcript{}
	kept, _ := os.ReadDir(keep)
	for _, dir := range kept {
		if t, _, err := logged(keep, dir.Name()); err == nil {
			seen[dir.Name()] = t
		}
	}
	g, learned = from.Learn(seen)
	return g, learned, string(text), true
}

// CalibrationKey returns the name of the folder for an agent's calibration. It
// depends on the agent's command, environment and tools, on the program and
// script files in the command, and on the questions.
func CalibrationKey(from *Generator, p *agents.Profile, more []string) string {
	h := sha256.New()
	tools, _ := json.Marshal(p.Tools)
	fmt.Fprintf(h, "%q %q %q %q %s\n", p.Command, p.URL, more, p.Env, tools)
	for _, word := range append(slices.Clone(p.Command), more...) {
		file := word
		if found, err := exec.LookPath(word); err == nil {
			file = found
		}
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(h, file, info.Size(), info.ModTime().UnixNano())
		}
	}
	list := from.Questions(p)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		h.Write(list[name].Text())
	}
	return fmt.Sprintf("%s-%x", slug(p.Name), h.Sum(nil)[:8])
}
