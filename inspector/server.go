package inspector

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
)

// Source is a folder of results, or one transcript.
type Source struct {
	// Name is what the user calls it.
	Name string
	// Dir is the folder that is shown, with all transcripts in it; with File only that one.
	Dir, File string
}

// Action is something that the page asks for: of the body of its request, an answer that
// can be JSON. The error is shown to the user.
type Action func(ctx context.Context, body json.RawMessage) (any, error)

// Server shows sources in a browser. All but Actions and Title is needed.
type Server struct {
	Sources []Source
	// Protocol returns the protocol of a transcript by the version in its header.
	Protocol func(version string) Protocol
	// Judge returns the result of a transcript for which no run has one, as results.json
	// has it.
	Judge func(name string, file io.Reader) (any, error)
	// Canonical returns the text of a transcript in which what differs by chance is masked.
	Canonical func(file io.Reader) (string, error)
	// Token begins each path: who does not know it gets nothing.
	Token string
	// Actions are what can be done from the page, by name.
	Actions map[string]Action
	// Title is that of the page.
	Title string

	mu     sync.Mutex
	roots  map[string]*confined.Root
	traces map[string]*trace
}

// How long a request may read on in a file that it has not read yet, how often a file is
// looked at, and how often a folder.
const (
	budget     = 200 * time.Millisecond
	fileEvery  = 40 * time.Millisecond
	treeEvery  = 25 // times fileEvery
	mostRows   = 2000
	mostFile   = 4 << 20
	mostJudged = 64 << 20
	mostColumn = 1 << 16
)

// Close lets go of all files.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.traces {
		t.close()
	}
	for _, r := range s.roots {
		r.Close() // it was only read
	}
}

// ServeHTTP answers what has the token, comes from a page of this very server and names it
// by an address of this machine, so that no other page and no other name leads to it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !local(r) || subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) != 1 {
		http.Error(w, "this address needs the token that acp-test ui has printed", http.StatusForbidden)
		return
	}
	if err := s.answer(w, r, name); err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, os.ErrNotExist) {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
	}
}

// local reports whether a request names this server by an address of this machine and
// comes from no other page.
func local(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return false
	}
	_, port, _ := strings.Cut(address.String(), ":")
	if r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "http://"+r.Host || origin == "" && r.Method == http.MethodGet
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string) error {
	q := r.URL.Query()
	if action, ok := strings.CutPrefix(name, "do/"); ok {
		return s.act(w, r, action)
	}
	if r.Method != http.MethodGet {
		return fmt.Errorf("%s is not for %s", name, r.Method)
	}
	switch name {
	case "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy("'self'")+"; frame-ancestors 'none'")
		head(w, s.Title, policy("'self'"))
		fmt.Fprint(w, "<script type=\"application/json\" id=\"served\">{}</script>\n")
		foot(w)
		return nil
	case "runs":
		return reply(w, s.runs())
	case "events":
		return s.events(w, r, q)
	case "columns", "rows", "raw", "find", "judged", "canonical":
		t, err := s.trace(q.Get("source"), q.Get("file"))
		if err != nil {
			return err
		}
		t.grow(budget)
		return s.ofTrace(w, name, t, q)
	case "text":
		return s.text(w, q)
	}
	return fmt.Errorf("%q: %w", name, os.ErrNotExist)
}

func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func (s *Server) act(w http.ResponseWriter, r *http.Request, name string) error {
	do, ok := s.Actions[name]
	if !ok {
		return fmt.Errorf("action %q: %w", name, os.ErrNotExist)
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return errors.New("an action is a POST of JSON")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostFile))
	if err != nil {
		return err
	}
	answer, err := do(r.Context(), body)
	if err != nil {
		return err
	}
	return reply(w, answer)
}

