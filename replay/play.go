package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Player plays the editor of a recording to a live agent. Recording, Protocol and Start are required.
type Player struct {
	Recording *transcript.Transcript
	Protocol  Protocol
	Mode      Mode // "" means Ordered
	// Speed is how many times faster than recorded the editor acts. With 0, the editor does each act as soon as the
	// frames that it reacted to have arrived.
	Speed float64
	// Now and After are the clock for Speed; nil means the functions of package time.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// Work and Home replace the directories of the recording.
	Work, Home string
	// Renamed lists further replacements for texts in the recording, such as addresses of servers.
	Renamed [][2]string
	// Patience is how long the replay waits without receiving a frame before it does the next act anyway; 0 means 30 s.
	Patience time.Duration
	// Start starts the agent for a connection.
	Start func(ctx context.Context, conn int) (*transport.Agent, error)
	// Prompting, if set, is called before each prompt is sent. n counts the prompts in the recording, from 1.
	Prompting func(session string, n int, text string)
	// Gates lists the points at which the recorded model waited. Release lets the model continue.
	Gates   []fakellm.RecordedGate
	Release func(gate string) error
	// Confine, if set, maps each line of the editor to the line that is sent to the agent. If it returns an error, no
	// line is sent.
	Confine func(line []byte) ([]byte, error)
}

// Played is the outcome of a replay.
type Played struct {
	// Missed are sentences about recorded acts that could not be repeated, and about acts of the agent that are not in
	// the recording.
	Missed []string
	// Altered lists the editor's frames that Confine changed.
	Altered []Altered
	// Shutdowns describes how each agent ended, in the order of the connections.
	Shutdowns []transport.Shutdown
}

// Altered identifies a changed frame of the editor by its Seq in the recording and its Seq in the replay's log.
type Altered struct{ Recorded, Sent int }

// settle is how long a replay waits at its end for the agent's last recorded frames, if none of them is a response.
const settle = 2 * time.Second

// Play plays all connections of the recording, one after the other. It returns an error if an agent could not be
// started or ctx ended.
func (p *Player) Play(ctx context.Context, log *transcript.Transcript) (Played, error) {
	conns := map[int]bool{}
	for e := range Frames(p.Recording) {
		conns[e.Conn] = true
	}
	work, home := Directories(p.Protocol, p.Recording)
	names := newBinding(append([][2]string{{work, p.Work}, {home, p.Home}}, p.Renamed...))
	s := &playing{Player: p, log: log, names: names, wake: make(chan struct{}, 1)}
	s.Mode = cmp.Or(s.Mode, Ordered)
	s.Patience = cmp.Or(s.Patience, 30*time.Second)
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.After == nil {
		s.After = time.After
	}
	s.sessions = map[string]string{}
	log.Observe(s.see)
	for _, conn := range slices.Sorted(maps.Keys(conns)) {
		if err := s.connection(ctx, conn); err != nil {
			return s.played, err
		}
	}
	return s.played, nil
}

// playing is the state of a running replay.
type playing struct {
	*Player
	log    *transcript.Transcript
	played Played
	wake   chan struct{} // receives a value after each change of the state
	editor Editor
	agent  *transport.Agent

	mu       sync.Mutex // never held during a call of the log
	score    *score
	count    *tally
	names    *binding
	sessions map[string]string  // live session id -> recorded id
	sending  *act               // the act whose frame is being sent
	sent     map[int]*act       // by live Seq
	extras   []transcript.Entry // live requests that are not in the recording
	gone     bool
}

func (s *playing) connection(ctx context.Context, conn int) error {
	s.mu.Lock()
	s.score, s.count = newScore(s.Protocol, s.Recording, s.Gates, conn, s.Mode), newTally(s.Protocol)
	s.sent, s.gone = map[int]*act{}, false
	s.mu.Unlock()
	agent, err := s.Start(ctx, conn)
	if err != nil {
		return err
	}
	methods := lists.Map(s.score.requests, func(q *asked) string { return q.entry.Method })
	s.agent, s.editor = agent, s.Protocol.Editor(agent, methods)
	go func() {
		<-agent.Exited()
		s.mu.Lock()
		s.gone = s.gone || s.score.conn == conn // the event for the end may come late
		s.mu.Unlock()
		s.nudge()
	}()
	err = s.perform(ctx)
	s.played.Shutdowns = append(s.played.Shutdowns, s.editor.Close(ctx))
	return err
}

func (s *playing) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// perform does each act as soon as the frames that it waits for have come.
func (s *playing) perform(ctx context.Context) error {
	quiet := time.NewTimer(s.Patience)
	defer quiet.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("replaying: %w", context.Cause(ctx))
		}
		s.answerExtras()
		a, wait, left := s.next(s.Now())
		switch {
		case a != nil:
			if err := s.do(ctx, a); err != nil {
				if errors.Is(err, transport.ErrExited) {
					s.abandon("the agent had exited")
					return nil
				}
				s.skip(a, err.Error())
			}
			quiet.Reset(s.Patience)
			continue
		case !left:
			return s.finish(ctx)
		case s.isGone():
			s.abandon("the agent had exited")
			return nil
		}
		var pace <-chan time.Time
		if wait > 0 {
			pace = s.After(wait)
		}
		select {
		case <-s.wake:
			quiet.Reset(s.Patience)
		case <-pace:
		case <-quiet.C:
			s.force()
			quiet.Reset(s.Patience)
		case <-ctx.Done():
		}
	}
}

