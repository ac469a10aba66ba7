package recordings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// CancelAt returns a scenario that follows a recording up to the entry seq, and then cancels the turn that is open
// there. The scenario checks that this turn ends as cancelled. Something must provably hold the agent at the cancel: a
// gate holds the model's reply, or a request of the agent has no answer. If nothing holds the agent at seq, the cancel
// comes at the next entry at which something does. CancelAt returns an error if no turn is open at seq, or if nothing
// holds the agent until the end of the turn.
func CancelAt(p *scenarios.Protocol, t *transcript.Transcript, seq int, title string) (*Converted, error) {
	cut := cutting{t: t, at: seq, places: map[int]int{}}
	if err := cut.find(p); err != nil {
		return nil, err
	}
	changed, err := cut.cancelled(p.Classifier)
	if err != nil {
		return nil, err
	}
	if cut.at > seq {
		title += fmt.Sprintf(" The cancel is sent at #%d, the next entry at which the agent waits.", cut.at)
	}
	c, err := Convert(p, changed, title, nil)
	if err != nil {
		return nil, err
	}
	f, _ := script.Parse("", c.Text) // cannot fail: Convert made the text
	first := slices.IndexFunc(f.Lines, func(l *script.Line) bool { return l.Kind == script.Command })
	if !c.NoGolden { // what the agent has begun before the cancel may vary
		f.Lines = slices.Insert(f.Lines, first, script.New("golden off"))
	}
	for i := len(f.Lines) - 1; i >= 0; i-- {
		if f.Lines[i].Says("cancel") {
			f.Lines = slices.Insert(f.Lines, i, &script.Line{Kind: script.Blank}, script.New("check CANCEL-001"))
			break
		}
	}
	c.Text, c.NoGolden = script.Format(f), true
	return c, nil
}

// cutting is the state of CancelAt: a recording, and the entry at which to cancel.
type cutting struct {
	t      *transcript.Transcript
	at     int
	prompt transcript.Entry // prompt of the turn to cancel
	end    int              // Seq of the end of that turn; if there is none, one more than the last Seq
	others map[string]int   // by session, Seqs of the ends of turns that are open in other sessions

	current reply
	pieces  int // pieces of the current reply before the cancel, at which a gate holds the reply; -1: no gate

	out    *transcript.Transcript
	places map[int]int // by Seq in t, the Seq in out
}

// reply is the model's reply to a request; the zero value means no reply.
type reply struct {
	n          int
	asked, end int // Seqs, or 0
	answer     transcript.Entry
	chunks     []piece
}

// piece is a piece of a model reply.
type piece struct {
	seq  int
	kind string
	text string
}

// find finds the turn that is open at the entry c.at.
func (c *cutting) find(p *scenarios.Protocol) error {
	if c.at < 1 || c.at > c.t.Len() {
		return fmt.Errorf("the recording has no entry #%d: its last one is #%d", c.at, c.t.Len())
	}
	open := map[string]transcript.Entry{}
	ends := map[int]int{}
	session := c.t.At(c.at).Session
	for e := range c.t.All() {
		switch _, over := p.TurnEnd(e); {
		case p.Prompts(e) && e.Seq <= c.at:
			open[e.Session] = e
			if c.t.At(c.at).Session == "" {
				session = e.Session // session of the last prompt
			}
		case over && e.Ref > 0 && ends[e.Ref] == 0:
			ends[e.Ref] = e.Seq
			if e.Seq <= c.at && open[e.Session].Seq == e.Ref {
				delete(open, e.Session)
			}
		}
	}
	c.prompt = open[session]
	if c.prompt.Seq == 0 {
		return fmt.Errorf("no turn is open at #%d: choose an entry between a prompt and its response", c.at)
	}
	c.end = cmp.Or(ends[c.prompt.Seq], c.t.Len()+1)
	c.others = map[string]int{}
	for name, prompt := range open {
		if name != session {
			c.others[name] = cmp.Or(ends[prompt.Seq], c.t.Len())
		}
	}
	return c.stop()
}

