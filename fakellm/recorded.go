package fakellm

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Recorded is the recorded model of a transcript, ready for a replay.
type Recorded struct {
	// Script repeats the recorded answers. It has one turn for each prompt, in the order of the prompts.
	Script *Document
	// Gates lists the gates at which the recorded model waited. It also contains gates that ReadRecorded added, so
	// that in a replay the editor acts at the same point of the stream.
	Gates []RecordedGate
}

// RecordedGate is a gate of a recorded model.
type RecordedGate struct {
	Name    string
	Session string
	// The following are Seqs of entries. After Reached, the stream waited at the gate. After Released, the stream
	// continued; 0 means never. Left is the stream's end, if the stream ended while it waited.
	Reached, Released, Left int

	n int // number of the request
}

// Holds reports whether the stream was waiting at the gate when the entry seq was appended.
func (g RecordedGate) Holds(seq int) bool {
	end := cmp.Or(g.Released, g.Left)
	return g.Reached != g.Released && seq > g.Reached && (end == 0 || seq <= end)
}

// RecordedPrompt is a prompt of a transcript.
type RecordedPrompt struct {
	Prompt
	Seq int
}

// recordedTake is a take with its position in a transcript.
type recordedTake struct {
	*take
	index    int // number of the prompt
	session  string
	lane     string
	asked    int   // Seq of the request's entry
	pieces   []int // Seqs of the chunks' entries
	end      int   // Seq of the end's entry, 0 if there is none
	aborted  bool
	answered bool
	heard    said // the answer, rebuilt from the chunks
	req      *request
}

// cutOff is for a recording that ended while the model was answering, for example because of a crash. It makes the
// answer from the chunks received so far. The rest is unknown, so in a replay the answer then hangs.
func (t *recordedTake) cutOff() {
	if t.answered || t.end != 0 || len(t.heard.pieces) != len(t.pieces) {
		return
	}
	t.answered, t.broken, t.aborted = true, true, true
	t.answer = append(nodesOf(t.heard.steps), NewStep("fail", "{hang: true}"))
}

// ReadRecorded rebuilds the model's script and gates from a transcript. prompts are the editor's prompts in order,
// and acts the Seqs of the editor's acts. It returns nil if the transcript has no model or does not contain the
// model's answers.
func ReadRecorded(t *transcript.Transcript, prompts []RecordedPrompt, acts []int) *Recorded {
	r := recordedReader{prompts: prompts, acts: acts, byN: map[int]*recordedTake{}, gates: map[string]*RecordedGate{}}
	for e := range t.All() {
		if e.Source == transcript.Model {
			r.entry(e)
		}
	}
	unheard := func(t *recordedTake) bool { return !t.answered && t.end != 0 }
	if !slices.ContainsFunc(r.takes, unheard) {
		for _, t := range r.takes {
			t.cutOff()
		}
	}
	if !slices.ContainsFunc(r.takes, func(t *recordedTake) bool { return t.answered }) {
		return nil
	}
	return r.result()
}

type recordedReader struct {
	prompts []RecordedPrompt
	acts    []int
	takes   []*recordedTake
	byN     map[int]*recordedTake
	chains  chains
	gates   map[string]*RecordedGate
	names   []string // names of the gates, in the order in which they were reached
}

func (r *recordedReader) entry(e transcript.Entry) {
	v := e.JSON()
	t := r.byN[whole(v.Get("n"))]
	switch {
	case e.Kind == transcript.ModelRequest:
		r.request(e, v)
	case e.Kind == transcript.Gate || e.Kind == transcript.GateReleased:
		r.gate(e, v.Get("gate").Str(), whole(v.Get("n")))
	case t == nil:
	case e.Kind == transcript.ModelAnswer:
		t.answered = true
		t.failed, _ = v.Get("failed").Bool()
		t.broken, _ = v.Get("broken").Bool()
		for s := range v.Get("steps").Items() {
			t.answer = append(t.answer, readNode(s.Str()))
		}
		if id := v.Get("id").Str(); id != "" {
			r.chains.keep(t.req, id)
		}
	case e.Kind == transcript.ModelChunk:
		for text := range ChunkTexts(v) {
			t.pieces = append(t.pieces, e.Seq)
			t.hear(v, text)
		}
	case e.Kind == transcript.ModelAborted:
		t.end, t.aborted = e.Seq, true
		for _, g := range r.gates {
			if g.n == t.n {
				g.Left = e.Seq
			}
		}
	case e.Kind == transcript.ModelDone && t.end == 0:
		t.end = e.Seq
	}
}

