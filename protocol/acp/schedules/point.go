package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// Point is a place in a turn at which an editor can act.
type Point struct {
	// Name tells it from the others of its turn: "frame 3 agent_message".
	Name string
	// State is the kind of situation: findings at points of one state with
	// one action are the same finding.
	State string

	kind  pointKind
	rank  int            // the likeliest first
	hold  *fakellm.Place // the model is held here
	until []string       // kinds of frames to wait for, in their order
	gated bool           // and for the gate
	what  string         // the method of a held request
	nth   int            // of a permission
	tool  fakellm.Place  // the call that runs
	many  bool           // other requests of the method are held, too
	merge []bool         // the steps of two sessions: true is the target's
	with  *partner       // the other session's turn, if another scenario has it
}

type pointKind uint8

const (
	atWrite pointKind = iota // in one write with the prompt
	atOnce                   // right behind the prompt
	atFrame
	atGate
	atPermission
	atRequest
	atTerminal // a command in it does not end by itself
	atTool
	atEnd // racing the end
	atIdle
	atLoaded
	atSecond // another session streams
)

// open reports whether the turn runs at the point and cannot end by itself.
func (p Point) open() bool { return p.kind < atEnd && p.hold != nil || p.kind == atSecond }

// seen is what a baseline run showed of one turn.
type seen struct {
	session string
	frames  []frame
	choice  string // how the first permission was answered, as permit says it
	asked   int    // permissions
	text    string
	stop    string
	effects []string // files that changed: "new F", "changed F", "deleted F"
	able    map[string]bool
}

type frame struct {
	kind string // as patterns name it
	hold *fakellm.Place
	held bool // nothing but the gate can come after it
}

// look reads one turn out of a baseline's transcript: the n-th prompt of the
// run, from 0.
func look(t *transcript.Transcript, n int, m fakellm.TurnNode) seen {
	s := seen{able: map[string]bool{}, choice: "reject_once"}
	prompt, session := 0, ""
	for e := range t.All() {
		if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Method == "initialize" {
			caps := e.JSON().Path("result.agentCapabilities")
			load, _ := caps.Get("loadSession").Bool()
			s.able["load"] = load
			for _, c := range []string{"close", "resume", "delete", "list"} {
				v := caps.Path("sessionCapabilities." + c)
				s.able[c] = v.Exists() && !v.IsNull()
			}
		}
		if e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt" {
			if n == 0 && prompt == 0 {
				prompt, session = e.Seq, e.Session
			}
			n--
		}
	}
	s.session = session
	if prompt == 0 {
		return s
	}
	f := follower{turn: m}
	for e := range t.From(prompt + 1) {
		switch {
		case e.Source == transcript.Model && e.Kind == transcript.ModelRequest && e.JSON().Get("lane").Is("main"):
			f.requests++
		case e.Source == transcript.Model && e.Kind == transcript.ModelDone:
			f.done++
		case e.Source == transcript.Editor && e.Kind == transcript.Response && e.Method == "session/request_permission" && s.asked == 1:
			s.choice = choiceOf(t.At(e.Ref), e)
		case e.Source != transcript.Agent || e.Session != session:
		case e.Kind == transcript.Response && e.Ref == prompt:
			s.stop = e.JSON().Path("result.stopReason").Str()
			return s
		case e.Kind == transcript.Notification || e.Kind == transcript.Request:
			if kind := kindOf(e); kind != "" {
				if kind == "permission" {
					s.asked++
				}
				if kind == "agent_message" {
					s.text += e.JSON().Path("params.update.content.text").Str()
				}
				hold, held := f.after(kind, e)
				s.frames = append(s.frames, frame{kind, hold, held})
			}
		}
	}
	return s
}

// kindOf is the kind of a frame as patterns name it; "" for state, which may
// come at any time and makes no situation of its own.
func kindOf(e transcript.Entry) string {
	if e.Kind == transcript.Request {
		if e.Method == "session/request_permission" {
			return "permission"
		}
		return e.Method
	}
	switch u := acpframe.Update(e); u {
	case "agent_message_chunk", "agent_thought_chunk":
		return strings.TrimSuffix(u, "_chunk")
	case "tool_call", "tool_call_update", "plan":
		return u
	}
	return ""
}

// choiceOf is the kind of option an answer chose.
func choiceOf(asked, answer transcript.Entry) string {
	id := answer.JSON().Path("result.outcome.optionId").Str()
	for o := range asked.JSON().Path("params.options").Items() {
		if o.Get("optionId").Str() == id {
			return o.Get("kind").Str()
		}
	}
	return "cancelled"
}

// follower finds for each frame the earliest place of the model at which it
// must have come.
type follower struct {
	turn           fakellm.TurnNode
	requests, done int
	text, thought  int // bytes shown
}

