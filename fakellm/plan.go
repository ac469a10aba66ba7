package fakellm

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
)

// defaultUsage is small, so that no agent starts to compress its history.
var defaultUsage = Usage{Input: 10, Output: 5}

// block is a part of a reply with a beginning and an end: a text, a thinking block, a refusal or a tool call.
type block struct {
	kind  StepKind
	index int // index among all blocks, from 0
	tool  int // index among the tool calls, from 0
	// message is the index of the first block in this block's message. part is this block's index within that
	// message. Adjacent texts may share a message.
	message, part int
	id            string // id of the tool call, without an API's prefix
	call          call
	text          string // complete text or arguments
	late          bool   // the text is sent only at the end, not in pieces
}

func (b block) isTool() bool { return b.kind == StepTool }

// answer is a reply in a form that is independent of the wire format.
type answer struct {
	id     string // unique for the key, without an API's prefix
	model  string
	blocks []block
	ops    []op
	stop   Stop
	whole  bool // the complete answer is sent in one event
	usage  Usage
	silent bool          // the usage is left out where the format allows that
	said   []spokenChunk // memory to reuse for chunks that are not logged yet
}

// calls returns the tool calls of the answer as items of a conversation.
func (a *answer) calls() (calls []item) {
	return lists.Map(lists.Where(a.blocks, func(b block) bool { return b.kind == StepTool }), func(b block) item {
		return item{role: roleModel, text: b.text, calls: true, call: "call_" + b.id}
	})
}

type opKind uint8

const (
	opOpen opKind = iota
	opStart
	opPiece
	opEnd
	opClose
	opGate
	opWait
	opFault
)

// op is one operation of sending a reply, such as sending a piece or waiting.
type op struct {
	kind  opKind
	block int
	text  string // text of a piece, or name of a gate
	wait  time.Duration
	fault *Fail
}

// planner converts the steps of a reply to an answer.
type planner struct {
	s      *Server
	r      *request
	key    string
	a      *answer
	open   bool // opOpen has been planned
	in     int  // index of the open block, -1 if none is open
	chunks int
	delay  Delay
	seeded uint64
}

// plan returns the answer to a request and the steps from which it was built. It also counts, for faults with a
// limited number of times, that this request used one.
func (s *Server) plan(r *request, m match) (*answer, []Step) {
	key := m.key(r.run)
	a, ok := s.answers.Get().(*answer)
	if !ok {
		a = &answer{}
	}
	*a = answer{id: s.answerID(r, key), model: r.model, usage: defaultUsage, blocks: a.blocks[:0],
		ops: a.ops[:0], said: a.said[:0]}
	p := &planner{s: s, r: r, key: key, a: a, in: -1, delay: s.cfg.Script.Delay}
	var steps []Step
	switch {
	case m.reply != nil:
		steps = m.reply.Steps
	case m.lane == LaneSchema && r.forced != "":
		steps = []Step{{Kind: StepTool, Tool: r.forced, Raw: true,
			Chunks: []string{string(appendJSON(nil, fit(r.schema, "")))}}}
	case m.lane == LaneSchema:
		steps = []Step{{Kind: StepText, Chunks: []string{string(appendJSON(nil, fit(r.schema, "")))}}}
	case m.lane == LaneNoTools:
		steps = []Step{{Kind: StepText, Chunks: []string{"A short text."}}}
	default:
		steps = []Step{{Kind: StepText, Chunks: []string{"Done."}}}
	}
	for i := range steps {
		p.step(&steps[i])
	}
	p.ready()
	p.close()
	a.ops = append(a.ops, op{kind: opClose})
	a.ops = placeFaults(a.ops)
	if a.stop == StopAuto {
		a.stop = StopEnd
		if slices.ContainsFunc(a.blocks, block.isTool) {
			a.stop = StopTool
		}
	}
	return a, steps
}

func (p *planner) do(o op) { p.a.ops = append(p.a.ops, o) }

// ready plans the start of the answer, after the delay for the first byte. It does nothing if the start is already
// planned.
func (p *planner) ready() {
	if p.open {
		return
	}
	p.open = true
	if d := p.pick(p.delay.TTFT); d > 0 {
		p.do(op{kind: opWait, wait: d})
	}
	p.do(op{kind: opOpen})
}

func (p *planner) close() {
	if p.in >= 0 {
		p.do(op{kind: opEnd, block: p.in})
		p.in = -1
	}
}

// enter returns the open block if it has this kind; otherwise it opens a new block. Texts before and after a gate
// therefore share a block. Each tool call opens a new block.
func (p *planner) enter(kind StepKind) *block {
	p.ready()
	if p.in >= 0 && kind != StepTool && p.a.blocks[p.in].kind == kind {
		return &p.a.blocks[p.in]
	}
	p.close()
	p.in = len(p.a.blocks)
	b := block{kind: kind, index: p.in, message: p.in}
	if kind == StepTool {
		b.tool = lists.Count(p.a.blocks, block.isTool)
		b.id = p.a.id + "t" + strconv.Itoa(b.tool+1)
	}
	p.a.blocks = append(p.a.blocks, b)
	return &p.a.blocks[p.in]
}

func (p *planner) piece(text string) {
	if p.chunks > 0 {
		if d := p.pick(p.delay.PerChunk); d > 0 {
			p.do(op{kind: opWait, wait: d})
		}
	}
	p.chunks++
	p.do(op{kind: opPiece, block: p.in, text: text})
}

