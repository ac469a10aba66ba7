package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// narrowed says which of the chosen scenarios --failed and --since leave, and which of
// them failed in the run whose results lie in --out: those are run first.
type narrowed struct {
	failed map[string]bool
	since  bool
	all    bool            // something changed that every scenario depends on
	files  map[string]bool // of scenarios that changed, or their goldens
	only   bool            // what failed alone
}

func (h *host) narrow(o *options) (*narrowed, error) {
	n := &narrowed{failed: map[string]bool{}, since: o.since != "", only: o.failed}
	last, err := readResults(o.out)
	switch {
	case err == nil:
		for _, r := range last.Results {
			if !r.Known && r.Verdict != results.Pass && r.Verdict != results.Skip {
				n.failed[r.ID] = true
			}
		}
	case !errors.Is(err, fs.ErrNotExist) && o.failed:
		return nil, fmt.Errorf("--failed: %w", err)
	case o.failed:
		return nil, fmt.Errorf("--failed: %s holds no results; run without --failed first", o.out)
	}
	if !n.since {
		return n, nil
	}
	changed, err := h.changedSince(o.since)
	if err != nil {
		return nil, fmt.Errorf("--since %s: %w", o.since, err)
	}
	n.all, n.files = h.watched(o).touched(changed)
	return n, nil
}

// from takes what is not wanted out of a selection.
func (n *narrowed) from(h *host, s *selection) {
	all := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x *scenarios.Scenario) bool {
		return !n.failed[x.ID] && (n.only || n.since && !n.all && !n.files[h.absolute(x.File)])
	})
	s.whole = s.whole && len(s.list) == all
}

// nothing says why nothing is left to run.
func (n *narrowed) nothing(o *options) string {
	failed := "nothing failed in " + o.out
	if len(n.failed) > 0 {
		failed = fmt.Sprintf("none of those named failed in %s (%s did)", o.out, few(n.failed))
	}
	if n.since {
		return fmt.Sprintf("nothing that a scenario depends on changed since %s, and %s", o.since, failed)
	}
	return failed
}

// few names the first three of a set.
func few(set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}

// changedSince lists the files, by their absolute names, that changed since a run whose
// results are in a folder, or since a commit that git knows. New files count.
func (h *host) changedSince(ref string) (map[string]bool, error) {
	if info, err := os.Stat(h.absolute(ref)); err == nil && info.IsDir() {
		run, err := readResults(h.absolute(ref))
		if err != nil {
			return nil, err
		}
		return h.savedAfter(run.Started), nil
	}
	up, err := h.git(h.cwd, "rev-parse", "--show-cdup")
	if err != nil {
		return nil, err
	}
	top := filepath.Join(h.cwd, strings.TrimSpace(string(up)))
	changed, err := h.git(top, "diff", "--name-only", "-z", "--end-of-options", ref)
	if err != nil {
		return nil, err
	}
	untracked, err := h.git(top, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for name := range bytes.SplitSeq(append(changed, untracked...), []byte{0}) {
		if len(name) > 0 {
			files[filepath.Join(top, string(name))] = true
		}
	}
	return files, nil
}

// git runs git in a folder.
func (h *host) git(dir string, words ...string) ([]byte, error) {
	c := exec.Command("git", words...)
	c.Dir, c.Env = dir, h.env
	text, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		err = errors.New(string(bytes.TrimSpace(failed.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("it is no folder with results, and git says: %w", err)
	}
	return text, nil
}

// savedAfter lists the files below the working directory, without hidden folders, that were
// saved after a moment.
func (h *host) savedAfter(moment time.Time) map[string]bool {
	files := map[string]bool{}
	_ = filepath.WalkDir(h.cwd, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read has no part in a run
		}
		if d.IsDir() && name != h.cwd && (d.Name()[0] == '.' || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil && !d.IsDir() && info.ModTime().After(moment) {
			files[name] = true
		}
		return nil
	})
	return files
}
