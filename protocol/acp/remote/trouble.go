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

// Trouble is a network failure that the editor's connection suffers once.
type Trouble string

// These are the troubles for the next request and for the next event.
const (
	Lost        Trouble = "lost"        // the request breaks off before the agent has it; the editor sends it again
	Unavailable Trouble = "unavailable" // a gateway answers it with 503; the editor sends it again
	Expired     Trouble = "expired"     // a gateway answers it with 401; the editor, let in anew, sends it again
	Unanswered  Trouble = "unanswered"  // the agent has it, and its answer breaks off; the editor cannot know
	Doubled     Trouble = "doubled"     // the agent gets it twice
	Cut         Trouble = "cut"         // the stream breaks off within the event; the editor resumes it
	Ended       Trouble = "ended"       // the stream ends behind the event; the editor resumes it
)

var (
	ofRequests = []Trouble{Lost, Unavailable, Expired, Unanswered, Doubled}
	ofStreams  = []Trouble{Cut, Ended}
)

// Troubles returns all troubles.
func Troubles() []Trouble { return slices.Concat(ofRequests, ofStreams) }

// ErrNoCursors is the error for streams that cannot be resumed. A cut may then lose messages, which the protocol
// allows.
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

// meets removes and returns the next Trouble of some kinds, or "".
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

// post posts a message. It posts the message again if the network reports that the agent did not receive it, and for
// the trouble Doubled.
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

// broken is the reader that ends a body which the network cuts off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection broke off") }

// fragile is the body of a stream in which a trouble may happen.
type fragile struct {
	io.ReadCloser
	h    *overHTTP
	last *string // the id of the latest event
	met  Trouble
	dead error
}

func (f *fragile) Read(p []byte) (int, error) {
	if f.dead != nil {
		return 0, f.dead
	}
	n, err := f.ReadCloser.Read(p)
	event, _, whole := bytes.Cut(p[:n], []byte("\n\n"))
	if !bytes.Contains(event, []byte("data:")) || *f.last == "" { // nobody would miss it, or nobody could resume it
		return n, err
	}
	switch f.met = f.h.meets(ofStreams); f.met {
	case Cut:
		f.dead = fmt.Errorf("the connection broke off within an event")
		n, err = len(event)/2, f.ReadCloser.Close()
	case Ended:
		f.dead = io.EOF
		if err = f.ReadCloser.Close(); whole { // what came with it comes again
			n = len(event) + 2
		}
	}
	return n, err
}

// again reopens a stream that has ended. It retries for a while, because the server may not have noticed yet that the
// old stream is gone.
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