// ofTrace answers what is asked about one transcript.
func (s *Server) ofTrace(w http.ResponseWriter, name string, t *trace, q url.Values) error {
	switch name {
	case "columns":
		from, _ := strconv.Atoi(q.Get("from"))
		generation, _ := strconv.Atoi(q.Get("generation"))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, err := w.Write(t.columns(from, generation))
		return err
	case "rows":
		return s.rows(w, t, q)
	case "raw":
		seq, _ := strconv.Atoi(q.Get("seq"))
		e, _, err := t.entry(seq)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, err = w.Write(e.Raw)
		return err
	case "find":
		w.Header().Set("Content-Type", "application/octet-stream")
		return binary.Write(w, binary.LittleEndian, t.find(q.Get("text")))
	}
	file, err := t.open()
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > mostJudged {
		return cmp.Or(err, fmt.Errorf("a transcript of more than %d bytes is not judged here: acp-test check does it",
			mostJudged))
	}
	if name == "canonical" {
		text, err := s.Canonical(file)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err = io.WriteString(w, text)
		return err
	}
	result, err := s.Judge(q.Get("file"), file)
	if err != nil {
		return err
	}
	return reply(w, result)
}

// rows answers with the texts of entries: from a Seq on, or those listed.
func (s *Server) rows(w http.ResponseWriter, t *trace, q url.Values) error {
	var wanted []int
	for word := range strings.SplitSeq(q.Get("seqs"), ",") {
		if seq, err := strconv.Atoi(word); err == nil {
			wanted = append(wanted, seq)
		}
	}
	from, _ := strconv.Atoi(q.Get("from"))
	to, _ := strconv.Atoi(q.Get("to"))
	n, _ := t.length()
	for seq := max(from, 1); from > 0 && seq <= min(to, n) && len(wanted) < mostRows; seq++ {
		wanted = append(wanted, seq)
	}
	rows := [][]any{}
	for _, seq := range wanted[:min(len(wanted), mostRows)] {
		e, of, err := t.entry(seq)
		if err != nil {
			return err
		}
		text, cut := raw(e)
		rows = append(rows, []any{seq, of.line(e), text, cut})
	}
	return reply(w, rows)
}

// columns are the records from one on, in the form that the page takes apart: the length
// of what follows as JSON, that, and each column of all records, one after the other.
func (t *trace) columns(from, generation int) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation != t.generation {
		from = 0
	}
	from = min(max(from, 0), len(t.records))
	part := t.records[from:min(len(t.records), from+mostColumn)]
	about, _ := json.Marshal(map[string]any{"from": from, "n": len(part), "known": len(t.records), "names": t.names.list,
		"generation": t.generation, "more": !t.atEnd || from+len(part) < len(t.records), "problem": t.problem,
		"skipped": t.skipped, "scenario": t.head.Scenario, "agent": t.head.Agent, "started": t.head.Started,
		"protocol": t.head.Protocol, "tool": t.head.Tool})
	for (4+len(about))%8 != 0 {
		about = append(about, ' ')
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(about)))
	b = append(b, about...)
	for _, r := range part {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.at))
	}
	for _, of := range []func(record) uint32{
		func(r record) uint32 { return r.ref }, func(r record) uint32 { return r.size },
	} {
		for _, r := range part {
			b = binary.LittleEndian.AppendUint32(b, of(r))
		}
	}
	for _, of := range []func(record) uint16{
		func(r record) uint16 { return r.source }, func(r record) uint16 { return r.kind },
		func(r record) uint16 { return r.method }, func(r record) uint16 { return r.label },
		func(r record) uint16 { return r.session }, func(r record) uint16 { return r.origin },
	} {
		for _, r := range part {
			b = binary.LittleEndian.AppendUint16(b, of(r))
		}
	}
	return b
}

