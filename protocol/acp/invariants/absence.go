package invariants

import (
	"fmt"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// absence is the proof that no answer to a request will come. If how is "", there is no proof.
type absence struct {
	how string // why no answer will come; completes the sentence "the request was not answered …"
	at  int    // Seq of the entry that proves it, or 0
	// quit says that the agent exited after its input ended, perhaps in the middle of its work. An editor may quit in
	// the middle of a turn.
	quit bool
}

// unanswered calls f, at the clean end of a transcript, for each open request by the given side. f gets the request
// and the proof that no answer will come. Requests without such a proof are skipped.
func (w *watch) unanswered(end rules.End, by rules.Side, f func(*request, absence)) {
	if !end.Clean {
		return
	}
	for _, c := range w.state.ordered() {
		for _, r := range c.pending(by) {
			if a := w.absence(r); a.how != "" {
				f(r, a)
			}
		}
	}
}

// absence returns the proof that nobody will answer the request. The proof is an event that cannot come before the
// answer, or a wait of at least Config.Patience.
func (w *watch) absence(r *request) absence {
	c := r.conn
	waited := c.until(w.Last().At) - r.at
	switch {
	case waited >= w.Config().Patience:
		return absence{how: fmt.Sprintf("within %s", waited.Round(time.Second))}
	case r.by == rules.OfAgent || c.ids[r.by][r.id] != r: // another request had the same id
		return absence{}
	case r.verb == prompt && !w.version.states:
		return w.state.absentEnd(r)
	case c.answered > r.seq:
		return absence{how: fmt.Sprintf("although the later request #%d was answered", c.answered), at: c.answered}
	}
	return c.left()
}

// until returns the time at which the connection ended, or last if it is still open.
func (c *conn) until(last time.Duration) time.Duration {
	if c.closedIn > 0 {
		last = c.closedAt
	}
	if c.exited > 0 {
		last = min(last, c.exitedAt)
	}
	return last
}

// absentEnd returns the proof that no answer to a prompt will come. While the model still replies, there is a proof
// only if the turn was stopped. If a test engine started the agent, the agent's exit proves less: an engine may end
// its run in the middle of a turn.
func (w *world) absentEnd(r *request) absence {
	s, c, t := r.session, r.conn, r.turn
	if s == nil {
		return absence{}
	}
	stop, _ := t.stopper()
	stopped := stop != nil || r.back != nil
	if !stopped && w.models.speaks(s.id, r.seq) {
		return absence{}
	}
	if stop != nil && c.answered > stop.seq {
		return absence{how: fmt.Sprintf("although the later request #%d was answered", c.answered), at: c.answered}
	}
	if next := s.later(r.seq); next != nil {
		return absence{how: fmt.Sprintf(
			"although the later prompt #%d of its session was answered", next.started), at: next.ended}
	}
	gone := c.left()
	if proves := stopped || s.deleted || !c.played || t.command() && t.spoke; proves && !gone.quit && gone.how != "" {
		return gone
	}
	if t.told() && t.toldAt() < c.closedIn && c.willing && !c.cut {
		return absence{how: "although the model's reply had ended and its text was shown", at: t.reply.seq}
	}
	if c.played {
		return absence{}
	}
	return gone
}

// told reports whether the model's last reply has ended and the agent has shown its text.
func (t *turn) told() bool {
	return t.reply.seq > 0 && (!t.reply.text || t.session.shown > t.reply.asked)
}

// toldAt returns the Seq at which the agent had shown the whole text of the model's last reply. This proves something
// only before the agent's input ends: after that, the agent may leave at any time.
func (t *turn) toldAt() int {
	if t.reply.text {
		return max(t.reply.seq, t.session.shown)
	}
	return t.reply.seq
}

// later returns the session's last turn if it began after the entry seq and ended by itself, else nil.
func (s *session) later(seq int) *turn {
	t := s.last
	if t == nil || t.started < seq {
		return nil
	}
	switch t.stop {
	case "end_turn", "max_tokens", "max_turn_requests":
		return t
	}
	return nil
}

// left returns the proof that no answer will come because the agent exited. A test engine closes its agent's input
// only when it waits for no answer. Other editors may quit at any time, so the proof then has quit set.
func (c *conn) left() absence {
	switch {
	case c.exited == 0 || c.played && (c.cut || !c.willing) || c.crashed:
		return absence{}
	case c.willing && c.closedIn == 0:
		return absence{"before the agent exited by itself", c.exited, false}
	}
	return absence{"before the agent exited at the end of its input", c.exited, !c.played}
}

// parting describes how a connection to an agent ends.
type parting struct {
	answered int  // Seq of the latest request of the editor that was answered
	played   bool // an engine started the agent, and may close its input at any time
	cut      bool // a script closed the input
	crashed  bool // the agent ended with a failure while its input was open
	willing  bool // the agent exited with status 0, and nobody sent it a signal
}

// foldParting updates the parting of the connection from an entry.
func (c *conn) foldParting(ev *event) {
	switch {
	case c == nil:
	case ev.request != nil && ev.Source == transcript.Agent:
		c.answered = max(c.answered, ev.request.seq)
	case ev.Kind == transcript.Started:
		c.played = true
	case ev.Kind == transcript.StdinClosed:
		c.cut, _ = ev.JSON().Get("act").Bool()
	case ev.Kind == transcript.Exited:
		exit := ev.JSON()
		if nested := exit.Get("exit"); nested.Exists() {
			exit = nested
		}
		code, ok := exit.Get("code").Int()
		c.willing = ok && code == 0 && c.signalled == 0
		c.crashed = c.closedIn == 0 && c.signalled == 0 && failure(ev) != ""
	}
}

// foldReply remembers that a model reply has text. At the end of the reply, it also stores the reply in its turn.
func (w *world) foldReply(ev *event) {
	of := w.models.streams[ev.number()]
	switch {
	case of == nil:
		return
	case ev.Kind == transcript.ModelChunk:
		of.text = of.text || ev.body.Get("says").Is("text")
		for _, c := range w.conns {
			c.sessions[ev.Session].amid(of.asked)
		}
		return
	case ev.Kind != transcript.ModelDone:
		return
	}
	var last *turn
	for _, c := range w.conns {
		if t := c.sessions[ev.Session].turn(); t != nil && c.exited == 0 && (last == nil || last.started < t.started) {
			last = t
		}
	}
	if last == nil || of.asked < last.started {
		return
	}
	last.reply = ended{}
	if stop := ev.body.Get("stop"); stop.Exists() && !stop.Is("tool") {
		last.reply = ended{of.asked, ev.Seq, of.text}
	}
}

// ended is the last model reply of a turn, if the reply has ended and calls no tool; else the zero value.
type ended struct {
	asked, seq int // Seqs of the request and of the end
	text       bool
}

// speaks reports whether the model still replies to a request that came after the entry with the Seq after. Only
// requests of the session count, and requests whose session is unknown.
func (m *models) speaks(session string, after int) bool {
	for _, s := range m.streams {
		if s.asked > after && s.left == 0 && (s.session == session || s.session == "") {
			return true
		}
	}
	return false
}
