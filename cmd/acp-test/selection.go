package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
)

// selection is the set of scenarios that a command line chose to run.
type selection struct {
	list    []*scenarios.Scenario
	shipped bool // it contains suites of this program
	whole   bool // it has every scenario of its suites or folders
	of      protocol
	// elsewhere has the ids of scenarios that were left out because they need another binding.
	elsewhere []string
}

func (o *options) selection(h *host) (selection, error) {
	p, err := o.speaks(h)
	if err != nil {
		return selection{}, err
	}
	s := selection{of: p}
	s.shipped = len(o.paths) == 0 || len(o.suites) > 0
	s.whole = len(o.suites) == 0 || len(o.suites) == len(p.SuiteNames()) || slices.Contains(o.suites, language.AllSuites)
	if len(o.paths) > 0 {
		list, err := p.Load(o.paths...)
		if err != nil {
			return s, err
		}
		s.list = list
		for _, path := range o.paths {
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				s.whole = false
			}
		}
	}
	if s.shipped {
		list, err := p.Shipped(o.suites...)
		if err != nil {
			return s, err
		}
		s.list = append(s.list, list...)
	}
	if err := distinct(s.list); err != nil {
		return s, err
	}
	all := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x *scenarios.Scenario) bool { return x.Role == "agent" })
	roles := all - len(s.list)
	all = len(s.list)
	if s.list, err = o.those(s.list); err != nil {
		return s, err
	}
	s.whole = s.whole && len(s.list) == all
	switch {
	case len(s.list) > 0:
		return s, nil
	case all > 0:
		return s, fmt.Errorf("none of %d scenarios matches%s; acp-test run --list lists all", all, o.filters())
	case roles > 0:
		return s, errors.New("all scenarios script the agent's side (role agent): acp-test editors runs those")
	}
	return s, errors.New("there are no scenarios")
}

// reached drops the scenarios of suites that need another binding than the agent's. It drops nothing if the command
// line names suites or scenarios, if no scenario would remain, or if the agent cannot be found.
func (s *selection) reached(h *host, o *options) {
	silent := *h
	silent.err = io.Discard // the engine prints these messages later
	p, err := o.subject(&silent, s.of)
	if err != nil || o.match != "" || len(o.suites) > 0 && !slices.Contains(o.suites, language.AllSuites) {
		return
	}
	elsewhere := lists.Where(s.list, func(x *scenarios.Scenario) bool {
		return x.Suite != "" && x.Elsewhere(p.Binding()) != ""
	})
	if len(elsewhere) < len(s.list) {
		s.elsewhere = lists.Map(elsewhere, func(x *scenarios.Scenario) string { return x.ID })
		s.list = lists.Where(s.list, func(x *scenarios.Scenario) bool { return !slices.Contains(elsewhere, x) })
	}
}

// over returns how many shipped scenarios apply to agents with a binding: stdio, http or ws.
func (p protocol) over(binding string) (int, error) {
	all, err := p.Shipped()
	return lists.Count(all, func(x *scenarios.Scenario) bool { return x.Elsewhere(binding) == "" }), err
}

// filters returns the flags --run and --tag as the user typed them, or "" if neither is set.
func (o *choice) filters() string {
	s := ""
	if o.match != "" {
		s += fmt.Sprintf(" --run %q", o.match)
	}
	if len(o.tags) > 0 {
		s += " --tag " + strings.Join(o.tags, ",")
	}
	return s
}

func distinct(list []*scenarios.Scenario) error {
	files := map[string]string{}
	for _, s := range list {
		if other, twice := files[s.ID]; twice {
			return fmt.Errorf("%s: %s has the same id %q; put an %s at the root of one of them", s.File, other, s.ID,
				language.Config)
		}
		files[s.ID] = s.File
	}
	return nil
}

// those returns the scenarios in list that match --run and --tag.
func (s *choice) those(list []*scenarios.Scenario) ([]*scenarios.Scenario, error) {
	match, err := s.matching()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(x *scenarios.Scenario) bool {
		return !match.MatchString(x.ID) || !tagged(x.Tags, s.tags)
	}), nil
}

// tagged reports whether a scenario with these tags is wanted. The scenario must have none of the tags that wanted
// lists with a "!". If wanted lists other tags, the scenario must have one of them.
func tagged(tags, wanted []string) bool {
	any, need := false, false
	for _, w := range wanted {
		if not, ok := strings.CutPrefix(w, "!"); ok {
			if slices.Contains(tags, not) {
				return false
			}
			continue
		}
		need = true
		any = any || slices.Contains(tags, w)
	}
	return any || !need
}

