package fakellm

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/transcript"
)

// exchange is one request and its answer.
type exchange struct {
	s       *Server
	n       int
	route   route
	request *request
	http    *http.Request
	session string
	out     *sink
	chunks  int
	said    []spokenChunk // chunks that are not logged yet
}

var requests = sync.Pool{New: func() any { return new(request) }}

// ServeHTTP answers one request. A caller can use it to serve a Server on a listener of its own.
func (s *Server) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	default:
		s.handlers.Add(1)
	}
	s.mu.Unlock()
	defer s.handlers.Done()

	req := requests.Get().(*request)
	*req = request{doc: req.doc, system: req.system[:0], items: req.items[:0], tools: req.tools[:0]}
	defer requests.Put(req)
	x := &exchange{s: s, n: int(s.requests.Add(1)), http: hr, request: req, route: findRoute(hr)}
	x.out = newSink(w, hr.Context(), s.closed, s.cfg.WriteTimeout)
	defer x.out.release()
	x.out.leaving = x.told
	req.run, req.path, req.wire = x.route.run, hr.URL.Path, x.route.format.name()
	if p := x.read(); p != nil {
		x.begin("invalid", match{}, nil)
		x.refuse(p)
		return
	}
	switch x.route.task {
	case taskModels:
		x.begin("models", match{}, nil)
		x.reply(s.modelList(x.route.format))
	case taskModel:
		x.begin("models", match{}, nil)
		if !s.exists(x.route.model) {
			x.refuse(x.route.format.unknown(x.route.model))
			return
		}
		x.reply(appendJSON(nil, x.route.format.model(x.route.model)))
	case taskCount:
		x.begin("count-tokens", match{}, req.raw)
		x.reply(tokens(x.route.format, req))
	default:
		x.generate()
	}
}

// read reads the request and makes all checks that do not depend on the script's replies.
func (x *exchange) read() *problem {
	s, f, r := x.s, x.route.format, x.request
	if x.route.task == taskUnknown {
		return &problem{status: 404, message: fmt.Sprintf("Invalid URL (%s %s)", x.http.Method, x.http.URL.Path)}
	}
	if key, ok := f.key(x.http.Header, x.http.URL.RawQuery); !ok || s.cfg.Script.APIKey != "" &&
		key != s.cfg.Script.APIKey {
		return &problem{status: 401, code: "invalid_api_key", message: "Incorrect API key provided."}
	} else if name, ok := strings.CutPrefix(key, "run-"); ok && r.run == "" {
		r.run = name
	}
	if x.http.Method != http.MethodPost {
		return nil
	}
	if s.cfg.Wire != "" && f.name() != s.cfg.Wire {
		return &problem{status: 404, message: fmt.Sprintf("This server speaks %s; %s was asked for %s.", s.cfg.Wire,
			x.http.URL.Path, f.name())}
	}
	raw, p := x.body()
	if p != nil {
		return p
	}
	if p := r.parse(raw, x.route, x.http.URL.Query()); p != nil {
		return p
	}
	if !s.exists(r.model) {
		return f.unknown(r.model)
	}
	return s.chains.goOn(r)
}

// body reads and decompresses the request's body. It fails if the body is larger than Config.MaxBody.
func (x *exchange) body() ([]byte, *problem) {
	limit := x.s.cfg.MaxBody
	var in io.Reader = http.MaxBytesReader(x.out.w, x.http.Body, limit)
	var err error
	switch x.http.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		in, err = gzip.NewReader(in)
	case "deflate":
		in = flate.NewReader(in)
	default:
		return nil, &problem{status: 415, message: "Unsupported content encoding: " + x.http.Header.Get("Content-Encoding")}
	}
	var raw []byte
	if err == nil {
		var buf bytes.Buffer
		if n := x.http.ContentLength; n > 0 && n <= limit {
			buf.Grow(int(n) + bytes.MinRead)
		}
		_, err = buf.ReadFrom(io.LimitReader(in, limit+1))
		raw = buf.Bytes()
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large), int64(len(raw)) > limit:
		return nil, &problem{status: 413, message: fmt.Sprintf("Request exceeds the maximum size of %d bytes.", limit)}
	case err != nil:
		return nil, &problem{status: 400, message: "Could not read the body of the request: " + err.Error()}
	}
	return raw, nil
}

