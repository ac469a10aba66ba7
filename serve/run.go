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

// Run is one run of a handler. The acts of the handler use its methods.
type Run struct {
	*scripted
	ctx       context.Context  // ends with the handled event
	request   transcript.Entry // the frame being handled; zero for connect and eof
	session   string
	cancelled <-chan struct{}
	sink      sink
	index     int // value of $I
	answered  bool
	told      *told
}

// told is the state of the message that a run is sending. All blocks of the run share it.
type told struct {
	mu      sync.Mutex
	kind    string // kind of the current message
	message int    // number of the current message
	begun   bool   // the prompt was acknowledged and the work on it continues
}

func (s *Run) play(b *Block) {
	if !s.noted(s.Run(b)) || s.request.Kind != transcript.Request || s.sink.to != nil {
		return // the response to a post ends with the handler
	}
	// A handler that waits may deliberately leave a prompt unanswered.
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

// noted logs the error of a block, if there is one. It returns false if there was an error or the run has ended.
func (s *Run) noted(err error) bool {
	if err != nil && !errors.Is(err, errEnded) && s.ctx.Err() == nil {
		s.Log.Event(0, transcript.Note, transcript.Noted, s.session, map[string]any{"code": "script", "text": err.Error()})
	}
	return err == nil && s.ctx.Err() == nil
}

// errEnded makes a handler end because the script has ended the process.
var errEnded = errors.New("the script has ended")

// Run runs the acts of a block in order.
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

// Repeat runs a block n times. $I counts the repeats from 1.
func (s *Run) Repeat(n int, b *Block) error {
	for i := range n {
		s.index = i + 1
		if err := s.Run(b); err != nil {
			return err
		}
	}
	return nil
}

// Join runs a block and then writes all frames of the block in a single write.
func (s *Run) Join(b *Block) error {
	to := s.sink
	to.join = &bytes.Buffer{}
	defer to.flush()
	return s.through(to, b)
}

// Split runs a block and writes the block's frames in pieces of n bytes.
func (s *Run) Split(n int, b *Block) error {
	to := s.sink
	to.split = n
	return s.through(to, b)
}

// through runs a block and writes the block's frames to the sink to.
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

// Begin acknowledges the prompt that is being handled. It does nothing if the prompt is already answered or the
// protocol has no acknowledgement.
func (s *Run) Begin() {
	if _, prompt := s.Protocol.Prompt(s.request); !prompt || s.answered {
		return
	}
	for _, line := range s.Protocol.Taken(s.request) {
		s.sink.send(line)
		s.answered, s.told.begun = true, true
	}
}

// End records that the script has finished the work on the prompt.
func (s *Run) End() { s.told.begun = false }

// Message returns the id of the message to which a piece of this kind belongs. It is the id of the current message,
// or a new id if the last piece had another kind. The kind "" ends the current message.
func (s *Run) Message(kind string) string {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	if s.told.kind != kind {
		s.told.kind = kind
		s.told.message++
	}
	return fmt.Sprintf("message-%d-%d", s.request.Seq, s.told.message)
}

// Session returns the id of the event's session or, if the event has none, of the session opened last.
func (s *Run) Session() string { return s.session }

// Send logs a frame and writes it.
func (s *Run) Send(line []byte) { s.sink.send(line) }

// Write writes bytes, which need not be a complete line.
func (s *Run) Write(b []byte) { s.sink.bytes(b) }

// Result responds to the request being handled. result is JSON.
func (s *Run) Result(result string) {
	s.answered = true
	s.sink.send(Result(s.request.ID, result))
}

// Error responds to the request being handled with an error. code is a number in decimal.
func (s *Run) Error(code, message string) {
	s.answered = true
	s.sink.send(Error(s.request.ID, code, message))
}

// Request sends a request to the editor and stores it under a name. params and id are JSON. If id is "", Request uses
// a new id.
func (s *Run) Request(name, method, params, id string) {
	e := s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`,
		cmp.Or(id, s.newID()), Quote(method), params))
	s.mu.Lock()
	s.names[name] = e.Seq
	s.mu.Unlock()
	s.Log.Event(0, transcript.Note, Named, s.session, namedNote{name, e.Seq})
}

// Notify sends a notification. params is JSON.
func (s *Run) Notify(method, params string) {
	s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"params":%s}`, Quote(method), params))
}

// Await waits for one of three things: the response to the request with the name what, a cancel of the turn if what
// is "cancel", or the next frame with the method what. within is the timeout; 0 means none. A timeout is not reported
// here, because the scenario's checks report it.
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

// Pause waits for d. It returns errEnded if the run ends first.
func (s *Run) Pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return errEnded
	}
}

// Stderr writes text as a line to stderr again and again until it has written at least n bytes.
func (s *Run) Stderr(text string, n int) {
	line := text + "\n"
	for written := 0; written < n && s.ctx.Err() == nil; written += len(line) {
		if _, err := s.Err.Write([]byte(line)); err != nil {
			return // the editor has closed stderr
		}
	}
}

// Exit ends the agent's process with an exit status.
func (s *Run) Exit(code int) error {
	s.exit <- code
	return errEnded
}

// Die ends the agent's process with SIGKILL.
func (s *Run) Die() error {
	s.Server.Die()
	return errEnded
}

// Close closes the agent's output. If the agent is a server, it closes the connection. The agent keeps running.
func (s *Run) Close() {
	if s.sink.to != nil {
		s.sink.to.Cut()
		return
	}
	s.close()
}

// Fork starts a child process that outlives the agent.
func (s *Run) Fork() error { return s.Child() }

// Ignore makes the agent keep running after the end of its input ("eof") or after SIGTERM ("term").
func (s *Run) Ignore(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignores[what] = true
}

// inText matches a variable inside quoted text, for example in JSON.
var inText = lazy.Regexp(`\$([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_]+)*)`)

// Expand replaces the variables in a word, including those inside quotes. Inside quotes, unknown variables stay
// unchanged.
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