func (f *follower) after(kind string, e transcript.Entry) (*fakellm.Place, bool) {
	reply := max(f.requests-1, 0)
	field, shown := "", 0
	switch kind {
	case "agent_message":
		f.text += len(e.JSON().Path("params.update.content.text").Str())
		field, shown = "text", f.text
	case "agent_thought":
		f.thought += len(e.JSON().Path("params.update.content.text").Str())
		field, shown = "thinking", f.thought
	}
	if field != "" {
		total := 0
		for r, rep := range f.turn.Replies {
			for s, st := range rep.Steps {
				if st.Kind != field {
					continue
				}
				for p, piece := range st.Pieces {
					if total += len(piece); total >= shown {
						return next(f.turn, fakellm.Place{Reply: r, Step: s, Piece: p}), true
					}
				}
			}
		}
		return nil, false
	}
	// What comes of a whole reply comes before the next one begins.
	if reply+1 < len(f.turn.Replies) && f.turn.Replies[reply+1].Raw == "" {
		return &fakellm.Place{Reply: reply + 1}, true
	}
	return nil, false
}

// next is the first place behind a piece.
func next(t fakellm.TurnNode, at fakellm.Place) *fakellm.Place {
	all := t.Places()
	i := slices.Index(all, at)
	if i < 0 || i+1 >= len(all) {
		return nil
	}
	return &all[i+1]
}

// points lists the points of a turn, the likeliest first, and how many more
// there were that are the same for the agent.
func points(s seen, m fakellm.TurnNode, r *rand.Rand) (list []Point, same int) {
	all := m.Places()
	start := &all[0]
	add := func(p Point) { list = append(list, p) }
	add(Point{Name: "with the prompt", State: "same write", kind: atWrite, hold: start})
	add(Point{Name: "0 ms", State: "at once", kind: atOnce, hold: start})
	covered := map[fakellm.Place]bool{}
	counts, total := map[string]int{}, map[string]int{}
	for _, f := range s.frames {
		total[f.kind]++
	}
	shown := 0
	var last *frame
	for i := range s.frames {
		f := &s.frames[i]
		counts[f.kind]++
		shown++
		switch {
		case f.kind == "permission":
			add(Point{Name: fmt.Sprintf("permission %d", counts[f.kind]), State: "permission open", kind: atPermission, hold: f.hold, nth: counts[f.kind], until: repeat("permission", counts[f.kind])})
			continue
		case strings.Contains(f.kind, "/"):
			if counts[f.kind] > 1 {
				same++
				continue
			}
			add(Point{Name: f.kind, State: f.kind + " open", kind: atRequest, hold: f.hold, what: f.kind, until: []string{f.kind}, many: total[f.kind] > 1})
			if f.kind == "terminal/create" {
				add(Point{Name: "terminal running", State: "terminal running", kind: atTerminal, hold: f.hold, until: []string{f.kind}})
			}
			continue
		}
		p := Point{Name: fmt.Sprintf("frame %d %s", shown, f.kind), State: "after " + f.kind, kind: atFrame, hold: f.hold, until: repeat(f.kind, counts[f.kind]), gated: f.held && (f.kind == "agent_message" || f.kind == "agent_thought")}
		p.rank = min(counts[f.kind]-1, 9)
		if f.kind == "tool_call_update" {
			p.rank = 0
		}
		if f.hold == nil {
			p.State += " near the end"
		}
		// Two pieces of text after which the model is held at one place are
		// one situation: the agent cannot have gone on between them.
		if last != nil && last.hold != nil && f.hold != nil && *last.hold == *f.hold && p.gated && last.kind == f.kind {
			list = list[:len(list)-1]
			same++
		}
		if f.hold != nil && p.gated {
			covered[*f.hold] = true
		}
		add(p)
		last = f
	}
	for i, at := range all {
		if covered[at] {
			same++
			continue
		}
		state := "model silent"
		if i > 0 {
			state = "model in the middle"
		}
		if at.Piece == 0 && at.Step == 0 && at.Reply > 0 {
			state = "model between tool and reply"
		}
		add(Point{Name: "gate " + at.String(), State: state, kind: atGate, hold: &all[i], gated: true, rank: min(i, 9)})
	}
	if !slices.ContainsFunc(s.frames, func(f frame) bool { return f.kind == "terminal/create" }) {
		for r, rep := range m.Replies {
			for i, st := range rep.Steps {
				if st.Kind == "tool" && strings.Contains(st.Text, "run_shell") {
					p := Point{Name: fmt.Sprintf("tool %d.%d running", r+1, i+1), State: "tool running", kind: atTool,
						until: []string{"tool_call_update status=in_progress"}, tool: fakellm.Place{Reply: r, Step: i}}
					if r+1 < len(m.Replies) {
						p.hold = &fakellm.Place{Reply: r + 1}
					}
					add(p)
				}
			}
		}
	}
	add(Point{Name: "racing the end", State: "racing the end", kind: atEnd, hold: &all[len(all)-1]})
	add(Point{Name: "idle", State: "idle", kind: atIdle})
	if s.able["load"] {
		add(Point{Name: "after load", State: "loaded", kind: atLoaded})
	}
	add(Point{Name: "second session streaming", State: "second session", kind: atSecond, hold: start})
	for i, m := range merges(all, mostMerges, mostSteps, r) {
		add(Point{Name: fmt.Sprintf("merge %d", i+1), State: "two sessions merged", kind: atSecond, hold: m.hold, merge: m.order, rank: min(2*i, 9)})
	}
	slices.SortStableFunc(list, func(a, b Point) int { return a.rank - b.rank })
	return list, same
}

func repeat(kind string, n int) []string { return slices.Repeat([]string{kind}, n) }