// stop sets c.at to the first entry, from c.at on, at which something holds the agent. It returns an error if there is
// none.
func (c *cutting) stop() error {
	for at := c.at; at < c.end; at++ {
		if c.held(at) {
			c.at = at
			return nil
		}
	}
	return fmt.Errorf("from #%d to the end of its turn the agent waits neither for the model nor for the editor, so "+
		"a cancel may come too late: choose an earlier entry", c.at)
}

// held reports whether something holds the agent at an entry. It also sets c.pieces to the number of pieces of the
// model's reply before that entry.
func (c *cutting) held(at int) bool {
	e := c.t.At(at)
	if first := at == c.at; !first && (e.Kind != transcript.ModelRequest && e.Kind != transcript.Request || !c.mine(e)) {
		return false // this entry begins nothing that could hold the agent
	}
	c.pieces = -1
	if slices.ContainsFunc(c.open(at), holds) {
		return true
	}
	c.reply(at)
	if c.current.asked == 0 {
		return false
	}
	if n, ok := c.carried(e); ok {
		c.pieces = n
		return true
	}
	if end := c.current.end; end != 0 && end < at {
		return false
	}
	c.pieces = len(slices.DeleteFunc(slices.Clone(c.current.chunks), func(p piece) bool { return p.seq > at }))
	return true
}

// mine reports whether an entry may belong to the turn to cancel.
func (c *cutting) mine(e transcript.Entry) bool {
	return e.Session == c.prompt.Session || e.Session == "" && e.Source == transcript.Model
}

// reply sets c.current to the last model reply in the turn that the agent requested at or before the entry by.
func (c *cutting) reply(by int) {
	c.current = reply{}
	for e := range c.t.Between(c.prompt.Seq, c.end-1) {
		if e.Source != transcript.Model || !c.mine(e) {
			continue
		}
		v := e.JSON()
		n, _ := v.Get("n").Int()
		switch r := &c.current; {
		case e.Kind == transcript.ModelRequest && e.Seq <= by && slices.Contains(lanes, v.Get("lane").Str()):
			*r = reply{n: int(n), asked: e.Seq}
		case r.asked == 0 || r.n != int(n):
		case e.Kind == transcript.ModelAnswer:
			r.answer = e
		case e.Kind == transcript.ModelChunk:
			for text := range fakellm.ChunkTexts(v) {
				r.chunks = append(r.chunks, piece{e.Seq, v.Get("says").Str(), text})
			}
		case e.Kind == transcript.ModelDone || e.Kind == transcript.ModelAborted || e.Kind == transcript.ModelFault:
			r.end = e.Seq
		}
	}
}

// lanes has the lanes of model requests that belong to a turn.
var lanes = []string{fakellm.LaneMain, fakellm.LaneAfter, "record"}

// holds reports whether a request of the agent may stay unanswered until the turn is cancelled, because the user or
// the end of a command must decide. Other requests do not hold an agent, because an editor answers them at once.
func holds(q transcript.Entry) bool {
	return q.Method == "session/request_permission" || q.Method == "terminal/wait_for_exit"
}

// carried returns how many pieces of the current model reply the agent has sent to the editor at an entry. ok is false
// unless the entry is a message chunk and the message so far equals the model's text.
func (c *cutting) carried(at transcript.Entry) (pieces int, ok bool) {
	kinds := map[string]string{"agent_message_chunk": "text", "agent_thought_chunk": "thinking"}
	kind := kinds[acpframe.Update(at)]
	if kind == "" {
		return 0, false
	}
	said := ""
	for e := range c.t.Between(c.current.asked, at.Seq) {
		if e.Session == c.prompt.Session && kinds[acpframe.Update(e)] == kind {
			said += e.JSON().Path("params.update.content.text").Str()
		}
	}
	got := ""
	for i, p := range c.current.chunks {
		if p.kind == kind {
			got += p.text
		}
		if len(got) >= len(said) {
			return i + 1, said != "" && strings.HasPrefix(got, said)
		}
	}
	return 0, false
}

