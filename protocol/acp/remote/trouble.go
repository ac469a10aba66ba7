package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// Trouble is a simulated network failure, which happens once to the editor's connection.
type Trouble string

// These are the failures. The first five hit the next request, the last two the next event.
const (
	Lost        Trouble = "lost"        // the request is cut off and does not reach the agent; the editor sends it again
	Unavailable Trouble = "unavailable" // a gateway answers the request with 503; the editor sends it again
	Expired     Trouble = "expired"     // a gateway answers the request with 401; the editor sends it again
	Unanswered  Trouble = "unanswered"  // the agent has received the request, but its response is lost
	Doubled     Trouble = "doubled"     // the agent receives the request twice
	Cut         Trouble = "cut"         // the stream is cut off within the event; the editor resumes it
	Ended       Trouble = "ended"       // the stream ends after the event; the editor resumes it
)

var (
	ofRequests = []Trouble{Lost, Unavailable, Expired, Unanswered, Doubled}
	ofStreams  = []Trouble{Cut, Ended}
)

// Troubles returns all failures.
func Troubles() []Trouble { return slices.Concat(ofRequests, ofStreams) }

// ErrNoCursors is the error for a failure of a stream that cannot be resumed. Such a failure may lose messages, which
// the protocol allows.
var ErrNoCursors = errors.New("a cut stream cannot be resumed: the agent's events have no ids")

// Trouble causes a network failure at the next request or event of the HTTP connection.
func (c *Conn) Trouble(t Trouble) error {
	c.mu.Lock()
	h, ok := c.way.(*overHTTP)
	c.mu.Unlock()
	if !ok {
		return errors.New("the connection to the agent does not use HTTP")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(ofStreams, t) && !h.cursors {
		return ErrNoCursors
	}
	h.troubles = append(h.troubles, t)
	return nil
}

// meets returns the next planned failure of one of the kinds, and removes it from the plan. It returns "" if there is
// none.
func (h *overHTTP) meets(kinds []Trouble) (t Trouble) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.troubles, func(t Trouble) bool { return slices.Contains(kinds, t) })
	if i >= 0 {
		t = h.troubles[i]
		h.troubles = slices.Delete(h.troubles, i, i+1)
	}
	return t
}

// errUnanswered says that the agent received a request but its answer was lost.
var errUnanswered = errors.New("the answer broke off")

// post posts a message, and simulates a planned failure. It posts the message again if the failure tells the editor
// that the agent did not receive the message, and also for Doubled.
func (h *overHTTP) post(ctx context.Context, session string, line []byte, x exchange) (*http.Response, error) {
	do := func(body io.Reader) (*http.Response, error) {
		r, err := h.request(ctx, http.MethodPost, session, line)
		if err != nil {
			return nil, err
		}
		if body != nil {
			r.Body = io.NopCloser(body)
		}
		r.Header.Set("Content-Type", jsonType)
		r.Header.Set("Accept", jsonType+", "+eventStream)
		return h.c.client.Do(r)
	}
	x.Trouble = h.meets(ofRequests)
	switch x.Trouble {
	case Lost:
		half := bytes.NewReader(line[:len(line)/2])
		if answer, err := do(io.MultiReader(half, broken{})); err == nil {
			answer.Body.Close()
		}
		x.Problem = "the connection broke before the agent had the whole request"
	case Unavailable:
		x.Status = http.StatusServiceUnavailable
	case Expired:
		x.Status = http.StatusUnauthorized
	case Unanswered, Doubled:
		answer, err := do(nil)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		if x.Trouble == Unanswered {
			return nil, errUnanswered
		}
		x.Status = answer.StatusCode
	default:
		return do(nil)
	}
	h.c.entry(transcript.Exchanged, session, 0, x)
	return do(nil)
}

// broken is the end of a request body that the network cuts off: it returns an error.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection broke off") }

// fragile is the body of a stream in which a failure may be simulated.
type fragile struct {
	io.ReadCloser
	h    *overHTTP
	last *string // id of the latest event
	met  Trouble
	dead error
}

func (f *fragile) Read(p []byte) (int, error) {
	if f.dead != nil {
		return 0, f.dead
	}
	n, err := f.ReadCloser.Read(p)
	event, _, whole := bytes.Cut(p[:n], []byte("\n\n"))
	if !bytes.Contains(event, []byte("data:")) || *f.last == "" { // a keep-alive, or a stream that cannot be resumed
		return n, err
	}
	switch f.met = f.h.meets(ofStreams); f.met {
	case Cut:
		f.dead = fmt.Errorf("the connection broke off within an event")
		n, err = len(event)/2, f.ReadCloser.Close()
	case Ended:
		f.dead = io.EOF
		if err = f.ReadCloser.Close(); whole { // later data in p comes again on the resumed stream
			n = len(event) + 2
		}
	}
	return n, err
}

// again opens a new stream in place of one that has ended, and reports whether this succeeded. It retries for about
// two seconds while the server believes that the old stream is still read.
func (h *overHTTP) again(s *stream) bool {
	for range 40 {
		next, err := h.opened(s.session, s.last)
		h.mu.Lock()
		taken := h.conflict
		h.mu.Unlock()
		if next != nil || err != nil || !taken {
			return next != nil
		}
		select {
		case <-h.c.ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}
