package endpoint

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// EventStream is the media type of a stream of server-sent events.
const EventStream = "text/event-stream"

// The ways in which an answer ends.
const (
	Closed      = "closed"      // the server closed the body of the response
	Cut         = "cut"         // the connection broke
	HungUp      = "hung up"     // the client closed the connection
	LeftOpen    = "left open"   // the client closed the connection after the run, because the server had not
	Unseen      = "unseen"      // the capture has only bytes, which do not show who closed the connection
	Refused     = "refused"     // the status is not 200
	NoStream    = "no stream"   // the status is 200, but the body is not an event stream
	Unreachable = "unreachable" // the server sent no response
)

// Head is the beginning of an answer. As JSON, it is the Raw of a transcript.Response.
type Head struct {
	Status int    `json:"status"`
	Proto  string `json:"proto"`
	// Type is the media type in lower case, without parameters.
	Type string `json:"type,omitempty"`
	// Accept is the Accept header of the request. "" stands for EventStream, and "-" for no header.
	Accept string `json:"accept,omitempty"`
	// Headers has the response headers, by name in lower case.
	Headers map[string]string `json:"headers"`
	// Body is the beginning of a body that is not an event stream.
	Body string `json:"body,omitempty"`
}

// End is how an answer ended. As JSON, it is the Raw of a transcript.Ended.
type End struct {
	End string `json:"end"`
	// Status is the HTTP status of an answer that is not a stream.
	Status int `json:"status,omitempty"`
	// Problem is the error of the connection, or "" without one.
	Problem string `json:"problem,omitempty"`
	// Last is the type of the event that ended the last run, or "" if that run has not ended. Outcome is the outcome
	// of the run, if RUN_FINISHED gives one.
	Last    string `json:"last,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Framing
}

// EndOf returns how an answer ended, in the words that scenarios use. It returns "" if the entry is not the end of an
// answer.
func EndOf(e transcript.Entry) string {
	if e.Kind != transcript.Ended {
		return ""
	}
	v := e.JSON()
	switch {
	case v.Get("last").Is("RUN_ERROR"):
		return "error"
	case v.Get("last").Is("RUN_FINISHED"):
		if outcome := v.Get("outcome").Str(); outcome == "interrupt" || outcome == "cancelled" {
			return outcome
		}
		return "finished"
	}
	return cmp.Or(early[v.Get("end").Str()], "unreachable")
}

// early has, for an answer that ended before its run, the word that scenarios use.
var early = map[string]string{Closed: "truncated", Cut: "truncated", HungUp: "hung-up", Refused: "refused",
	NoStream: "no-stream"}

// exchange sends one request and receives its answer.
func (e *Endpoint) exchange(ctx context.Context, at string, p Post) End {
	r, err := http.NewRequestWithContext(ctx, cmp.Or(p.Method, http.MethodPost), at, bytes.NewReader(p.Body))
	if err != nil {
		return End{End: Unreachable, Problem: err.Error()}
	}
	set := func(name, value, usual string) {
		if value = cmp.Or(value, usual); value != "-" {
			r.Header.Set(name, value)
		}
	}
	set("Content-Type", p.Type, "application/json")
	set("Accept", p.Accept, cmp.Or(e.Accept, EventStream))
	for _, headers := range []map[string]string{e.Header, p.Header} {
		for name, value := range headers {
			r.Header.Set(name, value)
		}
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return ended(ctx, Unreachable, err)
	}
	defer answer.Body.Close()
	head := headOf(answer)
	body, packed := unpacked(answer)
	streams := answer.StatusCode == http.StatusOK && head.Streams() && packed == nil
	if !streams {
		// The body may never end.
		timer := time.AfterFunc(5*time.Second, func() { answer.Body.Close() })
		begin, _ := io.ReadAll(io.LimitReader(body, 64<<10))
		timer.Stop()
		head.Body = strings.ToValidUTF8(string(begin), string(utf8.RuneError))
	}
	raw, _ := json.Marshal(head) // cannot fail: the members are texts and numbers
	e.put(item{piece: piece{data: raw}, ref: p.Ref, kind: transcript.Response})
	switch {
	case streams:
		return e.stream(ctx, body, sourceOf(head.Type, body), p)
	case answer.StatusCode != http.StatusOK:
		return End{End: Refused, Status: head.Status}
	}
	end := End{End: NoStream, Status: head.Status}
	if packed != nil {
		end.Problem = packed.Error()
	}
	return end
}

// Streams reports whether the body is an event stream: server-sent events or the binary form.
func (h Head) Streams() bool { return h.Type == EventStream || h.Type == aguiproto.MediaType }

func headOf(r *http.Response) Head {
	h := Head{Status: r.StatusCode, Proto: r.Proto, Headers: map[string]string{}}
	if asked := strings.Join(r.Request.Header.Values("Accept"), ", "); asked != EventStream {
		h.Accept = strings.ToValidUTF8(cmp.Or(asked, "-"), string(utf8.RuneError))
	}
	for name, values := range r.Header {
		h.Headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), string(utf8.RuneError))
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		h.Type = kind
	}
	return h
}

// stream reads the events of an answer until there are no more. If p.Patience is not 0, it closes a body that stays
// open for longer than this after the end of the run.
func (e *Endpoint) stream(ctx context.Context, body io.Closer, s source, p Post) (end End) {
	var open *time.Timer // started at the end of the run
	late := make(chan struct{})
	defer func() {
		end.Framing = *s.Shows()
		if open != nil {
			open.Stop()
		}
	}()
	for {
		piece, err := next(s)
		if err != nil {
			select {
			case <-late:
				end.End = LeftOpen
				return end
			default:
			}
			last, outcome := end.Last, end.Outcome
			// The server may have closed the body because the client hung up.
			if end = (End{End: Closed}); !errors.Is(err, io.EOF) || ctx.Err() != nil {
				end = ended(ctx, Cut, err)
			}
			end.Last, end.Outcome = last, outcome
			return end
		}
		end.heard(piece.data)
		e.put(item{piece: piece, ref: p.Ref})
		switch {
		case end.Last == "" && open != nil:
			open.Stop()
			open = nil
		case end.Last != "" && open == nil && p.Patience > 0:
			open = time.AfterFunc(p.Patience, func() {
				close(late)
				body.Close()
			})
		}
	}
}

// heard updates e with an event that begins or ends a run. It ignores a RUN_FINISHED after a RUN_ERROR.
func (e *End) heard(data []byte) {
	last, outcome, of := runEvent(data)
	if of && !(last == "RUN_FINISHED" && e.Last == "RUN_ERROR") {
		e.Last, e.Outcome = last, outcome
	}
}

// runEvent returns how an event begins or ends a run. of is false for any other event. last is "" if the event begins
// a run.
func runEvent(data []byte) (last, outcome string, of bool) {
	if !bytes.Contains(data, []byte("RUN_")) {
		return "", "", false
	}
	v, err := wire.Parse(data)
	if err != nil {
		return "", "", false
	}
	switch kind := v.Get("type").Str(); kind {
	case "RUN_STARTED":
		return "", "", true
	case "RUN_FINISHED":
		return kind, v.Path("outcome.type").Str(), true
	case "RUN_ERROR":
		return kind, "", true
	}
	return "", "", false
}

// ended returns the End for an error of the connection. If the client hung up, it returns HungUp instead of how.
func ended(ctx context.Context, how string, err error) End {
	if errors.Is(context.Cause(ctx), errHangUp) {
		return End{End: HungUp}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the rest of the text repeats the request
	}
	return End{End: how, Problem: err.Error()}
}

// unpacked returns the body of an answer without its content encoding. A server may use an encoding although our
// requests name none.
func unpacked(answer *http.Response) (io.ReadCloser, error) {
	coding := strings.ToLower(cmp.Or(answer.Header.Get("Content-Encoding"), "identity"))
	switch coding {
	case "identity":
		return answer.Body, nil
	case "gzip", "x-gzip":
		return &gunzip{body: answer.Body}, nil
	}
	return answer.Body, fmt.Errorf("the response has content encoding %q, which nobody requested", coding)
}

// gunzip decompresses a body while the body arrives.
type gunzip struct {
	body io.ReadCloser
	in   *gzip.Reader
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.in == nil {
		if g.in, err = gzip.NewReader(g.body); err != nil {
			return 0, err
		}
	}
	return g.in.Read(p)
}

func (g *gunzip) Close() error { return g.body.Close() }
