package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios/language"
)

// settle is how long the files must stay unchanged before a new run starts. Editors and compilers write a file in
// several steps.
const settle = 100 * time.Millisecond

// watch runs all scenarios once. Whenever files are saved, it runs the scenarios that they affect, until it is
// interrupted. It returns the error of the last run.
func (h *host) watch(c *cobra.Command, o *options) error {
	var last error
	err := h.again(c.Context(), o, func(files map[string]bool) {
		last = h.once(c, o, files)
		var s status
		if last != nil && !errors.As(last, &s) {
			complain(h, last)
		}
		fmt.Fprintln(h.out, "waiting for a file to be saved; Ctrl-C stops")
	})
	return errors.Join(last, err)
}

// again calls run with nil, which means all scenarios. It then calls run after each change until ctx ends. After a
// change of a scenario or its golden, files contains only that scenario. After a change of the agent's program, a
// profile or a setting, files is nil again.
func (h *host) again(ctx context.Context, o *options, run func(files map[string]bool)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("--watch: %w", err)
	}
	defer w.Close()
	_, err = h.watchFolders(w, o)
	for files := map[string]bool(nil); err == nil; {
		run(files)
		var x *watched
		if x, err = h.watchFolders(w, o); err != nil { // the run may have created folders
			break
		}
		if files, err = x.next(ctx, w); ctx.Err() != nil {
			break
		}
	}
	return err
}

// next waits until saved files affect scenarios. It returns the files of these scenarios, or nil for all scenarios.
func (x *watched) next(ctx context.Context, w *fsnotify.Watcher) (map[string]bool, error) {
	for {
		saved, err := savedFiles(ctx, w)
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		if all, files := x.touched(saved); all {
			return nil, nil
		} else if len(files) > 0 {
			return files, nil
		}
	}
}

// watchFolders watches all folders in which a relevant file may change.
func (h *host) watchFolders(w *fsnotify.Watcher, o *options) (*watched, error) {
	x := h.watched(o)
	for _, dir := range x.folders {
		// A missing folder is not an error: it may come back.
		if err := w.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--watch: %s: %w", dir, err)
		}
	}
	return x, nil
}

// savedFiles waits for files to change and returns their absolute paths. It returns once no file has changed for the
// duration settle.
func savedFiles(ctx context.Context, w *fsnotify.Watcher) (map[string]bool, error) {
	names := map[string]bool{}
	var quiet <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case err := <-w.Errors:
			return nil, fmt.Errorf("--watch: %w", err)
		case e := <-w.Events:
			if e.Has(fsnotify.Write) || e.Has(fsnotify.Create) || e.Has(fsnotify.Rename) || e.Has(fsnotify.Remove) {
				names[e.Name] = true
				quiet = time.After(settle)
			}
		case <-quiet:
			return names, nil
		}
	}
}

// watched maps files to the scenarios that they affect.
type watched struct {
	folders    []string          // folders to watch
	roots      []string          // folders with scenarios, including new ones
	everything map[string]bool   // files on which every scenario depends
	scenario   map[string]string // path of a golden -> file of its scenario
	update     bool              // the runs write goldens, so a saved golden is no change
}

func (h *host) watched(o *options) *watched {
	x := &watched{everything: map[string]bool{}, scenario: map[string]string{}, update: o.update}
	depend := func(file string) {
		abs := h.absolute(file)
		if info, err := os.Stat(abs); file != "" && err == nil && info.Mode().IsRegular() {
			x.everything[abs] = true
			x.folders = append(x.folders, filepath.Dir(abs))
		}
	}
	depend(o.baseline)
	depend(o.settings)
	for dir := h.cwd; ; dir = filepath.Dir(dir) {
		depend(filepath.Join(dir, language.Config))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if isFile(o.agent) {
		depend(o.agent)
	}
	if p, err := h.profile(o.agent, o.settings, o.command); err == nil {
		h.dependOnAgent(p, depend)
		if chosen, err := o.selection(h); err == nil {
			for _, s := range chosen.list {
				golden := filepath.Join(h.absolute(o.golden), p.Name, filepath.FromSlash(s.ID)+".golden")
				x.scenario[golden] = h.absolute(s.File)
				x.folders = append(x.folders, filepath.Dir(golden))
			}
		}
	}
	for _, path := range o.paths {
		x.addRoot(h.absolute(path), h.absolute(o.out))
	}
	slices.Sort(x.folders)
	x.folders = slices.DeleteFunc(slices.Compact(x.folders), func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir()
	})
	return x
}

// dependOnAgent calls depend with the agent's program and with each word of its command, because a word may be a file
// such as a script.
func (h *host) dependOnAgent(p *agents.Profile, depend func(string)) {
	if found, err := p.Locate(h.sandbox()); err == nil && found.Where != agents.InSelf && found.Where != agents.InPath {
		depend(found.Path)
	}
	for _, word := range p.Command[min(1, len(p.Command)):] {
		depend(word)
	}
}

func (x *watched) addRoot(path, out string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	x.roots = append(x.roots, path)
	if !info.IsDir() {
		x.folders = append(x.folders, filepath.Dir(path))
		return
	}
	// A folder that cannot be read is not watched; the run reports the error.
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return nil
		case name != path && strings.HasPrefix(d.Name(), "."), strings.HasPrefix(name, out):
			return fs.SkipDir
		}
		x.folders = append(x.folders, name)
		return nil
	})
}

func (h *host) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(h.cwd, name)
}

// touched returns the scenarios that the saved files affect. If all is true, every scenario is affected; otherwise
// files has the affected scenario files.
func (x *watched) touched(saved map[string]bool) (all bool, files map[string]bool) {
	files = map[string]bool{}
	for name := range saved {
		// A new folder may contain files that were saved before the watch began.
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			inside, _ := acp.V1().Files(name) // a folder without scenarios changes nothing
			for _, file := range inside {
				saved[file] = true
			}
		}
	}
	for name := range saved {
		switch {
		case x.everything[name]:
			return true, nil
		case x.scenario[name] != "" && !x.update:
			files[x.scenario[name]] = true
		case filepath.Ext(name) == ".txtar" && slices.ContainsFunc(x.roots, func(r string) bool { return within(r, name) }):
			if _, err := os.Stat(name); err == nil {
				files[name] = true
			}
		}
	}
	return false, files
}