// hear adds the text of a chunk to the answer. v is the chunk's transcript entry, which may also contain further
// chunks.
func (t *recordedTake) hear(v wire.Value, text string) {
	step, kind := whole(v.Get("step"))-1, slices.Index(spoken[:], v.Get("says").Str())
	if step == len(t.heard.steps) && kind >= 0 {
		tool := v.Get("tool").Str()
		t.heard.steps = append(t.heard.steps, Step{Kind: StepKind(kind), Tool: tool, Raw: tool != ""})
	}
	if step >= 0 && step < len(t.heard.steps) {
		t.heard.add(step, text)
	}
}

func whole(v wire.Value) int {
	n, _ := v.Int()
	return int(n)
}

// readNode parses the text of a step. If the text is not a step, it returns a step with an empty text.
func readNode(text string) StepNode {
	d, err := ParseDocument("the transcript", []byte("replies:\n  - - "+strings.ReplaceAll(text, "\n", "\n      ")+"\n"))
	if err != nil || len(d.Turns) != 1 || len(d.Turns[0].Replies) != 1 || len(d.Turns[0].Replies[0].Steps) != 1 {
		return NewText("text", "")
	}
	return d.Turns[0].Replies[0].Steps[0]
}

// readRequest rebuilds a request from its transcript entry. ok is false if the entry cannot be read or the request
// does not ask for a model's answer.
func readRequest(v wire.Value) (req *request, rt route, ok bool) {
	where, err := url.Parse(v.Get("path").Str())
	if err != nil {
		return nil, rt, false
	}
	hr := &http.Request{Method: v.Get("method").Str(), URL: where, Header: http.Header{}}
	for name, value := range v.Get("headers").Members() {
		hr.Header.Set(name, value.Str())
	}
	rt = findRoute(hr)
	req = &request{wire: v.Get("wire").Str(), path: where.Path, run: rt.run}
	ok = rt.task == taskGenerate && req.parse([]byte(v.Get("body").Raw()), rt, where.Query()) == nil
	return req, rt, ok
}

func (r *recordedReader) request(e transcript.Entry, v wire.Value) {
	req, rt, ok := readRequest(v)
	if !ok || r.chains.goOn(req) != nil {
		return
	}
	n := whole(v.Get("n"))
	t := &recordedTake{take: newTake(n, req, rt.format), asked: e.Seq, session: e.Session,
		lane: v.Get("lane").Str(), req: req}
	begun := lists.Map(lists.Where(r.prompts, func(p RecordedPrompt) bool { return p.Seq < e.Seq }),
		func(p RecordedPrompt) Prompt { return p.Prompt })
	if p, at := findPrompt(begun, req); p != nil && at >= 0 && at < len(req.items) {
		t.index, t.step = p.Index, req.stepsAfter(at)+1
		t.session = cmp.Or(t.session, p.Session)
	}
	r.takes, r.byN[n] = append(r.takes, t), t
}

func (r *recordedReader) gate(e transcript.Entry, name string, n int) {
	g := r.gates[name]
	switch {
	case g == nil && e.Kind == transcript.Gate:
		r.gates[name] = &RecordedGate{Name: name, Session: e.Session, Reached: e.Seq, n: n}
		r.names = append(r.names, name)
	case g == nil: // the gate was released before any stream reached it
		r.gates[name] = &RecordedGate{Name: name, Reached: e.Seq, Released: e.Seq}
		r.names = append(r.names, name)
	case e.Kind == transcript.GateReleased:
		g.Released = e.Seq
	}
}