// generate answers a request for a model's answer.
func (x *exchange) generate() {
	s, r := x.s, x.request
	s.mu.Lock()
	s.wire = cmp.Or(s.wire, r.wire)
	s.mu.Unlock()
	m := s.find(r)
	if m.prompt != nil {
		x.session = m.prompt.Session
	}
	x.begin(m.lane, m, r.raw)
	if m.lane == LaneMain && !s.cfg.Lenient && !s.cfg.Script.Lenient {
		if p := r.refused(x.route.format); p != nil {
			x.refuse(p, member{"refused", true})
			return
		}
	}
	if m.lane == LaneMain && m.reply == nil {
		x.unmatched(m)
		return
	}
	if m.reply != nil {
		s.mu.Lock()
		s.used[m.reply] = true
		s.mu.Unlock()
	}
	a, steps := s.plan(r, m)
	id := ""
	if r.wire == OpenAIResponses {
		id = "resp_" + a.id
		s.chains.keep(r, id, a.calls()...)
	}
	if s.cfg.Transcript != nil {
		s.event(transcript.ModelAnswer, x.session, answerEntry(x.n, id, nodesOf(steps)))
	}
	x.play(a)
}

func (x *exchange) event(k transcript.Kind, details ...member) {
	x.told()
	x.s.event(k, x.session, append(object{{"n", x.n}}, details...))
}

// begin appends the request's entry to the transcript, if there is one.
func (x *exchange) begin(lane string, m match, body []byte) {
	if x.s.cfg.Transcript == nil {
		return
	}
	r := x.request
	o := object{{"wire", r.wire}, {"method", x.http.Method}, {"path", cleanPath(x.http)}, {"lane", lane},
		{"prompt", m.index}, {"step", m.step}}
	if m.turn > 0 && m.reply != nil {
		o = append(o, member{"line", m.reply.Line})
	}
	if m.prompt != nil {
		o = append(o, member{"user", m.prompt.Text}, member{"name", m.prompt.Name})
	} else {
		o = append(o, member{"user", ""})
	}
	if r.run != "" {
		o = append(o, member{"run", r.run})
	}
	if x.route.task == taskGenerate {
		o = append(o, member{"model", r.model}, member{"stream", r.stream}, member{"tools", len(r.tools)})
	}
	if results := r.results(); len(results) > 0 {
		for i, text := range results {
			results[i] = clip(text, 400)
		}
		o = append(o, member{"results", results})
	}
	o = append(o, member{"headers", headers(x.http.Header)})
	if body != nil {
		o = append(o, member{"body", oneLine(body)})
	}
	x.event(transcript.ModelRequest, o...)
}

// oneLine returns a JSON text without line breaks, because a transcript entry is a single line. It returns null if
// raw is not JSON.
func oneLine(raw []byte) json.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return json.RawMessage("null")
	}
	return b.Bytes()
}

func cleanPath(r *http.Request) string {
	q := r.URL.Query()
	for name := range q {
		if name == "key" || secret.Name(name) {
			q.Set(name, "redacted")
		}
	}
	if len(q) == 0 {
		return r.URL.Path
	}
	return r.URL.Path + "?" + q.Encode()
}

func headers(h http.Header) object {
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		v := strings.Join(h[name], ", ")
		if confidential(name) {
			v = "redacted"
		}
		o = append(o, member{name, v})
	}
	return o
}

// unmatched answers a request of the conversation for which the script has no reply. It sends an error with the
// reason.
func (x *exchange) unmatched(m match) {
	x.event(transcript.ModelUnmatched, member{"why", m.why}, member{"closest", m.near}, member{"prompt", m.index},
		member{"step", m.step}, member{"tools", len(x.request.tools)})
	message := "No reply in the script: " + m.why
	if m.near != "" {
		message += ". Closest: " + m.near
	}
	x.refuse(&problem{status: 400, code: "no_scripted_reply", message: message})
}

// refuse answers with an error in the API's form.
func (x *exchange) refuse(p *problem, more ...member) {
	if p.status == http.StatusRequestEntityTooLarge {
		x.out.w.Header().Set("Connection", "close")
	}
	x.send(p.status, x.route.format.problem(p), "application/json", p.message, more...)
}

// reply sends a complete JSON body with status 200.
func (x *exchange) reply(body []byte) { x.send(http.StatusOK, body, "application/json", "") }

func (x *exchange) send(status int, body []byte, contentType, why string, more ...member) {
	x.out.begin(status, contentType, len(body))
	x.out.buf = append(x.out.buf, body...)
	x.done(status, why, more...)
	if err := x.out.flush(); err != nil {
		x.aborted()
	}
}

func (x *exchange) done(status int, why string, more ...member) {
	o := append(object{{"chunks", x.chunks}, {"status", status}}, more...)
	if why != "" {
		o = append(o, member{"why", why})
	}
	x.event(transcript.ModelDone, o...)
}

func (x *exchange) aborted() { x.event(transcript.ModelAborted, member{"chunks", x.chunks}) }
