package schedules

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// noted has the facts about a run that only AG-UI needs.
type noted struct {
	calls int // number of calls of the front end's tools without a result
	// owed has those files of Seen.Made whose tool call waits for the answer to the run's only interrupt. late has,
	// for each file of Seen.Made, the place of the tool call in the model's turn.
	owed []sweep.Effect
	late map[sweep.Effect]fakellm.Place
}

func facts(s *sweep.Seen) *noted { return s.Of.(*noted) }

// calls has the tool calls of a run, as the run's log shows them.
type calls struct {
	arguments  map[string][]byte // by id of the call
	results    map[string]bool
	interrupts []string // ids of the calls that wait for the user
}

// look reads one run from the transcript of a baseline run. It returns false if the transcript does not show how the
// run ended, or if the run did not reach the model.
func look(b *sweep.Script, turn sweep.Turn, t *transcript.Transcript, effects []sweep.Effect) (*sweep.Seen, bool) {
	run := posted(b, t, turn)
	if run.Seq == 0 {
		return nil, false
	}
	s := &sweep.Seen{Turn: turn, Model: sweep.Plain(b.Spoken.Turns[turn.Nth]), Of: &noted{}}
	c := calls{arguments: map[string][]byte{}, results: map[string]bool{}}
	for e := range t.From(run.Seq + 1) {
		if e.Source == transcript.Model && e.Kind == transcript.ModelRequest && e.JSON().Get("lane").Is("main") {
			s.Requests++
		}
		if e.Ref != run.Seq {
			continue
		}
		if s.End = endpoint.EndOf(e); s.End != "" {
			break
		}
		if kind := aguiframe.Event(e); kind != "" {
			c.hear(kind, e.JSON())
			hear(s, kind, e.JSON().Get("delta").Str())
		}
	}
	if s.Requests == 0 || !slices.Contains([]string{"finished", "interrupt", "error"}, s.End) {
		return nil, false
	}
	s.Over()
	if s.End == "finished" {
		facts(s).calls = len(c.arguments) - len(c.results)
	}
	c.effects(b, s, effects)
	return s, true
}

// hear records an event about tool calls.
func (c *calls) hear(kind string, v wire.Value) {
	if id := v.Get("toolCallId").Str(); kind == "TOOL_CALL_RESULT" {
		c.results[id] = true
	} else if id != "" {
		c.arguments[id] = append(c.arguments[id], v.Get("delta").Str()...)
	}
	for i := range v.Path("outcome.interrupts").Items() {
		c.interrupts = append(c.interrupts, i.Get("toolCallId").Str())
	}
}

// hear records an event of the run.
func hear(s *sweep.Seen, kind, delta string) {
	says := ""
	switch {
	case delta == "":
	case strings.HasPrefix(kind, "TEXT_MESSAGE_C"):
		s.Text += delta
		says = "text"
	case strings.HasPrefix(kind, "REASONING_MESSAGE_C"), kind == "THINKING_TEXT_MESSAGE_CONTENT":
		says = "thinking"
	}
	s.Follow(kind, says, delta, s.Requests)
}

// posted returns the entry with the post of a run. It finds the entry by the number of earlier run and resume lines in
// the script.
func posted(b *sweep.Script, t *transcript.Transcript, turn sweep.Turn) (run transcript.Entry) {
	n := lists.Count(b.Lines[:turn.Line], func(l *script.Line) bool { return l.Is("run") || l.Is("resume") })
	for e := range t.All() {
		if e.Source == transcript.Editor && e.Kind == transcript.Request {
			if n == 0 {
				return e
			}
			n--
		}
	}
	return run
}

// effects finds the files that the run creates, and those whose tool call waits for the answer to the run's interrupt.
func (c *calls) effects(b *sweep.Script, s *sweep.Seen, effects []sweep.Effect) {
	own := facts(s)
	own.late = map[sweep.Effect]fakellm.Place{}
	for _, e := range effects {
		name := path.Base(e.File)
		var of []string
		for id, args := range c.arguments {
			if bytes.Contains(args, []byte(name)) {
				of = append(of, id)
			}
		}
		if e.What != "new" || b.Changes(e.File) || len(of) != 1 {
			continue
		}
		s.Made = append(s.Made, e)
		for r, reply := range s.Model.Replies {
			for i, st := range reply.Steps {
				if st.Kind == "tool" && strings.Contains(st.Text, name) {
					own.late[e] = fakellm.Place{Reply: r, Step: i}
				}
			}
		}
		if s.End == "interrupt" && len(c.interrupts) == 1 && c.interrupts[0] == of[0] {
			own.owed = append(own.owed, e)
		}
	}
}
