package fakellm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/transcript"
)

// RecordConfig configures a Recorder.
type RecordConfig struct {
	// Upstream is the provider's base URL, http or https, without the path of an endpoint. Upstreams maps the names
	// of wire formats that use another provider to that provider's base URL.
	Upstream  string
	Upstreams map[string]string
	// Transcript receives an entry for each request and answer, with secrets redacted.
	Transcript *transcript.Transcript
	// Listen is the address to listen on; "" means any free port on 127.0.0.1.
	Listen string
	// Transport sends the requests to the provider; nil means HTTP(S) without a proxy.
	Transport http.RoundTripper
}

// Recorder forwards requests to a provider. It records the provider's answers as a script that repeats them chunk by
// chunk.
type Recorder struct {
	listening
	cfg     RecordConfig
	targets map[string]*url.URL
	chains  chains

	n       atomic.Int64
	mu      sync.Mutex
	takes   []*take
	secrets []string
}

// take is one request and its answer.
type take struct {
	n        int
	format   format
	turns    int    // number of the user's turns in the request
	said     string // the user's text in the newest turn
	last     string // the user's last text, as the field "user" of conditions
	step     int
	hasTools bool
	wantJSON bool
	answer   []StepNode // secrets are redacted
	// failed is true if the answer is an error, after which an agent may retry. broken is true if the answer began
	// but did not end.
	failed, broken bool
}

func newTake(n int, req *request, f format) *take {
	t := &take{n: n, format: f, hasTools: len(req.tools) > 0, wantJSON: req.wantJSON, step: 1}
	var from int
	t.turns, from = req.turns()
	if from < len(req.items) {
		t.step = req.stepsAfter(from) + 1
		end := from
		for end < len(req.items) && req.items[end].role == roleUser {
			end++
		}
		t.said = req.items[end-1].text
	}
	t.last = req.lastRun(roleUser, len(req.items))
	return t
}

// Record starts a recorder. It returns an error if a URL is invalid or the address cannot be used.
func Record(c RecordConfig) (*Recorder, error) {
	r := &Recorder{cfg: c, targets: map[string]*url.URL{}}
	for _, name := range Wires() {
		raw := cmp.Or(c.Upstreams[name], c.Upstream)
		if raw == "" {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("recording: %q is not an http or https URL", raw)
		}
		r.targets[name] = u
	}
	if len(r.targets) == 0 {
		return nil, errors.New("recording: no upstream URL")
	}
	if r.cfg.Transport == nil {
		r.cfg.Transport = &http.Transport{DisableCompression: true, IdleConnTimeout: time.Minute}
	}
	if err := r.listen(cmp.Or(c.Listen, "127.0.0.1:0"), loopback.Guard(http.HandlerFunc(r.serve))); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return r, nil
}

// Close stops the recorder and closes all connections.
func (r *Recorder) Close() error {
	err := r.shut("recorder")
	if t, ok := r.cfg.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return err
}

