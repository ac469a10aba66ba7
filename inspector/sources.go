package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lists"
)

// Source is a folder of results, or one transcript.
type Source struct {
	// Name is the user's name for the source.
	Name string
	// Dir is the folder whose transcripts are shown; with File, only that one is shown.
	Dir, File string
	// Round is the source's number among repeated rounds of runs; 0 for other sources. The page shows the newest round
	// next to the last full one.
	Round int

	problem string
	dropped bool
}

// Tell makes the page show a problem of a source.
func (s *Server) Tell(name, problem string) {
	s.change(name, func(from *Source) { from.problem = problem })
}

// Drop stops showing a source. No other source gets its number.
func (s *Server) Drop(name string) { s.change(name, func(from *Source) { from.dropped = true }) }

func (s *Server) change(name string, do func(*Source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.Sources {
		if s.Sources[i].Name == name {
			do(&s.Sources[i])
		}
	}
}

// Add adds a source, whose folder need not exist yet.
func (s *Server) Add(from Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Sources = append(s.Sources, from)
}

// Shown returns the current sources.
func (s *Server) Shown() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Sources)
}

// Open opens a file of a source, which is given by its number. It opens nothing outside of the source's folder.
func (s *Server) Open(source int, name string) (*os.File, error) {
	return s.file(strconv.Itoa(source), name)
}

// source returns the source with a number.
func (s *Server) source(number string) (Source, error) {
	n, err := strconv.Atoi(number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || n < 0 || n >= len(s.Sources) {
		return Source{}, fmt.Errorf("source %q: %w", number, os.ErrNotExist)
	}
	return s.Sources[n], nil
}

func (s *Server) root(dir string) (*confined.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.roots[dir]; ok {
		return r, nil
	}
	r, err := confined.Open(dir)
	if err != nil {
		return nil, err
	}
	if s.roots == nil {
		s.roots = map[string]*confined.Root{}
	}
	s.roots[dir] = r
	return r, nil
}

// file opens a file of a source: nothing outside of its folder, and if the source is one transcript, only that and its
// report.
func (s *Server) file(number, name string) (*os.File, error) {
	from, err := s.source(number)
	if err != nil {
		return nil, err
	}
	if from.File != "" && name != from.File && name != reportOf(from.File) {
		return nil, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
	root, err := s.root(from.Dir)
	if err != nil {
		return nil, err
	}
	return root.Open(filepath.FromSlash(name))
}

func (s *Server) trace(number, name string) (*trace, error) {
	open := func() (*os.File, error) { return s.file(number, name) }
	file, err := open()
	if err != nil {
		return nil, err
	}
	file.Close() // opened only to check that the file exists
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.traces == nil {
		s.traces = map[string]*trace{}
	}
	key := number + "/" + name
	if s.traces[key] == nil {
		s.traces[key] = &trace{open: open, protocol: s.Protocol}
	}
	return s.traces[key], nil
}

// shown is a source in the form for the page.
type shown struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Round  int    `json:"round,omitempty"`
	// Results is the content of results.json; null if there is none.
	Results json.RawMessage `json:"results"`
	Files   []found         `json:"files"`
	Problem string          `json:"problem,omitempty"`
	// Reports are reports on single transcripts, by the paths of the transcripts: serve writes NAME.results.json next
	// to NAME.jsonl.
	Reports map[string]json.RawMessage `json:"reports,omitempty"`
}

// found is a transcript in a source.
type found struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970

	report  string // the file of the report on the transcript
	version int64  // changes when that file does
}

// ofOne is the end of the file name of a report on one transcript.
const ofOne = ".results.json"

// reportOf returns the file name of the report on a transcript.
func reportOf(name string) string { return strings.TrimSuffix(name, ".jsonl") + ofOne }

// runs returns the current sources, and the state for events. The state is computed before the sources are read, so
// that no change goes unnoticed.
func (s *Server) runs() map[string]any {
	state := s.state()
	all := []shown{}
	for i, from := range s.Shown() {
		if from.dropped {
			continue
		}
		x := shown{Number: i, Name: from.Name, Round: from.Round, Files: []found{}, Problem: from.problem}
		var err error
		if x.Files, err = s.transcripts(from); err != nil && !errors.Is(err, os.ErrNotExist) {
			x.Problem = err.Error()
		}
		if from.File == "" {
			x.Results = s.results(strconv.Itoa(i), "results.json")
		}
		for _, f := range x.Files {
			if f.report == "" || len(x.Reports) == mostReports {
				continue
			}
			if text := s.results(strconv.Itoa(i), f.report); text != nil {
				if x.Reports == nil {
					x.Reports = map[string]json.RawMessage{}
				}
				x.Reports[f.Path] = text
			}
		}
		all = append(all, x)
	}
	actions := append([]string{}, slices.Sorted(maps.Keys(s.Actions))...)
	return map[string]any{"sources": all, "actions": actions, "state": state}
}

// results returns the report of a run in a file of a source, nil if there is none or it is incomplete.
func (s *Server) results(number, name string) json.RawMessage {
	file, err := s.file(number, name)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, confined.Limit))
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}

// state returns a text that changes when the sources do.
func (s *Server) state() string {
	var b strings.Builder
	for i, from := range s.Shown() {
		if from.dropped {
			continue
		}
		list, _ := s.transcripts(from)
		reports := int64(0)
		for _, f := range list {
			reports += f.version
		}
		fmt.Fprint(&b, i, " ", len(list), " ", reports, " ", len(from.problem), " ")
		if file, err := s.file(strconv.Itoa(i), "results.json"); err == nil {
			if info, err := file.Stat(); err == nil {
				fmt.Fprint(&b, info.Size(), info.ModTime().UnixNano())
			}
			file.Close() // opened only to look at its state
		}
	}
	sum := fnv.New64a()
	sum.Write([]byte(b.String()))
	return strconv.FormatUint(sum.Sum64(), 36)
}

// transcripts returns the transcripts of a source, sorted by name.
func (s *Server) transcripts(from Source) ([]found, error) {
	root, err := s.root(from.Dir)
	if err != nil {
		return []found{}, err
	}
	list := []found{}
	add := func(name string, reported bool) {
		info, err := root.Lstat(filepath.FromSlash(name))
		if err != nil || !info.Mode().IsRegular() {
			return
		}
		f := found{Path: name, Size: info.Size(), Modified: info.ModTime().UnixMilli()}
		if reported {
			if info, err := root.Lstat(filepath.FromSlash(reportOf(name))); err == nil {
				// The version changes when an incomplete report is completed.
				f.report, f.version = reportOf(name), info.ModTime().UnixNano()+info.Size()
			}
		}
		list = append(list, f)
	}
	if from.File != "" {
		add(from.File, true)
		return list, nil
	}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		const deepest, most = 8, 100_000
		entries, err := root.ReadDir(filepath.FromSlash(dir), most)
		if err != nil || depth > deepest {
			return // an unreadable folder has nothing to show
		}
		there := lists.Set(lists.Map(entries, fs.DirEntry.Name))
		for _, e := range entries {
			name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
			switch {
			case e.IsDir():
				walk(name, depth+1)
			case strings.HasSuffix(name, ".jsonl"):
				add(name, there[reportOf(e.Name())])
			}
		}
	}
	walk(".", 0)
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}
