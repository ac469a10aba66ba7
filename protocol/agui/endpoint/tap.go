package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/sse"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/transcript"
)

// Tap is a proxy between front ends and an endpoint. It records posts and answers in the transcript, byte for byte,
// and forwards them. It forwards requests with other methods, such as OPTIONS, without recording them.
type Tap struct {
	log   *transcript.Transcript
	proxy *httputil.ReverseProxy
	path  string // path of the endpoint's URL
	open  sync.WaitGroup
}

// mostInput is the maximum size of a post, in bytes.
const mostInput = 64 << 20

type refKey struct{}

// Target parses the URL of an endpoint.
func Target(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL of an endpoint: it needs http or https, and a host", text)
	}
	return u, nil
}

// NewTap returns a proxy for the endpoint at a URL. The proxy accepts only requests for / and for the path of the URL.
// If the endpoint is on this machine, it gets the Host header that the front end sent.
func NewTap(u *url.URL, log *transcript.Transcript) *Tap {
	t := &Tap{log: log, path: u.Path}
	way := http.DefaultTransport.(*http.Transport).Clone()
	way.DisableCompression = true
	t.proxy = &httputil.ReverseProxy{Transport: way, FlushInterval: -1, ModifyResponse: t.answer, ErrorHandler: t.failed,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host
			if !loopback.Local(u.Host) { // several hosts may share a remote address
				r.Out.Host = u.Host
			}
			if r.In.URL.Path == "/" {
				r.Out.URL.Path, r.Out.URL.RawPath, r.Out.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
			}
			r.Out.Header.Set("Accept-Encoding", "identity") // a compressed body could not be recorded
		}}
	return t
}

// ServeHTTP implements http.Handler.
func (t *Tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.open.Add(1)
	defer t.open.Done()
	if at := strings.TrimSuffix(r.URL.Path, "/"); at != "" && at != strings.TrimSuffix(t.path, "/") {
		http.Error(w, fmt.Sprintf("acp-test records only the endpoint: post to / or %s, not %s", t.path, r.URL.Path),
			http.StatusNotFound)
		return
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostInput))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		e := t.log.AppendFrame(0, transcript.Editor, body, 0)
		r = r.WithContext(context.WithValue(r.Context(), refKey{}, e.Seq))
	}
	t.proxy.ServeHTTP(w, r)
}

// Wait waits until all requests that the proxy has accepted have ended.
func (t *Tap) Wait() { t.open.Wait() }

// answer replaces the body of an answer with a reader that records the body.
func (t *Tap) answer(r *http.Response) error {
	ref, posted := r.Request.Context().Value(refKey{}).(int)
	if !posted {
		return nil
	}
	head := headOf(r)
	if r.StatusCode != http.StatusOK || !head.Streams() || r.Header.Get("Content-Encoding") != "" {
		r.Body = &whole{ReadCloser: r.Body, tap: t, ref: ref, head: head}
		return nil
	}
	t.note(ref, transcript.Response, head)
	in := &recorder{tap: t, ref: ref}
	p := &sse.Passing{Body: r.Body, In: in, Ended: func(err error) { in.ended(r.Request.Context(), err) }}
	in.source = sourceOf(head.Type, p.Feed())
	r.Body = p
	return nil
}

// failed handles a request that the endpoint did not answer. It records the end of a post, and answers the front end
// with an error.
func (t *Tap) failed(w http.ResponseWriter, r *http.Request, err error) {
	if ref, posted := r.Context().Value(refKey{}).(int); posted {
		t.note(ref, transcript.Ended, over(r.Context(), Unreachable, err))
	}
	http.Error(w, "the endpoint cannot be reached: "+err.Error(), http.StatusBadGateway)
}

func (t *Tap) note(ref int, kind transcript.Kind, what any) {
	raw, _ := json.Marshal(what) // texts and numbers have a form
	run := t.log.At(ref)
	t.log.Append(transcript.Entry{Source: transcript.Agent, Kind: kind, Method: aguiframe.Run, Session: run.Session,
		ID: run.ID, Ref: ref, Raw: raw})
}

// over returns the End for an error of the connection. If the front end has hung up, it returns HungUp instead of how.
func over(ctx context.Context, how string, err error) End {
	if ctx.Err() != nil {
		return End{End: HungUp}
	}
	return ended(ctx, how, err)
}

// recorder records the events of a stream while the proxy forwards them.
type recorder struct {
	source
	tap *Tap
	ref int
	end End
}

// Step reads on for sse.Passing, and records an event that is complete.
func (r *recorder) Step() error {
	piece, complete, err := r.step()
	if complete {
		r.end.heard(piece.data)
		piece.add(r.tap.log, 0, r.ref)
	}
	return err
}

func (r *recorder) ended(ctx context.Context, err error) {
	end := End{End: Closed}
	switch {
	case errors.Is(err, context.Canceled):
		end.End = HungUp
	case !errors.Is(err, io.EOF):
		end = over(ctx, Cut, err)
	}
	end.Last, end.Outcome, end.Framing = r.end.Last, r.end.Outcome, *r.Shows()
	r.tap.note(r.ref, transcript.Ended, end)
}

// whole is the body of an answer that is not an event stream. When the body has ended, its beginning is recorded.
type whole struct {
	io.ReadCloser
	tap  *Tap
	ref  int
	head Head

	begun []byte
	noted bool
}

func (b *whole) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	b.begun = append(b.begun, to[:max(0, min(n, 64<<10-len(b.begun)))]...)
	if err != nil {
		b.note()
	}
	return n, err
}

func (b *whole) note() {
	if b.noted {
		return
	}
	b.noted = true
	b.head.Body = strings.ToValidUTF8(string(b.begun), string(utf8.RuneError))
	b.tap.note(b.ref, transcript.Response, b.head)
	end := End{End: NoStream, Status: b.head.Status}
	if b.head.Status != http.StatusOK {
		end.End = Refused
	}
	b.tap.note(b.ref, transcript.Ended, end)
}

func (b *whole) Close() error {
	b.note()
	return b.ReadCloser.Close()
}
