package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// marker is the name of a file in each results folder. acp-test empties only folders that contain this file. A run
// locks the file while it writes to the folder.
const (
	marker     = ".acp-test-out"
	markerText = "acp-test writes this folder, and replaces it with each run.\n"
)

// reads returns the existing files and folders that the command line names, except those that the command writes.
func (h *host) reads() (paths []string) {
	writes := []string{"--out", "--report", "--repro", "--issue", "--save"}
	for i, word := range h.args {
		flag, value, joined := strings.Cut(word, "=")
		if !joined || !strings.HasPrefix(word, "-") {
			flag, value = "", word
			if i > 0 {
				flag = h.args[i-1]
			}
		}
		if _, err := os.Lstat(value); err == nil && !slices.Contains(writes, flag) {
			paths = append(paths, h.absolute(value))
		}
	}
	return paths
}

// unread returns dir if the command reads nothing in it. Otherwise it returns the first of dir-2, dir-3, … in which
// the command reads nothing.
func (h *host) unread(dir string) string {
	free := dir
	for n := 2; slices.ContainsFunc(h.reads(), func(path string) bool { return within(free, path) }); n++ {
		free = fmt.Sprintf("%s-%d", filepath.Clean(dir), n)
	}
	return free
}

// freeOut returns the folder for the results of a run. If the command reads from dir, it returns another folder and
// tells the user.
func (h *host) freeOut(dir string) string {
	free := h.unread(dir)
	if free != dir {
		fmt.Fprintf(h.err, "acp-test: this command reads files in %s, so the results go to %s\n", dir, free)
	}
	return free
}

// takeOut creates an empty results folder and returns its absolute path. It never takes a folder in which the command
// reads files. After release, another run may use the folder.
func (h *host) takeOut(o *output) (path string, release func(), err error) {
	o.out = h.freeOut(o.out)
	if path, err = filepath.Abs(o.out); err != nil {
		return "", nil, err
	}
	release, err = h.prepareOut(o.out)
	return path, release, err
}

// prepareOut creates an empty folder for one run, and locks it until release is called. It renames the folder of the
// previous run to DIR.previous, or to DIR.previous-2 and so on if the command reads files there. It returns an error
// if dir contains files of other programs.
func (h *host) prepareOut(dir string) (release func(), err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("--out: %w", err)
	case len(entries) > 0:
		if !ours(dir) {
			return nil, fmt.Errorf("--out: %s holds files that acp-test did not write; name a new or an empty folder", dir)
		}
		release, err := claim(dir)
		if err != nil {
			return nil, err
		}
		release()
		if err := h.setAside(dir); err != nil {
			return nil, fmt.Errorf("--out: keeping the previous run: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	// The .gitignore keeps users from committing the results by accident.
	for name, text := range always() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
	}
	return claim(dir)
}

// always returns the files that every results folder contains.
func always() map[string]string { return map[string]string{marker: markerText, ".gitignore": "*\n"} }

// claim locks a results folder for one run. The operating system releases the lock even if the process crashes.
func claim(dir string) (release func(), err error) {
	lock := flock.New(filepath.Join(dir, marker))
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if !got {
		return nil, fmt.Errorf("--out: another run is writing %s; wait for its end or name another folder", dir)
	}
	return func() { _ = lock.Close() }, nil
}

func ours(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, marker))
	return err == nil
}

// setAside renames dir to dir.previous and deletes an older dir.previous. If the command reads files in dir.previous,
// setAside adds a number to the name.
func (h *host) setAside(dir string) error {
	previous := h.unread(filepath.Clean(dir) + ".previous")
	if _, err := os.Lstat(previous); err == nil {
		if !ours(previous) {
			return fmt.Errorf("acp-test did not write %s; remove or rename it", previous)
		}
		if err := os.RemoveAll(previous); err != nil {
			return err
		}
	}
	return os.Rename(dir, previous)
}

// writeReports writes the usual reports into the folder out, and then the requested ones. If out is "", it writes
// only the requested ones. After an error, it still writes the remaining reports.
func (h *host) writeReports(run results.Run, out string, asked []string) error {
	if out == "" {
		return h.writeInto(nil, run, "", asked)
	}
	folder, err := evidence.Open(out, nil)
	if err != nil {
		return err
	}
	defer folder.Close()
	return h.writeInto(folder, run, out, asked)
}

// writeInto does the work of writeReports. The caller opened folder before any agent ran; nil means no folder.
func (h *host) writeInto(folder *evidence.Folder, run results.Run, out string, asked []string) error {
	if folder != nil {
		asked = append([]string{"json", "junit", "html"}, asked...)
	}
	var errs []error
	for _, r := range asked {
		format, file, _ := strings.Cut(r, "=")
		if file == "" {
			file, _ = reports.File(format)
			file = filepath.Join(out, file)
		}
		name, below := strings.CutPrefix(file, out+string(filepath.Separator))
		if folder == nil || !below {
			errs = append(errs, h.report(run, format, file))
			continue
		}
		var b bytes.Buffer
		errs = append(errs, reports.Write(inspected(run.Protocol), format, run, &b), folder.Write(name, b.Bytes()))
	}
	return errors.Join(errs...)
}

// report writes a run in one format to a file; - is stdout.
func (h *host) report(run results.Run, format, file string) error {
	write := func(w io.Writer) error { return reports.Write(inspected(run.Protocol), format, run, w) }
	if file == "-" {
		return write(h.out)
	}
	return writeFile(file, write)
}

func writeFile(name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replaceFile replaces a file atomically, so that no reader sees a partly written file.
func replaceFile(file string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".acp-test-*") // only the owner may read this file
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the write error is more important
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// earlier is a previous run to compare with a new one. It is loaded before the new run starts, because the new run
// may overwrite its folder.
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

// compare stores the changes since the earlier run in run.Against, for the chosen scenarios only. For each changed
// scenario it saves the earlier text next to the new one, so that a page can show both.
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

// canonicalTexts returns the canonical text of each scenario by id, read from the first repeat. It skips scenarios
// without such a text.
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

// writeBaseline writes all failures of a run as known failures to the file of --baseline-write, if the flag is set.
// rebase judges the run again with these failures as known, and returns them.
func (o *options) writeBaseline(run *results.Run, rebase func() []agents.KnownFailure) error {
	if o.baselineWrite == "" {
		return nil
	}
	list := rebase()
	text := "# Known failures of " + run.Agent.Profile + ". Give each a reason, and delete those that are fixed.\n" +
		string(agents.FormatKnownFailures(list))
	if err := os.WriteFile(o.baselineWrite, []byte(text), 0o644); err != nil {
		return fmt.Errorf("--baseline-write: %w", err)
	}
	run.Notes = append(run.Notes, fmt.Sprintf("known failures written to %s: %d", o.baselineWrite, len(list)))
	return nil
}
