package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// Run is one run of a handler, on which its acts operate.
type Run struct {
	*scripted
	ctx       context.Context  // ends with the handled event
	request   transcript.Entry // the handled frame; zero for connect and eof
	session   string
	cancelled <-chan struct{}
	sink      sink
	index     int // $I
	answered  bool
	told      *told
}

// told is the message that a run is sending. All blocks of the run share it.
type told struct {
	mu      sync.Mutex
	kind    string // the kind of the current message
	message int    // its number
	begun   bool   // the prompt was acknowledged, and the work on it is not over
}

func (s *Run) play(b *Block) {
	if !s.noted(s.Run(b)) || s.request.Kind != transcript.Request || s.sink.to != nil {
		return // the answer to a post ends with its handler
	}
	// A handler that waits may leave a prompt open on purpose.
	_, prompt := s.Protocol.Prompt(s.request)
	if prompt && b.Waits || s.answered && !s.told.begun {
		return
	}
	owed := s.Protocol.Owed(s.request, s.script.Capabilities)
	if s.told.begun {
		owed = owed[len(s.Protocol.Taken(s.request)):]
	}
	for _, line := range owed {
		s.Send(line)
	}
}

// noted logs the error of a block, and reports whether there was none.
func (s *Run) noted(err error) bool {
	if err != nil && !errors.Is(err, errEnded) && s.ctx.Err() == nil {
		s.Log.Event(0, transcript.Note, transcript.Noted, s.session, map[string]any{"code": "script", "text": err.Error()})
	}
	return err == nil && s.ctx.Err() == nil
}

// errEnded ends all handlers, because the script has ended the process.
var errEnded = errors.New("the script has ended")

// Run runs the acts of a block, one after the other.
func (s *Run) Run(b *Block) error {
	for _, a := range b.Acts {
		if err := a.Do(s); err != nil {
			if errors.Is(err, errEnded) {
				return err
			}
			return fmt.Errorf("line %d, %s: %w", a.Line, a.Name, err)
		}
		if s.ctx.Err() != nil {
			return errEnded
		}
	}
	return nil
}

// Repeat runs a block n times, with $I from 1 to n.
func (s *Run) Repeat(n int, b *Block) error {
	for i := range n {
		s.index = i + 1
		if err := s.Run(b); err != nil {
			return err
		}
	}
	return nil
}

// Join runs a block and writes its frames with one call.
func (s *Run) Join(b *Block) error {
	to := s.sink
	to.join = &bytes.Buffer{}
	defer to.flush()
	return s.through(to, b)
}

// Split runs a block and writes its frames in pieces of n bytes.
func (s *Run) Split(n int, b *Block) error {
	to := s.sink
	to.split = n
	return s.through(to, b)
}

// through runs a block whose frames go to the sink to.
func (s *Run) through(to sink, b *Block) error {
	inner := *s
	inner.sink = to
	err := inner.Run(b)
	s.answered = inner.answered
	return err
}

// Beside runs a block concurrently with the lines after it.
func (s *Run) Beside(b *Block) {
	inner := *s
	go func() { inner.noted(inner.Run(b)) }()
}

// Begin acknowledges the prompt that is being handled, if it has no answer yet and the protocol has such a message.
func (s *Run) Begin() {
	if _, prompt := s.Protocol.Prompt(s.request); !prompt || s.answered {
		return
	}
	for _, line := range s.Protocol.Taken(s.request) {
		s.sink.send(line)
		s.answered, s.told.begun = true, true
	}
}

// End records that the script has ended the work on the prompt.
func (s *Run) End() { s.told.begun = false }

// Message returns the id of the message for a piece of this kind: the current one, or a new one if the last piece had
// another kind. The kind "" ends the message.
func (s *Run) Message(kind string) string {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	if s.told.kind != kind {
		s.told.kind = kind
		s.told.message++
	}
	return fmt.Sprintf("message-%d-%d", s.request.Seq, s.told.message)
}

// Session returns the id of the event's session, or of the newest session.
func (s *Run) Session() string { return s.session }

// Send logs a frame and writes it.
func (s *Run) Send(line []byte) { s.sink.send(line) }

// Write writes bytes that need not be a line.
func (s *Run) Write(b []byte) { s.sink.bytes(b) }

