package inspector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
)

// plain shows entries by their bytes.
type plain struct{ golden.Renderer }

func (plain) Line(e transcript.Entry) string {
	return "<-- " + string(e.Kind) + " " + strings.TrimSpace(string(e.Raw))
}

const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(1)>`

// written is a log whose file grows while it is looked at.
func written(t *testing.T, path string, frames int) *transcript.Transcript {
	t.Helper()
	log, err := transcript.New(transcript.Header{Scenario: "s"}, transcript.Options{Path: path, Through: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	add(log, frames)
	return log
}

func add(log *transcript.Transcript, frames int) {
	for range frames {
		log.AppendFrame(0, transcript.Agent,
			fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"say","params":{"n":%d}}`, log.Len()+1), 0)
	}
}

// client asks a server as its page does.
type client struct {
	*testing.T
	server *httptest.Server
}

func serve(t *testing.T, s *Server) client {
	s.Protocol = func(string) Protocol { return Protocol{Text: plain{}} }
	s.Token = "the-token"
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.Close)
	return client{t, server}
}

func (c client) do(r *http.Request) (status int, body []byte, h http.Header) {
	c.Helper()
	answer, err := c.server.Client().Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		c.Fatal(err)
	}
	return answer.StatusCode, body, answer.Header
}

func (c client) request(method, path, body string) *http.Request {
	c.Helper()
	r, err := http.NewRequest(method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	return r
}

func (c client) get(path string) []byte {
	c.Helper()
	status, body, _ := c.do(c.request("GET", "/the-token/"+path, ""))
	if status != 200 {
		c.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

type about struct {
	From, N, Known, Generation int
	More                       bool
	Names                      []string
	Problem, Scenario          string
}

func (c client) columns(from, generation int) about {
	c.Helper()
	b := c.get(fmt.Sprintf("columns?source=0&file=a/transcript.jsonl&from=%d&generation=%d", from, generation))
	n := binary.LittleEndian.Uint32(b)
	var is about
	if err := json.Unmarshal(b[4:4+n], &is); err != nil {
		c.Fatal(err)
	}
	if want := is.N * 28; len(b)-4-int(n) != want {
		c.Errorf("%d bytes of columns for %d entries, want %d", len(b)-4-int(n), is.N, want)
	}
	return is
}

func folder(t *testing.T) (dir, file string) {
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "a", "transcript.jsonl")
}

// What is appended to a file is there when it is asked for, and only that is read; a file
// that takes its place begins anew.
func TestAFileThatGrows(t *testing.T) {
	dir, file := folder(t)
	log := written(t, file, 3)
	c := serve(t, &Server{Sources: []Source{{Name: "out", Dir: dir}}})
	is := c.columns(0, 0)
	if is.N != 3 || is.Known != 3 || is.More || is.Scenario != "s" {
		t.Errorf("at first: %+v", is)
	}
	add(log, 2)
	if is = c.columns(3, is.Generation); is.From != 3 || is.N != 2 || is.Known != 5 {
		t.Errorf("after two more: %+v", is)
	}
	var rows [][]any
	if err := json.Unmarshal(c.get("rows?source=0&file=a/transcript.jsonl&from=4&to=9"), &rows); err != nil ||
		len(rows) != 2 {
		t.Fatalf("rows %v, %v", rows, err)
	}
	if rows[1][0] != 5.0 || rows[1][2] != `{"jsonrpc":"2.0","method":"say","params":{"n":5}}` {
		t.Errorf("the last row is %v", rows[1])
	}
	if got := string(c.get("raw?source=0&file=a/transcript.jsonl&seq=2")); got != `{"jsonrpc":"2.0","method":"say",`+
		`"params":{"n":2}}` {
		t.Errorf("the bytes of the second are %s", got)
	}
	if found := c.get("find?source=0&file=a/transcript.jsonl&text=%22N%22:4"); !bytes.Equal(found, []byte{4, 0, 0, 0}) {
		t.Errorf("found %v", found)
	}
	log.Close()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	written(t, file, 1)
	if now := c.columns(5, is.Generation); now.Generation == is.Generation || now.From != 0 || now.N != 1 {
		t.Errorf("another file: %+v", now)
	}
}

// A line that is not whole is no entry until it is, and one that is none is passed over.
func TestADamagedFile(t *testing.T) {
	dir, file := folder(t)
	const entry = `{"seq":1,"ms":1,"from":"note","kind":"note"}`
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c := serve(t, &Server{Sources: []Source{{Name: "out", Dir: dir}}})
	write("")
	if is := c.columns(0, 0); is.N != 0 || is.Problem != "" {
		t.Errorf("an empty file: %+v", is)
	}
	write("{\"acp-test\":2}\n" + entry + "\n{\"no\":\"entry\"}\n" + entry[:20])
	if is := c.columns(0, 0); is.N != 1 {
		t.Errorf("a torn file: %+v", is)
	}
	write("{\"acp-test\":2}\n" + entry + "\n{\"no\":\"entry\"}\n" + entry + "\n")
	if is := c.columns(0, 1); is.Known != 2 {
		t.Errorf("a whole file: %+v", is)
	}
	write("hello\nthis is no transcript, and longer than what was here before it came, so that it begins anew\n")
	if is := c.columns(0, 0); !strings.Contains(is.Problem, "not a transcript") && is.Known != 2 {
		t.Errorf("no transcript: %+v", is)
	}
}

// Who has not the token, comes from another page or names the server otherwise gets
// nothing, and nothing outside of the folder is served.
func TestWhoGetsNothing(t *testing.T) {
	dir, file := folder(t)
	written(t, file, 1)
	secret := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(secret, []byte("top secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.jsonl")); err != nil {
		t.Fatal(err)
	}
	done := 0
	c := serve(t, &Server{Sources: []Source{
		{Name: "out", Dir: dir}, {Name: "a", Dir: filepath.Join(dir, "a"), File: "other.jsonl"},
	},
		Actions: map[string]Action{
			"it": func(context.Context, json.RawMessage) (any, error) { done++; return "done", nil },
		}})
	change := func(f func(*http.Request)) *http.Request {
		r := c.request("GET", "/the-token/runs", "")
		f(r)
		return r
	}
	own := c.server.URL
	for name, r := range map[string]*http.Request{
		"no token":                 c.request("GET", "/", ""),
		"a wrong token":            c.request("GET", "/the-tokem/runs", ""),
		"another name":             change(func(r *http.Request) { r.Host = "evil.example" }),
		"another page":             change(func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }),
		"no page":                  change(func(r *http.Request) { r.Header.Set("Origin", "null") }),
		"an action without origin": c.request("POST", "/the-token/do/it", "{}"),
	} {
		if status, body, _ := c.do(r); status != http.StatusForbidden || !strings.Contains(string(body), "token") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, path := range []string{
		"text?source=0&file=../secret.jsonl", "text?source=0&file=link.jsonl", "columns?source=0&file=link.jsonl",
		"text?source=0&file=" + secret, "text?source=1&file=transcript.jsonl", "text?source=7&file=a", "nothing",
		"do/it", "text?source=0&file=a",
	} {
		if status, body, _ := c.do(c.request("GET", "/the-token/"+path, "")); status < 400 ||
			strings.Contains(string(body), "top secret") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	post := c.request("POST", "/the-token/do/it", "{}")
	post.Header.Set("Origin", own)
	if status, _, _ := c.do(post.Clone(t.Context())); status < 400 || done > 0 {
		t.Errorf("a POST that any form can send: %d", status)
	}
	post.Header.Set("Content-Type", "application/json")
	if status, body, _ := c.do(post); status != 200 || done != 1 || strings.TrimSpace(string(body)) != `"done"` {
		t.Errorf("an action: %d %s", status, body)
	}
	var all struct{ Sources []shown }
	if err := json.Unmarshal(c.get("runs"), &all); err != nil || len(all.Sources[0].Files) != 1 {
		t.Errorf("the folder has %+v, %v", all.Sources, err)
	}
}

// The page is told when a transcript has grown.
func TestEvents(t *testing.T) {
	dir, file := folder(t)
	log := written(t, file, 1)
	c := serve(t, &Server{Sources: []Source{{Name: "out", Dir: dir}}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := c.server.Client().
		Do(c.request("GET", "/the-token/events?source=0&file=a/transcript.jsonl", "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	buf, told := make([]byte, 4096), ""
	until := func(text string) {
		t.Helper()
		for !strings.Contains(told, text) {
			n, err := answer.Body.Read(buf)
			if err != nil {
				t.Fatalf("told %q, then %v; want %q", told, err, text)
			}
			told += string(buf[:n])
		}
	}
	until(`data: {"n":1,"generation":1}`)
	add(log, 3)
	until(`data: {"n":4,"generation":1}`)
}

// What has changed since the page read the sources, it is told at once.
func TestEventsOfBefore(t *testing.T) {
	dir, file := folder(t)
	written(t, file, 1)
	c := serve(t, &Server{Sources: []Source{{Name: "out", Dir: dir}}})
	var read struct{ State string }
	if err := json.Unmarshal(c.get("runs"), &read); err != nil || read.State == "" {
		t.Fatalf("the state is %q, %v", read.State, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), []byte(`{"results":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := c.server.Client().Do(c.request("GET", "/the-token/events?state="+read.State, "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if line != "event: runs\n" {
		t.Errorf("the page is told %q, %v", line, err)
	}
}

// A report that was not whole when it was read is a change once it is.
func TestStateOfReports(t *testing.T) {
	dir, file := folder(t)
	written(t, file, 1)
	s := &Server{Sources: []Source{{Name: "out", Dir: dir}}}
	defer s.Close()
	report := strings.TrimSuffix(file, ".jsonl") + ofOne
	seen := map[string]bool{s.state(): true}
	for _, text := range []string{`{"results":[`, `{"results":[]}`} {
		if err := os.WriteFile(report, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		seen[s.state()] = true
	}
	if len(seen) != 3 {
		t.Errorf("there are %d states, want one without a report, with half of one and with the whole", len(seen))
	}
}

// A transcript that is shown alone has the report beside it, and nothing else of its folder.
func TestReportOfOneFile(t *testing.T) {
	_, file := folder(t)
	written(t, file, 1)
	for _, name := range []string{strings.TrimSuffix(file, ".jsonl") + ofOne,
		filepath.Join(filepath.Dir(file), "other"+ofOne)} {
		if err := os.WriteFile(name, []byte(`{"results":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Sources: []Source{{Name: file, Dir: filepath.Dir(file), File: filepath.Base(file)}}}
	defer s.Close()
	sources := s.runs()["sources"].([]shown)
	if len(sources) != 1 || len(sources[0].Reports) != 1 || sources[0].Reports[filepath.Base(file)] == nil {
		t.Errorf("the page gets %+v", sources)
	}
	if _, err := s.file("0", "other"+ofOne); err == nil {
		t.Error("the report of another transcript is served")
	}
}

// The page allows its own script and style only, and holds nothing that acts.
func TestThePage(t *testing.T) {
	var b bytes.Buffer
	if err := WritePage(&b, hostile, []byte(`{"agent":"`+hostile+`"}`), Protocol{},
		func(yield func(string) bool) { yield("AAAA") }); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") {
		t.Error("what an agent said is markup")
	}
	if n := strings.Count(page, "</script>"); n != 3 {
		t.Errorf("%d elements of script, want the run, one transcript and the script", n)
	}
	if !strings.Contains(page, content(policy("'none'"))) || strings.Contains(policy("'none'"), "unsafe") {
		t.Error("the policy is not that of the page")
	}
	if acts := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new ` +
		`Function|setTimeout\("`).FindString(script()); acts != "" {
		t.Errorf("the script has %s", acts)
	}
}

func content(s string) string { return `content="` + s + `"` }

// Colours and the three sizes of type have one place, the tokens; and nothing moves by itself.
func TestDesign(t *testing.T) {
	entries, err := files.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`#[0-9a-f]{6}\b|\b(rgb|hsl)a?\(|light-dark\(|font(-size)?: *[\d.]|\d(px|rem) ` +
		`(system-ui|sans|mono)|` +
		`transition|@keyframes|animation:|behavior: *"?smooth`)
	for _, e := range entries {
		if found := own.FindString(read(e.Name())); found != "" && e.Name() != "tokens.css" {
			t.Errorf("%s has %q", e.Name(), found)
		}
	}
	if tokens := read("tokens.css"); own.FindString(tokens) == "" ||
		len(regexp.MustCompile(`--(text|small|large): [\d.]+rem`).FindAllString(tokens, -1)) != 3 {
		t.Error("the tokens have no colours, or not three sizes of type")
	}
}

// The modules are one script: what one imports, another before it exports, and no name is
// declared twice.
func TestTheModulesFitTogether(t *testing.T) {
	exported, declared := map[string]string{}, map[string]string{}
	names := regexp.MustCompile(`(?m)^(export )?(?:async )?(?:const|let|function|class) (?:\{ )?(\w+)`)
	imports := regexp.MustCompile(`(?m)^import \{ ([^}]*) \} from "\./(\w+)\.js";$`)
	for _, m := range modules {
		text := read(m + ".js")
		for _, i := range imports.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(i[1], ", ") {
				if exported[name] != i[2] {
					t.Errorf("%s imports %s from %s, which comes from %q before it", m, name, i[2], exported[name])
				}
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(imports.ReplaceAllString(text, "")) {
					t.Errorf("%s imports %s and does not use it", m, name)
				}
			}
		}
		for _, d := range names.FindAllStringSubmatch(text, -1) {
			if declared[d[2]] != "" {
				t.Errorf("%s and %s both declare %s", declared[d[2]], m, d[2])
			}
			declared[d[2]] = m
			if d[1] != "" {
				exported[d[2]] = m
			}
		}
	}
	if joined := script(); strings.Contains(joined, "\nimport ") || strings.Contains(joined, "\nexport ") {
		t.Error("the script has an import or an export left")
	}
	entries, err := files.ReadDir("page")
	if err != nil || len(entries) != len(modules)+2 {
		t.Errorf("%d files for %d modules, the tokens and the style, %v", len(entries), len(modules), err)
	}
}

// What is packed is the same as what a server tells.
func TestPack(t *testing.T) {
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(log, 2)
	log.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk,
		Raw: []byte(strings.Repeat("x", 2*rawLimit))})
	var file, b bytes.Buffer
	if err := log.Save(&file); err != nil {
		t.Fatal(err)
	}
	b.WriteString("{")
	if err := Pack(&b, &file, Protocol{Text: plain{}}); err != nil {
		t.Fatal(err)
	}
	b.WriteString("}")
	var packed struct {
		Rows  [][]any
		Names []string
	}
	if err := json.Unmarshal(b.Bytes(), &packed); err != nil {
		t.Fatal(err)
	}
	if len(packed.Rows) != 3 || packed.Names[int(packed.Rows[0][5].(float64))] != "notification" {
		t.Errorf("packed %v %v", packed.Rows[0], packed.Names)
	}
	if last := packed.Rows[2]; len(last) != 12 || len(last[10].(string)) > rawLimit+10 ||
		last[8] != float64(2*rawLimit) {
		t.Error("what is too long is not cut, or does not say how long it is")
	}
	if err := Pack(io.Discard, strings.NewReader("no transcript\n"), Protocol{Text: plain{}}); err == nil {
		t.Error("what is no transcript is packed without a word")
	}
}

// The guide says all of the filter language and names all views.
func TestTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/inspector.md")
	if err != nil {
		t.Fatal(err)
	}
	_, language, _ := strings.Cut(read("filter.js"), "export const keys = {")
	language, _, _ = strings.Cut(language, "};")
	keys := regexp.MustCompile(`(\w+): "`).FindAllStringSubmatch(language, -1)
	for _, key := range keys {
		if !strings.Contains(string(guide), "`"+key[1]+":") {
			t.Errorf("the guide does not say what %s: takes", key[1])
		}
	}
	views := regexp.MustCompile(`const views = \[(.*)\]`).FindStringSubmatch(read("scenario.js"))
	for view := range strings.SplitSeq(views[1], ", ") {
		if !strings.Contains(string(guide), "\n| "+strings.Trim(view, `"`)+" |") {
			t.Errorf("the guide does not say what the view %s shows", view)
		}
	}
	if len(keys) < 9 {
		t.Errorf("the filter has %d keys", len(keys))
	}
}

// Each answer says what it is: JSON, bytes of a transcript, or a text.
func TestTypesOfAnswers(t *testing.T) {
	dir, file := folder(t)
	defer written(t, file, 3).Close()
	c := serve(t, &Server{Sources: []Source{{Name: "out", Dir: dir}},
		Canonical: func(io.Reader) (string, error) { return "masked", nil }})
	for query, want := range map[string]string{
		"runs?":        "application/json",
		"rows?seqs=1&": "application/json",
		"columns?":     "application/octet-stream",
		"raw?seq=1&":   "application/octet-stream",
		"find?text=a&": "application/octet-stream",
		"canonical?":   "text/plain; charset=utf-8",
		"text?":        "text/plain; charset=utf-8",
	} {
		status, body, h := c.do(c.request("GET", "/the-token/"+query+"source=0&file=a/transcript.jsonl", ""))
		if status != 200 || h.Get("Content-Type") != want {
			t.Errorf("%s is %q, want %q: %d %s", query, h.Get("Content-Type"), want, status, body)
		}
	}
}