func (r *recordedReader) result() *Recorded {
	var main, side []*take
	here := map[*take]*recordedTake{}
	turns := make([][]*take, len(r.prompts))
	for _, t := range r.takes {
		here[t.take] = t
		if t.answered && t.lane == "record" {
			main = append(main, t.take)
		}
	}
	main, side = split(main)
	for _, t := range r.takes {
		switch t.lane {
		case LaneMain, LaneAfter:
			main = append(main, t.take)
		case "record":
		default:
			if t.answered {
				side = append(side, t.take)
			}
		}
	}
	noTools := false
	for _, t := range main {
		if at := here[t]; at.index > 0 && at.answered {
			turns[at.index-1] = append(turns[at.index-1], t)
			noTools = noTools || !t.hasTools
		}
	}
	out := &Recorded{Script: &Document{Rest: writeLanes(side, noTools, func(s string) string { return s })}}
	for i, takes := range turns {
		turn := TurnNode{Replies: writeReplies(takes)}
		for step := range turn.Replies {
			r.hold(&turn, step, takes, here)
		}
		if len(r.prompts) != 1 {
			turn.Mapping = true
			turn.Rest = "prompt: " + quoted(r.prompts[i].Text)
		}
		out.Script.Turns = append(out.Script.Turns, turn)
	}
	out.Gates = lists.Map(r.names, func(name string) RecordedGate { return *r.gates[name] })
	return out
}

// hold inserts a gate into a reply at each point of its stream at which the editor acted. It inserts none where the
// recorded stream already waited at a gate.
func (r *recordedReader) hold(turn *TurnNode, step int, takes []*take, here map[*take]*recordedTake) {
	takes = slices.DeleteFunc(slices.Clone(takes), func(t *take) bool { return t.step != step+1 })
	if len(takes) == 0 {
		return
	}
	t := here[takes[best(takes)]]
	if t.failed {
		return
	}
	// Go from the last piece to the first, because an inserted gate shifts everything after it.
	for i := len(t.pieces); i >= 0; i-- {
		from, to := t.asked, t.end
		if i > 0 {
			from = t.pieces[i-1]
		}
		if i < len(t.pieces) {
			to = t.pieces[i]
		}
		last := i == len(t.pieces)
		first, newest := r.actsBetween(from, to)
		left := 0
		switch {
		case last && t.aborted && !r.heldBetween(from, to):
			if first == 0 {
				continue
			}
			newest, left = 0, t.end // the stream did not continue
		case first == 0, r.heldBetween(from, to):
			continue
		}
		g := &RecordedGate{Name: fmt.Sprintf("at-%d", first), Session: t.session, Reached: from, Released: newest, Left: left}
		at, ok := placeAfter(turn.Replies[step], step, i)
		if _, there := r.gates[g.Name]; there || !ok {
			continue
		}
		*turn = turn.With(at, NewStep("gate", g.Name))
		r.gates[g.Name] = g
		r.names = append(r.names, g.Name)
	}
}

// actsBetween returns the Seqs of the editor's first and last act between two entries, or 0, 0 if the editor did not
// act. If to is 0, it searches to the end of the transcript.
func (r *recordedReader) actsBetween(from, to int) (first, last int) {
	for _, seq := range r.acts {
		if seq > from && (to == 0 || seq < to) {
			first = cmp.Or(first, seq)
			last = seq
		}
	}
	return first, last
}

func (r *recordedReader) heldBetween(from, to int) bool {
	return lists.Any(maps.Values(r.gates), func(g *RecordedGate) bool {
		return g.Reached > from && (to == 0 || g.Reached < to)
	})
}

// placeAfter returns the place in a reply that follows a number of chunks. It returns false if a stream cannot be
// held at that point, for example inside a tool's arguments.
func placeAfter(r ReplyNode, reply, chunks int) (Place, bool) {
	for i, s := range r.Steps {
		switch {
		case s.Kind == "fail", s.Kind == "stop", s.Kind == "usage":
			return Place{reply, i, 0}, chunks == 0
		case chunks == 0 && (s.Says() || s.Kind == "tool"):
			return Place{reply, i, 0}, true
		case s.Says():
			if chunks < len(s.Pieces) {
				return Place{reply, i, chunks}, true
			}
			chunks -= len(s.Pieces)
		case s.Kind == "tool":
			n := s.toolPieces()
			if chunks < n {
				return Place{}, false // inside the arguments of a tool
			}
			chunks -= n
		}
	}
	return Place{reply, len(r.Steps), 0}, chunks == 0
}

// toolPieces returns the number of pieces that the arguments of a tool are split
// into.
func (s StepNode) toolPieces() int {
	root, err := yamlfile.Parse("", []byte(s.Text))
	if err != nil {
		return 1
	}
	if raw := root.Field("raw"); raw != nil && raw.Kind == yamlfile.List {
		return len(raw.Items)
	}
	if c := root.Field("chunks"); c != nil {
		if n, ok := c.Value.(int64); ok {
			return int(n)
		}
	}
	return 1
}
