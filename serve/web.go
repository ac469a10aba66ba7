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

// Web is an agent that runs as an HTTP server. Each POST from a front end contains one frame, and the response is a
// stream of frames. Log, Protocol, and either Script or Play are required.
type Web struct {
	Log      *transcript.Transcript
	Protocol Protocol
	// Script determines the agent's behaviour. If it is nil, Play handles the posts.
	Script *Script
	Play   func(a *Answer, e transcript.Entry)
	// Form returns the format of the response for a client with this Accept header.
	Form func(accept string) Form

	once   sync.Once
	script *scripted
	open   sync.WaitGroup
	posts  atomic.Int64
}

// Form describes how frames are encoded in a response.
type Form struct {
	// Type is the media type of the response. Dress returns the encoding of a frame.
	Type  string
	Dress func(frame []byte) []byte
}

// The ways in which the response to a post can end, as logged in transcript.Ended.
const (
	EndClosed = "closed"
	EndCut    = "cut"
	EndHungUp = "hung up" // the front end disconnected
)

// mostPosted is the maximum size in bytes of a posted body.
const mostPosted = 64 << 20

// ServeHTTP implements http.Handler. It accepts requests from web pages of any origin.
func (w *Web) ServeHTTP(to http.ResponseWriter, r *http.Request) { Anywhere(w.post)(to, r) }

// Anywhere returns a handler that passes POST requests to post, also from web pages of any origin. Other requests get
// an empty response.
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

// Wait waits until the responses to all posts have ended.
func (w *Web) Wait() { w.open.Wait() }

// conn returns the connection state that all handlers of the script share.
func (w *Web) conn() *Conn {
	w.once.Do(func() {
		s := &Server{Log: w.Log, Protocol: w.Protocol, Script: w.Script, Err: io.Discard}
		w.script = newScripted(newConn(context.Background(), s), w.Script)
	})
	return w.script.Conn
}

// answer runs the handler for a post. If there is none, it sends the protocol's default response.
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

// Answer is the response to one post.
type Answer struct {
	web  *Web
	to   http.ResponseWriter
	post transcript.Entry
	gone context.Context // ends when the front end disconnects
	form Form

	mu    sync.Mutex
	begun bool
	cut   bool
}

// Head starts the response with a status and a media type; "" means the type in Form. It does nothing if the response
// has already started.
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
	raw, _ := json.Marshal(value) // text and numbers can always be encoded
	a.web.Log.Append(transcript.Entry{Source: transcript.Agent, Kind: kind, Method: a.post.Method,
		Session: a.post.Session, ID: a.post.ID, Ref: a.post.Seq, Raw: raw})
}

func (a *Answer) flush() { _ = http.NewResponseController(a.to).Flush() } // ctx shows if the front end is gone

// Send logs a frame and writes it.
func (a *Answer) Send(frame []byte) transcript.Entry { return sink{to: a}.send(frame) }

// sends does the work of sink.send for a response to a post.
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

// raw does the work of sink.bytes for a response to a post.
func (a *Answer) raw(s sink, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head(http.StatusOK, "")
	s.put(b)
}

func (a *Answer) write(b []byte) {
	_, _ = a.to.Write(b) // a.gone ends if the front end disconnects
	a.flush()
}

// end ends the response and logs how it ended.
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

// Cut makes the response end by closing the connection. Later frames are dropped.
func (a *Answer) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = true
}

// Events returns a frame as a server-sent event.
func Events(frame []byte) []byte {
	return []byte("data: " + strings.ReplaceAll(string(frame), "\n", "\ndata: ") + "\n\n")
}

// Web returns the response to the post that is being handled, or nil if the agent is not a server.
func (s *Run) Web() *Answer { return s.sink.to }

// Handled returns the request that is being handled, or the zero Entry for connect and eof.
func (s *Run) Handled() transcript.Entry { return s.request }