// open returns the agent's requests in the session that have no answer at the entry by.
func (c *cutting) open(by int) (list []transcript.Entry) {
	for e := range c.t.Between(c.prompt.Seq, by) {
		switch {
		case e.Source == transcript.Agent && e.Kind == transcript.Request && e.Session == c.prompt.Session:
			list = append(list, e)
		case e.Source == transcript.Editor && e.Kind == transcript.Response:
			list = slices.DeleteFunc(list, func(q transcript.Entry) bool { return q.Seq == e.Ref })
		}
	}
	return list
}

// cancelled returns the recording with the cancel inserted.
func (c *cutting) cancelled(classes transcript.Classifier) (*transcript.Transcript, error) {
	out, err := transcript.New(c.t.Header(), transcript.Options{Classifier: classes})
	if err != nil {
		return nil, err
	}
	c.out = out
	c.before()
	open := c.open(c.at)
	for _, q := range open { // the editor answers these at once
		if !holds(q) {
			c.answers(q)
		}
	}
	c.put(transcript.Entry{Source: transcript.Editor, Kind: transcript.Notification, Method: "session/cancel",
		Session: c.prompt.Session, Conn: c.prompt.Conn, Raw: fmt.Appendf(nil,
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%s}}`, serve.Quote(c.prompt.Session))})
	for _, q := range open {
		if q.Method == "session/request_permission" {
			c.put(transcript.Entry{Source: transcript.Editor, Kind: transcript.Response, Method: q.Method, ID: q.ID,
				Session: q.Session, Conn: q.Conn, Ref: q.Seq, Raw: serve.Result(q.ID, `{"outcome":{"outcome":"cancelled"}}`)})
		}
	}
	if c.pieces >= 0 {
		c.out.Event(0, transcript.Model, transcript.ModelAborted, c.prompt.Session,
			map[string]int{"n": c.current.n, "chunks": c.pieces})
	}
	c.put(transcript.Entry{Source: transcript.Agent, Kind: transcript.Response, Method: c.prompt.Method, ID: c.prompt.ID,
		Session: c.prompt.Session, Conn: c.prompt.Conn, Ref: c.prompt.Seq,
		Raw: serve.Result(c.prompt.ID, `{"stopReason":"cancelled"}`)})
	for e := range c.t.From(c.at + 1) { // turns of other sessions continue to their ends
		if end, ok := c.others[e.Session]; ok && e.Seq <= end {
			c.put(e)
		}
	}
	return out, nil
}

// put appends an entry of the recording, or a new one, to c.out. It converts the entry's Ref to the Seqs of c.out.
func (c *cutting) put(e transcript.Entry) {
	seq := e.Seq
	e.Ref = c.places[e.Ref]
	at := c.out.Append(e).Seq
	if seq > 0 {
		c.places[seq] = at
	}
}

// before appends the entries up to the cancel. It omits those pieces of the current model reply that come after the
// gate.
func (c *cutting) before() {
	left := c.pieces
	for e := range c.t.Between(1, c.at) {
		n, _ := e.JSON().Get("n").Int()
		current := e.Source == transcript.Model && int(n) == c.current.n && e.Seq > c.current.asked
		switch {
		case c.pieces < 0 || !current || e.Kind == transcript.ModelAnswer:
			c.put(e)
		case e.Kind == transcript.ModelChunk && left > 0:
			c.put(clipped(e, &left))
		}
	}
	if c.pieces >= 0 && c.current.answer.Seq > c.at {
		c.put(c.current.answer) // the whole reply is known, including the part after the gate
	}
}

// clipped returns an entry of chunks limited to *left pieces, and subtracts the number of its pieces from *left.
func clipped(e transcript.Entry, left *int) transcript.Entry {
	texts := slices.Collect(fakellm.ChunkTexts(e.JSON()))
	n := min(len(texts), *left)
	if *left -= n; n == len(texts) {
		return e
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(e.Raw, &all) != nil {
		return e
	}
	all["data"], _ = json.Marshal(texts[:n]) // texts are JSON
	e.Raw, _ = json.Marshal(all)
	return e
}

// answers appends the recorded answer to a request, if the recording has one.
func (c *cutting) answers(q transcript.Entry) {
	for e := range c.t.From(q.Seq + 1) {
		if e.Source == transcript.Editor && e.Kind == transcript.Response && e.Ref == q.Seq {
			c.put(e)
			return
		}
	}
}