// complete reports whether a golden without a selected scenario is stale. It is false if only part of the scenarios
// was selected. Suites and scenarios on disk may share a golden folder, so it is also false if the folder has goldens
// of the kind that was not selected.
func (s selection) complete(store *golden.Store, agent string) bool {
	if !s.whole || store == nil {
		return false
	}
	suites := s.of.SuiteNames()
	for _, id := range store.List(agent) {
		suite, _, _ := strings.Cut(filepath.ToSlash(id), "/")
		of := slices.Contains(suites, suite)
		if slices.Contains(s.elsewhere, id) {
			return false
		}
		if of != s.shipped && !slices.ContainsFunc(s.list, func(x *scenarios.Scenario) bool { return x.ID == id }) {
			return false
		}
	}
	return true
}

// shard returns the part of the scenarios to run. --shard I/N names it, or else the variables of a CI system. nil
// means all scenarios. from names the flag or variable.
func (h *host) shard(flag string) (s *results.Shard, from string, err error) {
	if flag != "" {
		var i, n int
		if k, err := fmt.Sscanf(flag+"\n", "%d/%d\n", &i, &n); k != 2 || err != nil || i < 1 || i > n {
			return nil, "", fmt.Errorf("--shard %q: I/N is expected, with I from 1 to N", flag)
		}
		if n == 1 {
			return nil, "", nil
		}
		return &results.Shard{Index: i, Of: n}, "--shard", nil
	}
	for _, ci := range []struct {
		index, total string
		first        int // number of the first job
	}{
		{"CI_NODE_INDEX", "CI_NODE_TOTAL", 1},                         // GitLab
		{"CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0},                 // CircleCI
		{"BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0}, // Buildkite
		{"SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1},   // Azure Pipelines
		{"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0},                // Kubernetes, as ci/ sets it
	} {
		index, ok1 := h.getenv(ci.index)
		total, ok2 := h.getenv(ci.total)
		if !ok1 || !ok2 {
			continue
		}
		i, err1 := strconv.Atoi(index)
		n, err2 := strconv.Atoi(total)
		i += 1 - ci.first
		if err1 != nil || err2 != nil || i < 1 || i > n {
			return nil, "", fmt.Errorf("%s=%q and %s=%q do not say which part to run; --shard 1/1 runs all", ci.index, index,
				ci.total, total)
		}
		if n > 1 {
			return &results.Shard{Index: i, Of: n}, ci.index, nil
		}
	}
	return nil, "", nil
}

// readDurations reads a file with the durations of scenarios, one "ID SECONDS" per line. The report format durations
// writes such files.
func readDurations(file string) (map[string]time.Duration, error) {
	if file == "" {
		return nil, nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--durations: %w", err)
	}
	found := map[string]time.Duration{}
	for i, line := range strings.Split(string(src), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// The id may contain spaces.
		at := strings.LastIndexByte(line, ' ')
		seconds, err := strconv.ParseFloat(line[at+1:], 64)
		if at < 0 || err != nil || seconds < 0 {
			return nil, fmt.Errorf("%s:%d: the id of a scenario and its seconds are expected, such as: cancel/idle 0.42", file,
				i+1)
		}
		found[strings.TrimSpace(line[:at])] = time.Duration(seconds * float64(time.Second))
	}
	return found, nil
}

// narrowed holds the effect of --failed and --since on the chosen scenarios. failed has the ids of scenarios that
// failed in the run in --out; they run first.
type narrowed struct {
	failed map[string]bool
	since  bool
	all    bool            // a file changed on which every scenario depends
	files  map[string]bool // files of scenarios that changed, or whose goldens changed
	only   bool            // --failed: keep only failed scenarios
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

// from removes the scenarios that --failed and --since exclude from a selection.
func (n *narrowed) from(h *host, s *selection) {
	all := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x *scenarios.Scenario) bool {
		return !n.failed[x.ID] && (n.only || n.since && !n.all && !n.files[h.absolute(x.File)])
	})
	s.whole = s.whole && len(s.list) == all
}

// nothing explains why no scenario is left to run.
func (n *narrowed) nothing(o *options) string {
	failed := "nothing failed in " + o.out
	if len(n.failed) > 0 {
		failed = fmt.Sprintf("none of the named scenarios failed in %s (but %s did)", o.out, few(n.failed))
	}
	if n.since {
		return fmt.Sprintf("nothing that a scenario depends on changed since %s, and %s", o.since, failed)
	}
	return failed
}

// few returns up to three names of a set, and the number of the others.
func few(set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}

// changedSince returns the absolute paths of the files that changed since ref. ref is a folder with results or a
// commit in git. New files count as changed.
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

// git runs git in a folder and returns its output.
func (h *host) git(dir string, words ...string) ([]byte, error) {
	c := exec.Command("git", words...)
	c.Dir, c.Env = dir, h.env
	text, err := c.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
		err = errors.New(string(bytes.TrimSpace(failed.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("this is neither a folder with results nor a commit; git says: %w", err)
	}
	return text, nil
}

// savedAfter returns the files below the working directory that were saved after moment. It skips hidden folders and
// node_modules.
func (h *host) savedAfter(moment time.Time) map[string]bool {
	files := map[string]bool{}
	_ = filepath.WalkDir(h.cwd, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that cannot be read cannot affect a run
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