func (s *playing) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// next returns an act that can be done now. If there is none, wait is the shortest time until the pace allows one.
// left reports whether any act remains.
func (s *playing) next(now time.Time) (a *act, wait time.Duration, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.score.acts {
		if a.done {
			continue
		}
		if s.void(a) {
			a.done, a.skipped = true, "the agent did not ask for it"
			s.miss(a)
			continue
		}
		left = true
		if !s.turnOf(i) || s.waits(a) != "" {
			continue
		}
		if a.ready.IsZero() {
			a.ready = now
		}
		if s.Speed > 0 {
			if d := time.Duration(float64(a.pause)/s.Speed) - now.Sub(a.ready); d > 0 {
				if wait == 0 || d < wait {
					wait = d
				}
				continue
			}
		}
		return a, 0, true
	}
	return nil, wait, left
}

// turnOf reports whether the i-th act is next in order: all acts that must precede it are done. An answer need not
// wait for other answers, because the agent decides the order of its requests.
func (s *playing) turnOf(i int) bool {
	a := s.score.acts[i]
	for _, b := range s.score.acts[:i] {
		switch {
		case b.done:
		case s.Mode == Strict, a.beside == kill, a.beside == closeStdin:
			return false
		case a.answers > 0 && b.answers > 0:
		case b.lane == a.lane, b.lane == "" && b.answers == 0, a.lane == "" && a.answers == 0 && s.Mode == Ordered:
			return false
		}
	}
	return true
}

// waits names a frame that the act must still wait for, or returns "" if there is none.
func (s *playing) waits(a *act) string {
	if a.answers > 0 {
		if q := s.askedBy(a); q == nil || q.live == 0 {
			return "the request it answers"
		}
		for _, q := range a.behind {
			if q.live == 0 {
				return q.entry.Method
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.needs)) {
		if s.count.counts[key] >= a.needs[key] {
			continue
		}
		if _, phase, ok := strings.Cut(key, " in "); ok && s.count.over[phase] {
			continue // the turn or load is over, so it will send no further frames
		}
		return key
	}
	return ""
}

func (s *playing) askedBy(a *act) *asked {
	return lists.First(s.score.requests, func(q *asked) bool { return q.entry.Seq == a.answers })
}

// void reports whether an answer is obsolete: the live agent did not send the request, and the request's turn is
// over. It is false for an act that is not an answer.
func (s *playing) void(a *act) bool {
	q := s.askedBy(a)
	if a.answers == 0 || q == nil || q.live != 0 {
		return false
	}
	return q.turn != "" && s.count.over[q.turn]
}

// abandon marks all remaining acts as skipped. why is the reason.
func (s *playing) abandon(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.score.acts {
		if !a.done {
			a.done, a.skipped = true, why
			s.miss(a)
		}
	}
}

// force allows the next act although the frames that it waits for have not arrived. It adds a sentence about each
// such frame to Missed.
func (s *playing) force() {
	s.mu.Lock()
	for i, a := range s.score.acts {
		if a.done || !s.turnOf(i) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(a.needs)) {
			if s.count.counts[key] < a.needs[key] {
				s.played.Missed = append(s.played.Missed,
					fmt.Sprintf("the replay sent the editor's #%d (%s) although %s did not come within %v", a.entry.Seq,
						describe(a.entry), key, s.Patience))
			}
		}
		a.needs, a.behind = nil, nil
		if q := s.askedBy(a); q != nil && q.live == 0 {
			a.done, a.skipped = true, fmt.Sprintf("the agent did not send its request within %v", s.Patience)
			s.miss(a)
		}
		break
	}
	s.mu.Unlock()
}

// finish waits until the agent has sent its last recorded frames, has exited, or a timeout expires.
func (s *playing) finish(ctx context.Context) error {
	owed, last := time.NewTimer(s.Patience), time.NewTimer(settle)
	defer owed.Stop()
	defer last.Stop()
	for {
		s.answerExtras()
		missing, answers := s.lacking()
		if missing == "" || s.isGone() {
			return nil
		}
		var timer <-chan time.Time = last.C
		if answers {
			timer = owed.C
		}
		select {
		case <-s.wake:
		case <-timer:
			s.played.Missed = append(s.played.Missed, missing+" did not come")
			return nil
		case <-ctx.Done():
			return fmt.Errorf("replaying: %w", context.Cause(ctx))
		}
	}
}

// lacking names a frame that the recorded agent sent but the live agent has not sent yet, or returns "" if no frame
// is missing. answer reports whether the frame is a response. Responses come first.
func (s *playing) lacking() (what string, answer bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.score.total)) {
		if s.count.counts[key] >= s.score.total[key] {
			continue
		}
		if isEndKey(key) {
			return key, true
		}
		what = cmp.Or(what, key)
	}
	return what, false
}
