package replay

import (
	"cmp"
	"sync"
	"time"

	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// exchange is a request of the editor, and the recorded agent's frames after it, up to the editor's next request in
// the same session.
type exchange struct {
	request transcript.Entry
	frames  []sceneFrame
}

type sceneFrame struct {
	transcript.Entry
	// answers has the Seqs of the agent's requests that the editor answered before this frame. cancelled reports whether
	// the editor cancelled the turn before this frame.
	answers   []int
	cancelled bool
}

// exchangesOf returns the exchanges of a recording, in order. The key is the method of the editor's request.
func exchangesOf(p Protocol, t *transcript.Transcript) map[string][]*exchange {
	exchanges := map[string][]*exchange{}
	open := map[int]*exchange{}       // by Seq of the request
	running := map[string]*exchange{} // the latest exchange of each session
	var answered []int
	cancelled := map[string]bool{}
	for e := range Frames(t) {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			s := &exchange{request: e}
			exchanges[e.Method] = append(exchanges[e.Method], s)
			open[e.Seq], running[p.Facts(e).Lane] = s, s
			answered, cancelled[e.Session] = nil, false
		case e.Source == transcript.Editor && e.Kind == transcript.Response && e.Ref > 0:
			answered = append(answered, e.Ref)
		case e.Source == transcript.Editor && p.Cancels(e):
			cancelled[e.Session] = true
		case e.Source == transcript.Agent:
			s := running[e.Session]
			if e.Kind == transcript.Response && open[e.Ref] != nil {
				s = open[e.Ref]
				if p.Facts(e).Opened != "" {
					running[e.Session] = s // later frames of the new session belong to this exchange
				}
			}
			s = cmp.Or(s, running[""])
			if s != nil {
				s.frames = append(s.frames, sceneFrame{e, append([]int{}, answered...), cancelled[e.Session] &&
					isPrompt(p, s.request)})
			}
		}
	}
	return exchanges
}

// recordedAgent plays the agent of a recording. It answers the editor's n-th request with a method with the frames
// that followed the n-th recorded request with that method.
type recordedAgent struct {
	*serve.Conn
	protocol  Protocol
	exchanges map[string][]*exchange

	mu    sync.Mutex
	nth   map[string]int
	names *binding
	work  string
	asked map[int]int // recorded Seq of an agent's request -> live Seq
}

// Recorded returns an agent that plays the agent of a recording.
func Recorded(p Protocol, t *transcript.Transcript) serve.Agent {
	work, _ := Directories(p, t)
	return &recordedAgent{
		protocol: p, exchanges: exchangesOf(p, t), nth: map[string]int{}, asked: map[int]int{},
		names: newBinding(nil), work: work,
	}
}

// Connected implements serve.Agent.
func (p *recordedAgent) Connected(c *serve.Conn) { p.Conn = c }

// Ended implements serve.Agent.
func (p *recordedAgent) Ended() {}

// Stays implements serve.Agent.
func (p *recordedAgent) Stays(bool) bool { return false }

// Received implements serve.Agent.
func (p *recordedAgent) Received(e transcript.Entry) {
	if e.Kind != transcript.Request {
		return
	}
	p.mu.Lock()
	if dir := p.protocol.Facts(e).Dir; dir != "" {
		p.names = newBinding([][2]string{{p.work, dir}})
	}
	n := p.nth[e.Method]
	p.nth[e.Method]++
	list := p.exchanges[e.Method]
	p.mu.Unlock()
	if n >= len(list) {
		for _, line := range p.protocol.Improvise(e) {
			p.Send(line)
		}
		return
	}
	cancelled := p.Cancelled(e.Session)
	go p.play(list[n], e, cancelled)
}

// uncalled is how long the agent waits for a cancel that the recorded editor sent. Then the agent continues, because
// the live editor may not cancel.
const uncalled = time.Second

func (p *recordedAgent) play(s *exchange, live transcript.Entry, cancelled <-chan struct{}) {
	stopped := false // the live editor cancelled at a point where the recorded one did not
	for _, f := range s.frames {
		if p.Context().Err() != nil {
			return
		}
		for _, seq := range f.answers {
			p.mu.Lock()
			ours, ok := p.asked[seq]
			p.mu.Unlock()
			if ok {
				p.Answer(p.Context(), ours)
			}
		}
		came := isClosed(cancelled)
		if f.cancelled && !came {
			select {
			case <-cancelled:
				came = true
			case <-time.After(uncalled):
			case <-p.Context().Done():
				return
			}
		}
		stopped = stopped || came && !f.cancelled && isPrompt(p.protocol, live)
		final := f.Kind == transcript.Response && f.Ref == s.request.Seq
		switch {
		case stopped && !final && f.Kind == transcript.Request:
			continue
		case stopped && final:
			p.Send(p.protocol.EndTurn(p.named(f.Raw, live.ID), true))
			continue
		}
		p.send(f.Entry, final, live, came)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// named returns a recorded frame with the ids and paths of the live session. If id is not "", it replaces the frame's
// id.
func (p *recordedAgent) named(raw []byte, id wire.ID) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names.frame(raw, id)
}

// send sends one recorded frame.
func (p *recordedAgent) send(f transcript.Entry, final bool, live transcript.Entry, cancelled bool) {
	var id wire.ID
	if final {
		id = live.ID
	}
	line := p.named(f.Raw, id)
	if final && isPrompt(p.protocol, live) && !cancelled {
		line = p.protocol.EndTurn(line, false) // the live editor has not cancelled the turn
	}
	e := p.Send(line)
	if f.Kind == transcript.Request {
		p.mu.Lock()
		p.asked[f.Seq] = e.Seq
		p.mu.Unlock()
	}
}

// isPrompt reports whether a frame is a request with a prompt.
func isPrompt(p Protocol, e transcript.Entry) bool {
	_, ok := p.Prompt(e)
	return ok && e.Kind == transcript.Request
}