// events tells the page, for as long as it listens, how long a transcript has become and
// when there are others.
func (s *Server) events(w http.ResponseWriter, r *http.Request, q url.Values) error {
	var t *trace
	if q.Get("file") != "" {
		var err error
		if t, err = s.trace(q.Get("source"), q.Get("file")); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(fileEvery)
	defer tick.Stop()
	runs, told := "", ""
	for n := 0; ; n++ {
		if n%treeEvery == 0 {
			if now := s.state(); now != runs {
				if runs != "" {
					fmt.Fprintf(w, "event: runs\ndata: {}\n\n")
				}
				runs = now
			}
		}
		if t != nil {
			t.grow(fileEvery)
			length, generation := t.length()
			if now := fmt.Sprintf("{\"n\":%d,\"generation\":%d}", length, generation); now != told {
				fmt.Fprintf(w, "event: trace\ndata: %s\n\n", now)
				told = now
			}
		}
		if err := out.Flush(); err != nil {
			return nil // nobody listens any more
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// text answers with a text that lies in a folder of results.
func (s *Server) text(w http.ResponseWriter, q url.Values) error {
	file, err := s.file(q.Get("source"), q.Get("file"))
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = io.Copy(w, io.LimitReader(file, mostFile))
	return err
}

// Add shows one more source, whose folder need not be there yet.
func (s *Server) Add(from Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Sources = append(s.Sources, from)
}

// Shown are the sources that there are now.
func (s *Server) Shown() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Sources)
}

// Open opens a file of a source, by the number of that: nothing outside of its folder.
func (s *Server) Open(source int, name string) (*os.File, error) {
	return s.file(strconv.Itoa(source), name)
}

// source is one of the sources, by its number.
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

// file opens a file of a source: nothing outside of its folder, and of a transcript alone
// only that.
func (s *Server) file(number, name string) (*os.File, error) {
	from, err := s.source(number)
	if err != nil {
		return nil, err
	}
	if from.File != "" && name != from.File {
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
	file.Close() // it was only to see whether it is there
	s.mu.Lock()
	defer s.mu.Unlock()
	key := number + "/" + name
	if t, ok := s.traces[key]; ok {
		return t, nil
	}
	if s.traces == nil {
		s.traces = map[string]*trace{}
	}
	t := &trace{open: open, protocol: s.Protocol}
	s.traces[key] = t
	return t, nil
}

// shown is a source as the page gets it.
type shown struct {
	Name string `json:"name"`
	// Results is what results.json has; null while there is none, or none that is newer
	// than the transcripts.
	Results json.RawMessage `json:"results"`
	Files   []found         `json:"files"`
	Problem string          `json:"problem,omitempty"`
}

// found is a transcript.
type found struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970
}

// runs are the sources as they are now.
func (s *Server) runs() map[string]any {
	all := []shown{}
	for i, from := range s.Shown() {
		x := shown{Name: from.Name, Files: []found{}}
		var err error
		if x.Files, err = s.transcripts(from); err != nil && !errors.Is(err, os.ErrNotExist) {
			x.Problem = err.Error()
		}
		if from.File == "" {
			x.Results = s.results(strconv.Itoa(i))
		}
		all = append(all, x)
	}
	actions := []string{}
	for name := range s.Actions {
		actions = append(actions, name)
	}
	slices.Sort(actions)
	return map[string]any{"sources": all, "actions": actions}
}

// results is the results.json of a folder, nil if there is none or it is not whole.
func (s *Server) results(number string) json.RawMessage {
	file, err := s.file(number, "results.json")
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

// state tells whether anything of the sources is new.
func (s *Server) state() string {
	var b strings.Builder
	for i, from := range s.Shown() {
		list, _ := s.transcripts(from)
		fmt.Fprint(&b, i, len(list), " ")
		if file, err := s.file(strconv.Itoa(i), "results.json"); err == nil {
			if info, err := file.Stat(); err == nil {
				fmt.Fprint(&b, info.Size(), info.ModTime().UnixNano())
			}
			file.Close() // it was only looked at
		}
	}
	return b.String()
}

// transcripts lists what can be shown of a source, in the order of names.
func (s *Server) transcripts(from Source) ([]found, error) {
	root, err := s.root(from.Dir)
	if err != nil {
		return []found{}, err
	}
	list := []found{}
	add := func(name string) {
		if info, err := root.Lstat(filepath.FromSlash(name)); err == nil && info.Mode().IsRegular() {
			list = append(list, found{name, info.Size(), info.ModTime().UnixMilli()})
		}
	}
	if from.File != "" {
		add(from.File)
		return list, nil
	}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		const deepest, most = 8, 100_000
		entries, err := root.ReadDir(filepath.FromSlash(dir), most)
		if err != nil || depth > deepest {
			return // what cannot be read has nothing to show
		}
		for _, e := range entries {
			name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
			switch {
			case e.IsDir():
				walk(name, depth+1)
			case strings.HasSuffix(name, ".jsonl"):
				add(name)
			}
		}
	}
	walk(".", 0)
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}
