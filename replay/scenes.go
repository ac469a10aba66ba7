package replay

import (
	"fmt"
	"sync"
	"time"

	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// recordedScene is what the recorded agent did from one request of the editor
// on, up to the editor's next request in the same session.
type recordedScene struct {
	request transcript.Entry
	frames  []sceneFrame
}

type sceneFrame struct {
	transcript.Entry
	// answers are the agent's own requests that had been answered by then;
	// cancelled says that the turn had been cancelled.
	answers   []int
	cancelled bool
}

// recordedScenes splits a recording by the requests of its editor: by method,
// in order.
func recordedScenes(t *transcript.Transcript) map[string][]*recordedScene {
	scenes := map[string][]*recordedScene{}
	open := map[int]*recordedScene{}       // by Seq of the request
	running := map[string]*recordedScene{} // the newest of a session
	var answered []int
	cancelled := map[string]bool{}
	for e := range Frames(t) {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			s := &recordedScene{request: e}
			scenes[e.Method] = append(scenes[e.Method], s)
			open[e.Seq], running[laneOf(e)] = s, s
			answered, cancelled[e.Session] = nil, false
		case e.Source == transcript.Editor && e.Kind == transcript.Response && e.Ref > 0:
			answered = append(answered, e.Ref)
		case e.Source == transcript.Editor && e.Method == "session/cancel":
			cancelled[e.Session] = true
		case e.Source == transcript.Agent:
			s := running[e.Session]
			if e.Kind == transcript.Response && open[e.Ref] != nil {
				s = open[e.Ref]
				if e.Method == "session/new" {
					running[e.Session] = s // what follows in the new session
				}
			}
			if s == nil {
				s = running[""]
			}
			if s != nil {
				s.frames = append(s.frames, sceneFrame{e, append([]int{}, answered...), cancelled[e.Session] && s.request.Method == "session/prompt"})
			}
		}
	}
	return scenes
}

// scenes plays the agent of a recording: the editor's n-th request of a method
// gets what that request got then.
type scenes struct {
	*serve.Conn
	scenes map[string][]*recordedScene

	mu    sync.Mutex
	nth   map[string]int
	names *binding
	work  string
	asked map[int]int // live Seq of our requests, by the recorded one
}

// Recorded returns the agent of a recording.
func Recorded(t *transcript.Transcript) serve.Agent {
	work, _ := directories(t)
	return &scenes{scenes: recordedScenes(t), nth: map[string]int{}, names: newBinding(nil), work: work, asked: map[int]int{}}
}

// Connected implements serve.Agent.
func (p *scenes) Connected(c *serve.Conn) { p.Conn = c }

// Ended implements serve.Agent.
func (p *scenes) Ended() {}

// Stays implements serve.Agent.
func (p *scenes) Stays(bool) bool { return false }

// Received implements serve.Agent.
func (p *scenes) Received(e transcript.Entry) {
	if e.Kind != transcript.Request {
		return
	}
	p.mu.Lock()
	if cwd := e.JSON().Path("params.cwd").Str(); cwd != "" {
		p.names = newBinding([][2]string{{p.work, cwd}})
	}
	n := p.nth[e.Method]
	p.nth[e.Method]++
	list := p.scenes[e.Method]
	p.mu.Unlock()
	if n >= len(list) {
		p.improvise(e)
		return
	}
	cancelled := p.Cancelled(e.Session)
	go p.play(list[n], e, cancelled)
}

// improvise answers what the recording has nothing for.
func (p *scenes) improvise(e transcript.Entry) {
	switch e.Method {
	case "session/prompt":
		p.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":%s}}`, serve.Quote(e.Session),
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The recording ends here."}}`))
		p.Send(serve.Result(e.ID, `{"stopReason":"end_turn"}`))
	case "authenticate", "logout", "session/close", "session/set_mode":
		p.Send(serve.Result(e.ID, `{}`))
	default:
		p.Send(serve.Error(e.ID, "-32601", "the recording has no answer to this request of "+e.Method))
	}
}

// uncalled is how long the agent waits for a cancel that was in the recording
// before it goes on without it: this editor may not want to cancel.
const uncalled = time.Second

func (p *scenes) play(s *recordedScene, live transcript.Entry, cancelled <-chan struct{}) {
	stopped := false // the editor cancelled where the recording's did not
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
		stopped = stopped || came && !f.cancelled && live.Method == "session/prompt"
		final := f.Kind == transcript.Response && f.Ref == s.request.Seq
		switch {
		case stopped && !final && f.Kind == transcript.Request:
			continue
		case stopped && final:
			p.Send(serve.Result(live.ID, `{"stopReason":"cancelled"}`))
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

// send sends one recorded frame, with the names of now.
func (p *scenes) send(f transcript.Entry, final bool, live transcript.Entry, cancelled bool) {
	p.mu.Lock()
	var id wire.ID
	if final {
		id = live.ID
	}
	line := p.names.frame(f.Raw, id)
	p.mu.Unlock()
	if final && f.Method == "session/prompt" && !cancelled {
		// Nobody cancelled: cancelled would be a lie.
		if v, err := wire.Parse(line); err == nil && v.Path("result.stopReason").Is("cancelled") {
			r := rewriter{change: func(at place, _ wire.Value, _ string) (string, bool) { return `"end_turn"`, at.key() == "stopReason" }}
			line = r.rewrite(line, v)
		}
	}
	e := p.Send(line)
	if f.Kind == transcript.Request {
		p.mu.Lock()
		p.asked[f.Seq] = e.Seq
		p.mu.Unlock()
	}
}
