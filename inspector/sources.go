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
	// Name is the name of the source that the user sees.
	Name string
	// Dir is the folder whose transcripts are shown. If File is set, only that transcript in Dir is shown.
	Dir, File string
	// Round is the source's number among repeated rounds of runs; 0 for other sources. The page compares the newest
	// round with the last complete one.
	Round int

	problem string
	dropped bool
}

// Tell makes the page show a problem with a source.
func (s *Server) Tell(name, problem string) {
	s.change(name, func(from *Source) { from.problem = problem })
}

// Drop removes a source from the page. The numbers of the other sources do not change.
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

// Add adds a source. Its folder need not exist yet.
func (s *Server) Add(from Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Sources = append(s.Sources, from)
}

func (s *Server) Shown() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Sources)
}

// Open opens a file of a source, given the source's number. It refuses a file outside of the source's folder.
func (s *Server) Open(source int, name string) (*os.File, error) {
	return s.file(strconv.Itoa(source), name)
}

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

// file opens a file of a source. It refuses a file outside of the source's folder. If the source is a single
// transcript, it opens only that transcript and its report.
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
	file.Close() // opened only to check that it exists
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

// shown is a source in the form that the page receives.
type shown struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Round  int    `json:"round,omitempty"`
	// Results is the content of results.json; null if the file is missing.
	Results json.RawMessage `json:"results"`
	Files   []found         `json:"files"`
	Problem string          `json:"problem,omitempty"`
	// Reports contains the reports on single transcripts, by the transcript's path. acp-test serve writes such a
	// report to NAME.results.json next to NAME.jsonl.
	Reports map[string]json.RawMessage `json:"reports,omitempty"`
}

// found is a transcript in a source.
type found struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970

	report  string // path of the report on the transcript
	version int64  // changes whenever the report does
}

// ofOne is the end of the file name of a report on one transcript.
const ofOne = ".results.json"

// reportOf returns the file name of the report on a transcript.
func reportOf(name string) string { return strings.TrimSuffix(name, ".jsonl") + ofOne }

// runs returns the current sourcesand their state, which the page passes to events. The state is computed before the
// sources are read, so that no change is missed.
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

// results reads a report from a file of a source. It returns nil if the file is missing or its JSON is incomplete.
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

// state returns a text that changes whenever the sources change.
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
			file.Close() // opened only to read its size and time
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
				// The size and time change when an incomplete report is completed.
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
			return // an unreadable folder is shown as empty
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