func (r *Recorder) serve(w http.ResponseWriter, hr *http.Request) {
	rt := findRoute(hr)
	target := r.targets[rt.format.name()]
	if target == nil {
		http.Error(w, "no upstream for "+rt.format.name(), http.StatusBadGateway)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, 128<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	hr.Body = io.NopCloser(bytes.NewReader(raw))
	hr.ContentLength = int64(len(raw))
	r.remember(hr)

	req := &request{wire: rt.format.name(), path: hr.URL.Path, run: rt.run}
	var t *take
	if rt.task == taskGenerate && req.parse(raw, rt, hr.URL.Query()) == nil && r.chains.goOn(req) == nil {
		t = r.begin(req, rt, hr, raw)
	}
	proxy := &httputil.ReverseProxy{
		Transport:     r.cfg.Transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(withoutVersion(target, p.In.URL.Path))
			p.Out.Header.Del("Accept-Encoding") // the recorded answers must not be compressed
		},
		ModifyResponse: func(res *http.Response) error {
			if t != nil {
				seen := &reader{format: t.format, begun: map[int]string{}}
				res.Body = &tap{ReadCloser: res.Body, more: func(b []byte) { r.more(t, seen, b) },
					done: func(err error) { r.end(t, req, res, seen, err, hr.Context().Err() != nil) }}
			}
			return nil
		},
		// The proxy calls ErrorHandler if the agent disconnected before the answer began, or if the provider did not
		// answer.
		ErrorHandler: func(w http.ResponseWriter, hr *http.Request, _ error) {
			if t != nil {
				left := hr.Context().Err() != nil
				res := &http.Response{StatusCode: http.StatusBadGateway}
				if left {
					res.StatusCode = http.StatusOK
				}
				r.end(t, req, res, &reader{format: t.format, begun: map[int]string{}}, io.ErrUnexpectedEOF, left)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, hr)
}

// withoutVersion removes the version, such as /v1, from the end of a base URL if the path begins with the same
// version, so that both https://host and https://host/v1 work.
func withoutVersion(u *url.URL, path string) *url.URL {
	base := strings.TrimRight(u.Path, "/")
	first := "/" + strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)[0]
	if !strings.HasSuffix(base, first) {
		return u
	}
	out := *u
	out.Path, out.RawPath = strings.TrimSuffix(base, first), ""
	return &out
}

// tap wraps a body and passes everything that is read on to more. At the end of the body, or when the body is closed
// early, it calls done.
type tap struct {
	io.ReadCloser
	more func([]byte)
	done func(error)
	once sync.Once
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.more(p[:n])
	if err != nil {
		t.once.Do(func() { t.done(err) })
	}
	return n, err
}

func (t *tap) Close() error {
	t.once.Do(func() { t.done(io.ErrUnexpectedEOF) })
	return t.ReadCloser.Close()
}

// more reads the next bytes of an answer and logs each piece. A replay needs the order of the entries: it shows which
// pieces arrived before an act of the editor, or before a crash of the recorder.
func (r *Recorder) more(t *take, seen *reader, b []byte) {
	before := len(seen.said.pieces)
	seen.write(b)
	for i, p := range seen.said.pieces[before:] {
		step := &seen.said.steps[p.step]
		text, rest := r.known().Piece([]byte(p.text), seen.begun[p.step])
		seen.begun[p.step] = rest
		r.event(transcript.ModelChunk, object{{"n", t.n}, {"i", before + i + 1}, {"step", p.step + 1},
			{"says", spoken[step.Kind]}, {"tool", step.Tool}, {"data", string(text)}})
	}
}

func (r *Recorder) begin(req *request, rt route, hr *http.Request, raw []byte) *take {
	t := newTake(int(r.n.Add(1)), req, rt.format)
	r.event(transcript.ModelRequest, object{
		{"n", t.n}, {"wire", req.wire}, {"method", hr.Method}, {"path", cleanPath(hr)}, {"lane", "record"},
		{"prompt", t.turns}, {"step", t.step},
		{"user", t.said}, {"headers", headers(hr.Header)}, {"body", oneLine(raw)},
	})
	return t
}

func (r *Recorder) end(t *take, req *request, res *http.Response, seen *reader, err error, left bool) {
	body := seen.body.Bytes()
	if t.failed = res.StatusCode >= 400; t.failed {
		t.answer = r.refused(res.StatusCode, res.Header.Get("Retry-After"), string(body))
	} else {
		said := seen.finish()
		t.broken = !errors.Is(err, io.EOF) && !said.ended
		t.answer = r.steps(said, t.broken && left, t.broken, !t.broken && req.stream && !said.ended)
	}
	id := ""
	if req.wire == OpenAIResponses {
		if id = responseID(body); id != "" {
			r.chains.keep(req, id)
		}
	}
	r.mu.Lock()
	r.takes = append(r.takes, t)
	r.mu.Unlock()
	o := answerEntry(t.n, id, t.answer)
	r.event(transcript.ModelAnswer, append(o, member{"failed", t.failed}, member{"broken", t.broken}))
	if t.broken && left {
		r.event(transcript.ModelAborted, object{{"n", t.n}, {"chunks", len(seen.said.pieces)}})
		return
	}
	r.event(transcript.ModelDone, object{{"n", t.n}, {"status", res.StatusCode}, {"chunks", len(seen.said.pieces)},
		{"bytes", len(body)}})
}

// responseID returns the id of the response in a body of the Responses API, or in the first event of a stream; "" if
// there is none.
func responseID(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"id":"resp_`))
	if id, _, whole := bytes.Cut(rest, []byte(`"`)); whole {
		return "resp_" + string(id)
	}
	return ""
}

func (r *Recorder) event(k transcript.Kind, o object) {
	if r.cfg.Transcript == nil {
		return
	}
	raw := appendJSON(nil, o)
	r.cfg.Transcript.Append(transcript.Entry{Source: transcript.Model, Kind: k, Raw: []byte(r.redact(string(raw)))})
}

// remember stores the secrets in the headers and the URL of a request, so that they can be found in texts.
func (r *Recorder) remember(hr *http.Request) {
	var found []string
	for name, values := range hr.Header {
		if !confidential(name) {
			continue
		}
		for _, v := range values {
			found = append(found, v)
			if _, key, ok := strings.Cut(v, " "); ok {
				found = append(found, key)
			}
		}
	}
	for _, c := range hr.Cookies() {
		found = append(found, c.Value)
	}
	found = append(found, hr.URL.Query().Get("key"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range found {
		// Shorter strings are hardly secrets, and redacting them would remove common words.
		if len(s) >= 8 && !slices.Contains(r.secrets, s) {
			r.secrets = append(r.secrets, s)
		}
	}
	// Sort the longest first, because a secret may contain another one.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

// known returns a finder of all secrets that requests have contained so far.
func (r *Recorder) known() *secret.Finder {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := &secret.Finder{}
	for _, k := range r.secrets {
		known.Add(k)
	}
	return known
}

func (r *Recorder) redact(s string) string { return r.known().Text(s) }

// redactChunks redacts a text that was split into chunks. If the text contains a secret, the result is a single
// chunk.
func (r *Recorder) redactChunks(chunks []string) []string {
	whole := strings.Join(chunks, "")
	if clean := r.redact(whole); clean != whole {
		return []string{clean}
	}
	return chunks
}