// Result answers the request that is being handled; result is JSON.
func (s *Run) Result(result string) {
	s.answered = true
	s.sink.send(Result(s.request.ID, result))
}

// Error answers the request that is being handled with an error; code is a number.
func (s *Run) Error(code, message string) {
	s.answered = true
	s.sink.send(Error(s.request.ID, code, message))
}

// Request sends a request and stores it under a name. params and id are JSON; the id "" is replaced by a new one.
func (s *Run) Request(name, method, params, id string) {
	e := s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`,
		cmp.Or(id, s.newID()), Quote(method), params))
	s.mu.Lock()
	s.names[name] = e.Seq
	s.mu.Unlock()
	s.Log.Event(0, transcript.Note, Named, s.session, namedNote{name, e.Seq})
}

// Notify sends a notification; params is JSON.
func (s *Run) Notify(method, params string) {
	s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"params":%s}`, Quote(method), params))
}

// Await waits for the answer to a named request, for "cancel", or for the next frame with a method. It waits for at
// most within, unless that is 0. A timeout is no error, because the checks report it.
func (s *Run) Await(what string, within time.Duration) {
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if within > 0 {
		ctx, cancel = context.WithTimeout(ctx, within)
	}
	defer cancel()
	if what == "cancel" {
		select {
		case <-s.cancelled:
		case <-ctx.Done():
		}
		return
	}
	s.mu.Lock()
	seq, ok := s.names[what]
	s.mu.Unlock()
	if ok {
		s.Answer(ctx, seq)
		return
	}
	from := s.Log.Len() + 1
	for {
		next := s.frame()
		for e := range s.Log.From(from) {
			if e.Source == transcript.Editor && e.Method == what {
				return
			}
			from = e.Seq + 1
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// Pause waits for d.
func (s *Run) Pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return errEnded
	}
}

// Stderr writes a line to stderr repeatedly until it has written n bytes.
func (s *Run) Stderr(text string, n int) {
	line := text + "\n"
	for written := 0; written < n && s.ctx.Err() == nil; written += len(line) {
		if _, err := s.Err.Write([]byte(line)); err != nil {
			return // the editor has closed stderr
		}
	}
}

// Exit ends the process with a status.
func (s *Run) Exit(code int) error {
	s.exit <- code
	return errEnded
}

// Die ends the process by SIGKILL.
func (s *Run) Die() error {
	s.Server.Die()
	return errEnded
}

// Close closes the output, or a server's connection; the agent keeps running.
func (s *Run) Close() {
	if s.sink.to != nil {
		s.sink.to.Cut()
		return
	}
	s.close()
}

// Fork starts a child that outlives its parent.
func (s *Run) Fork() error { return s.Child() }

// Ignore makes the agent keep running after the end of its input ("eof") or after SIGTERM ("term").
func (s *Run) Ignore(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignores[what] = true
}

// inText matches a variable within quotes, for example in JSON.
var inText = lazy.Regexp(`\$([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_]+)*)`)

// Expand replaces the variables of a word, including those within quotes. Unknown names within quotes stay unchanged.
func (s *Run) Expand(w script.Word) (string, error) {
	text, err := w.Expand(s.variable)
	if err != nil {
		return "", err
	}
	return inText().ReplaceAllStringFunc(text, func(m string) string {
		parts := inText().FindStringSubmatch(m)
		if slices.Contains([]string{"SESSION", "WORK", "I", "ID"}, parts[1]) {
			value, _ := s.variable(parts[1])
			return value + parts[2]
		}
		if value, err := s.variable(m[1:]); err == nil {
			return value
		}
		return m
	}), nil
}

func (s *Run) variable(name string) (string, error) {
	switch name {
	case "SESSION":
		return s.session, nil
	case "WORK":
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.work[s.session], nil
	case "I":
		return strconv.Itoa(s.index), nil
	case "ID":
		return string(s.request.ID), nil
	}
	head, path, _ := strings.Cut(name, ".")
	s.mu.Lock()
	seq, ok := s.names[head]
	s.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("unknown variable $%s", name)
	}
	e, ok := s.Answer(s.ctx, seq)
	if !ok {
		return "", errEnded
	}
	return e.JSON().Get("result").Path(path).Text(), nil
}
