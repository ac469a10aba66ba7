package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-test/acp-test/transcript"
)

// Web is the agent as an HTTP server. Each post of a front end is one of its frames; the answer is a stream of frames.
// Log, Protocol and either Script or Play are required.
type Web struct {
	Log      *transcript.Transcript
	Protocol Protocol
	// Script is played; if it is nil, Play answers posts.
	Script *Script
	Play   func(a *Answer, e transcript.Entry)
	// Form returns the format of a stream for a client with this Accept header.
	Form func(accept string) Form

	once   sync.Once
	script *scripted
	open   sync.WaitGroup
	posts  atomic.Int64
}

// Form is how frames are sent over a connection.
type Form struct {
	// Type is the media type of a stream. Dress returns the bytes to send for a frame.
	Type  string
	Dress func(frame []byte) []byte
}

// The ways in which the answer to a post ends, as in transcript.Ended.
const (
	EndClosed = "closed"
	EndCut    = "cut"
	EndHungUp = "hung up" // the front end closed the connection
)

// mostPosted is the largest body, in bytes, that a front end may post.
const mostPosted = 64 << 20

// ServeHTTP implements http.Handler. It accepts browsers of any origin.
func (w *Web) ServeHTTP(to http.ResponseWriter, r *http.Request) { Anywhere(w.post)(to, r) }

// Anywhere returns a handler of posts from pages of any origin. Other requests get an empty answer.
func Anywhere(post http.HandlerFunc) http.HandlerFunc {
	return func(to http.ResponseWriter, r *http.Request) {
		to.Header().Set("Access-Control-Allow-Origin", "*")
		to.Header().Set("Access-Control-Allow-Headers", "*")
		if r.Method != http.MethodPost {
			to.WriteHeader(http.StatusNoContent)
			return
		}
		post(to, r)
	}
}

func (w *Web) post(to http.ResponseWriter, r *http.Request) {
	w.open.Add(1)
	defer w.open.Done()
	body, err := io.ReadAll(http.MaxBytesReader(to, r.Body, mostPosted))
	if err != nil {
		http.Error(to, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	w.posts.Add(1)
	c := w.conn()
	e := w.Log.AppendFrame(0, transcript.Editor, body, 0)
	c.note(e)
	a := &Answer{web: w, to: to, post: e, gone: r.Context(), form: w.Form(strings.Join(r.Header.Values("Accept"), ","))}
	if w.Script != nil {
		w.script.answer(a, e)
	} else {
		w.Play(a, e)
	}
	a.end()
	if a.cut {
		panic(http.ErrAbortHandler)
	}
}

// Posts returns the number of posts so far.
func (w *Web) Posts() int { return int(w.posts.Load()) }

// Wait waits until all posts are answered.
func (w *Web) Wait() { w.open.Wait() }

// conn returns the state that the handlers of a script share.
func (w *Web) conn() *Conn {
	w.once.Do(func() {
		s := &Server{Log: w.Log, Protocol: w.Protocol, Script: w.Script, Err: io.Discard}
		w.script = newScripted(newConn(context.Background(), s), w.Script)
	})
	return w.script.Conn
}

// answer runs the handler for a post, or sends the protocol's default if there is none.
func (p *scripted) answer(a *Answer, e transcript.Entry) {
	h := p.find(e.Method, e)
	if h == nil {
		for _, frame := range p.Protocol.Plain(e, nil) {
			a.Send(frame)
		}
		return
	}
	s := &Run{scripted: p, ctx: a.gone, request: e, session: e.Session, cancelled: a.gone.Done(),
		sink: sink{c: p.Conn, to: a}}
	s.play(&h.Block)
}

// Answer is the answer to one post.
type Answer struct {
	web  *Web
	to   http.ResponseWriter
	post transcript.Entry
	gone context.Context // ends when the front end hangs up
	form Form

	mu    sync.Mutex
	begun bool
	cut   bool
}

// Head starts the answer with a status and a media type; "" means the type of streams. It does nothing if the answer
// has started.
func (a *Answer) Head(status int, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head(status, kind)
}

func (a *Answer) head(status int, kind string) {
	if a.begun {
		return
	}
	a.begun = true
	kind = cmp.Or(kind, a.form.Type)
	a.to.Header().Set("Content-Type", kind)
	a.log(transcript.Response, map[string]any{"status": status, "type": kind, "headers": map[string]string{}})
	a.to.WriteHeader(status)
	a.flush()
}

func (a *Answer) log(kind transcript.Kind, value map[string]any) {
	raw, _ := json.Marshal(value) // texts and numbers can be encoded
	a.web.Log.Append(transcript.Entry{Source: transcript.Agent, Kind: kind, Method: a.post.Method,
		Session: a.post.Session, ID: a.post.ID, Ref: a.post.Seq, Raw: raw})
}

func (a *Answer) flush() { _ = http.NewResponseController(a.to).Flush() } // the context tells if the front end is gone

// Send logs a frame and writes it.
func (a *Answer) Send(frame []byte) transcript.Entry { return sink{to: a}.send(frame) }

// sends is sink.send for an answer.
func (a *Answer) sends(s sink, frame []byte) transcript.Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut || a.gone.Err() != nil {
		return transcript.Entry{}
	}
	a.head(http.StatusOK, "")
	e := a.web.Log.AppendReply(0, a.post.Seq, bytes.Clone(frame), 0)
	s.put(a.form.Dress(frame))
	return e
}

// raw is sink.bytes for an answer.
func (a *Answer) raw(s sink, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head(http.StatusOK, "")
	s.put(b)
}

func (a *Answer) write(b []byte) {
	_, _ = a.to.Write(b) // the context tells if the front end is gone
	a.flush()
}

// end ends the answer.
func (a *Answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	how := EndClosed
	switch {
	case a.cut:
		how = EndCut
	case a.gone.Err() != nil:
		how = EndHungUp
	default:
		a.head(http.StatusOK, "")
	}
	a.log(transcript.Ended, map[string]any{"end": how})
}

// Cut breaks off the connection; later frames are dropped.
func (a *Answer) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = true
}

// Events returns a frame as a server-sent event.
func Events(frame []byte) []byte {
	return []byte("data: " + strings.ReplaceAll(string(frame), "\n", "\ndata: ") + "\n\n")
}

// Web returns the answer to the post that is being handled; nil if the agent is no server.
func (s *Run) Web() *Answer { return s.sink.to }

// Handled returns the request that is being handled; the zero Entry for connect and eof.
func (s *Run) Handled() transcript.Entry { return s.request }