func (p *planner) step(st *Step) {
	switch st.Kind {
	case StepText, StepThinking, StepRefusal:
		p.textStep(st)
	case StepTool:
		p.toolStep(st)
	case StepGate:
		p.do(op{kind: opGate, text: st.Gate})
	case StepPause:
		p.do(op{kind: opWait, wait: p.pick(st.Pause)})
	case StepDelay:
		p.delay = st.Delay
	case StepUsage:
		p.a.usage, p.a.silent = st.Usage, st.NoUsage
	case StepStop:
		p.a.stop = st.Stop
	case StepWhole:
		p.a.whole = p.r.wire == OpenAIChat || p.r.wire == Gemini
	case StepFail:
		if p.s.faultApplies(p.key, st.Fail) {
			p.do(op{kind: opFault, fault: st.Fail})
		}
	}
}

func (p *planner) textStep(st *Step) {
	if st.Late {
		p.lateStep(st)
		return
	}
	fresh := p.in
	if st.Part && (p.r.wire == OpenAIResponses || strings.TrimSpace(strings.Join(st.Chunks, "")) != "") {
		p.close()
	}
	b := p.enter(st.Kind)
	if before := b.index - 1; st.Part && before >= 0 && p.a.blocks[before].kind == StepText {
		b.message, b.part = p.a.blocks[before].message, p.a.blocks[before].part+1
	}
	if p.in != fresh {
		p.do(op{kind: opStart, block: p.in})
	}
	if st.Kind == StepRefusal && p.a.stop == StopAuto {
		p.a.stop = StopRefusal
	}
	b.text += strings.Join(st.Chunks, "")
	for _, c := range st.Chunks {
		p.piece(c)
	}
}

// lateStep plans a late text: a block of its own whose text is sent only at its end, not in pieces.
func (p *planner) lateStep(st *Step) {
	p.close()
	b := p.enter(st.Kind)
	b.text, b.late = strings.Join(st.Chunks, ""), true
	p.do(op{kind: opStart, block: p.in})
	p.close()
}

// late returns, joined, the texts of all blocks whose text is sent only at the end.
func (a *answer) late() (text string) {
	for _, bl := range a.blocks {
		if bl.late {
			text += bl.text
		}
	}
	return text
}

func (p *planner) toolStep(st *Step) {
	if _, there := p.s.own(p.r, st); !there {
		p.step(&Step{Kind: StepText, Chunks: []string{"There is no further tool."}})
		return
	}
	if list := st.Args.objects(edits); len(list) > 0 && !p.s.cfg.Tools[st.Tool].patches() {
		for _, edit := range list {
			p.toolStep(&Step{Kind: StepTool, Tool: st.Tool, Args: edit})
		}
		return
	}
	b := p.enter(StepTool)
	if st.CallID != "" && p.r.wire == OpenAIChat {
		b.id = st.CallID
	}
	b.call = p.s.toolCall(st, p.r)
	b.text = b.call.args
	p.do(op{kind: opStart, block: p.in})
	pieces := cut(b.call.args, st.Pieces)
	if st.Raw {
		pieces = st.Chunks
	}
	if st.Gate == "" {
		for _, c := range pieces {
			p.piece(c)
		}
		return
	}
	at := st.GateAt
	if n := len([]rune(b.call.args)); at == 0 || at > n {
		at = n / 2
	}
	held := false
	for _, c := range pieces {
		runes := []rune(c)
		if !held && at <= len(runes) {
			held = true
			if at > 0 {
				p.piece(string(runes[:at]))
			}
			p.do(op{kind: opGate, text: st.Gate})
			c = string(runes[at:])
		}
		at -= len(runes)
		if c != "" {
			p.piece(c)
		}
	}
}

// placeFaults moves each fault behind the number of chunks in its AfterChunks, or to the end of the content if there
// are fewer chunks.
func placeFaults(ops []op) []op {
	for i := 0; i < len(ops); i++ {
		if ops[i].kind != opFault || ops[i].fault.AfterChunks == 0 {
			continue
		}
		o, to := ops[i], i+1
		for left := o.fault.AfterChunks; to < len(ops)-1 && left > 0; to++ {
			if ops[to].kind == opPiece {
				left--
			}
		}
		copy(ops[i:], ops[i+1:to])
		ops[to-1] = o
		if to-1 > i {
			passed := *o.fault
			passed.AfterChunks = 0
			ops[to-1].fault = &passed
			i--
		}
	}
	return ops
}

// pick returns a value within a span. The value is random but reproducible: it depends only on the seed, the key and
// the number of the call.
func (p *planner) pick(s Span) time.Duration {
	if s.Max <= s.Min {
		return s.Min
	}
	p.seeded++
	h := fnv.New64a()
	h.Write([]byte(p.key))
	h.Write(strconv.AppendInt(nil, p.s.cfg.Seed, 10))
	h.Write(strconv.AppendUint([]byte{':'}, p.seeded, 10))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return s.Min + time.Duration(x%uint64(s.Max-s.Min+1))
}

// answerID returns an id for the answer, which is unique for the key. If there are no known prompts, conversations of
// different clients have the same keys, so the id also depends on the conversation's content.
func (s *Server) answerID(r *request, key string) string {
	if len(s.known()) > 0 {
		return key
	}
	h := fnv.New64a()
	for _, it := range r.items {
		h.Write([]byte{byte(it.role)})
		h.Write([]byte(it.text))
	}
	return key + "x" + strconv.FormatUint(h.Sum64(), 36)
}
