package fakellm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
)

// Script returns the answers recorded so far as a script in YAML, with secrets redacted. It returns nil if there was
// no request. A server that runs the script sends the same answers to the same requests.
func (r *Recorder) Script() []byte {
	r.mu.Lock()
	takes := slices.Clone(r.takes)
	r.mu.Unlock()
	if len(takes) == 0 {
		return nil
	}
	slices.SortStableFunc(takes, func(a, b *take) int { return a.n - b.n })
	main, side := split(takes)
	d := Document{Rest: writeLanes(side, len(main) > 0 && !main[0].hasTools, r.redact), Turns: writeTurns(main, r.redact)}
	if len(main) == 0 {
		return []byte(d.Rest + "\n")
	}
	return []byte(d.Format())
}

// split separates the conversation from side requests. Requests for JSON are side requests. If any other request has
// tools, requests without tools are side requests too.
func split(takes []*take) (main, side []*take) {
	tools := slices.ContainsFunc(takes, func(t *take) bool { return t.hasTools && !t.wantJSON })
	for _, t := range takes {
		if t.wantJSON || tools && !t.hasTools {
			side = append(side, t)
		} else {
			main = append(main, t)
		}
	}
	return main, side
}

// writeLanes returns the lanes of a script: one for each side request, matched by the request's text. redact removes
// secrets from that text.
func writeLanes(side []*take, noTools bool, redact func(string) string) string {
	if len(side) == 0 && !noTools {
		return ""
	}
	var w blockWriter
	w.lines(0, "lanes:")
	for i, group := range group(side, func(t *take) string { return fmt.Sprint(t.wantJSON, t.hasTools, t.last) }) {
		t := group[0]
		w.lines(2, fmt.Sprintf("side-%d:", i+1))
		w.lines(4, fmt.Sprintf("when: {user: %s, schema: %t, tools: %t}", quoted(redact(t.last)), t.wantJSON, t.hasTools),
			"reply:")
		w.steps(answers(group), 6)
	}
	if noTools {
		w.lines(2, LaneNoTools+": {main: true}")
	}
	return strings.TrimSuffix(w.b.String(), "\n")
}

// group groups the takes with the same key. The groups are in the order in which their keys first appear.
func group(takes []*take, key func(*take) string) [][]*take {
	var out [][]*take
	at := map[string]int{}
	for _, t := range takes {
		k := key(t)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}

func writeTurns(main []*take, redact func(string) string) []TurnNode {
	groups := group(main, func(t *take) string { return fmt.Sprint(t.turns, " ", t.said) })
	// With one conversation, the number of the user's turns selects the turn of the script. With several, the
	// prompts' texts are needed.
	counted := true
	for i, turn := range groups {
		for _, t := range turn {
			counted = counted && t.turns == i+1
		}
	}
	var turns []TurnNode
	for _, takes := range groups {
		turn := TurnNode{Mapping: true, Replies: writeReplies(takes)}
		if !counted {
			turn.Rest = "prompt: " + quoted(redact(takes[0].said))
		}
		turns = append(turns, turn)
	}
	return turns
}

// writeReplies returns the replies to the requests of one turn, in the order of the requests.
func writeReplies(takes []*take) (replies []ReplyNode) {
	byStep := map[int][]*take{}
	last := 0
	for _, t := range takes {
		byStep[t.step] = append(byStep[t.step], t)
		last = max(last, t.step)
	}
	for step := 1; step <= last; step++ {
		steps := []StepNode{NewText("text", "")}
		if len(byStep[step]) > 0 {
			steps = answers(byStep[step])
		}
		replies = append(replies, ReplyNode{Steps: steps})
	}
	return replies
}

// best returns the index of the answer to keep: the last complete answer; without one, the last that began; without
// that, the last error.
func best(takes []*take) int {
	end, rank := 0, -1
	for i, t := range takes {
		now := 2
		switch {
		case t.failed:
			now = 0
		case t.broken:
			now = 1
		}
		if now >= rank {
			end, rank = i, now
		}
	}
	return end
}

// answers returns the steps for requests with the same key. Each error before the answer to keep is sent once; after
// these, that answer is sent.
func answers(takes []*take) (steps []StepNode) {
	end := best(takes)
	for _, t := range takes[:end] {
		if t.failed {
			fail := t.answer[0]
			fail.Text = strings.TrimSuffix(fail.Text, "}") + ", times: 1}"
			steps = append(steps, fail)
		}
	}
	return append(steps, takes[end].answer...)
}

// refused returns the steps that repeat an HTTP error.
func (r *Recorder) refused(status int, retry, body string) []StepNode {
	f := Fail{Status: status}
	if seconds, err := strconv.Atoi(retry); err == nil {
		f.RetryAfter, f.HasRetryAfter = time.Duration(seconds)*time.Second, true
	}
	body = r.redact(body)
	f.Body = &body
	return []StepNode{NewStep("fail", f.flow())}
}

// steps converts an answer to steps. left means that the answer ended because the agent disconnected. broken means
// that the connection to the provider broke. cut means that the answer ended without the events that end an answer.
func (r *Recorder) steps(s *said, left, broken, cut bool) []StepNode {
	for i := range s.steps {
		s.steps[i].Chunks = r.redactChunks(s.steps[i].Chunks)
	}
	steps := nodesOf(s.steps)
	if s.used {
		steps = append(steps, usageNode(s.usage))
	}
	switch {
	case left: // the rest of the answer is unknown
		steps = append(steps, NewStep("fail", "{hang: true}"))
	case broken:
		steps = append(steps, NewStep("fail", "{disconnect: now}"))
	case cut:
		steps = append(steps, NewStep("fail", "{truncate: end}"))
	case s.stop != StopAuto:
		steps = append(steps, NewStep("stop", string(s.stop)))
	case len(steps) == 0:
		steps = append(steps, NewText("text", ""))
	}
	return steps
}

// nodesOf converts steps, whose variables are already replaced, to the nodes of a script.
func nodesOf(steps []Step) []StepNode {
	return lists.Map(steps, func(s Step) StepNode { return nodeOf(&s) })
}

func nodeOf(s *Step) StepNode {
	switch s.Kind {
	case StepThinking:
		return textNode("thinking", s.Chunks)
	case StepRefusal:
		return textNode("refusal", s.Chunks)
	case StepTool:
		return toolNode(s)
	case StepGate:
		return NewStep("gate", quoted(s.Gate))
	case StepPause:
		return NewStep("pause", s.Pause.String())
	case StepDelay:
		return NewStep("delay", fmt.Sprintf("{ttft: %v, per_chunk: %v}", s.Delay.TTFT, s.Delay.PerChunk))
	case StepUsage:
		if s.NoUsage {
			return NewStep("usage", "none")
		}
		return usageNode(s.Usage)
	case StepStop:
		return NewStep("stop", string(s.Stop))
	case StepWhole:
		return NewStep("whole", "true")
	case StepFail:
		return NewStep("fail", s.Fail.flow())
	}
	return textNode("text", s.Chunks)
}

func quoted(s string) string { return string(yamlfile.Quote(nil, s)) }

// textNode is like NewText, but writes more than 50 equal chunks as a single chunk with a repeat count.
func textNode(kind string, chunks []string) StepNode {
	const many = 50
	if n := len(chunks); n > many && len(slices.Compact(slices.Clone(chunks))) == 1 {
		s := NewStep(kind, yamlfile.QuoteAll(chunks[:1]), "repeat: "+strconv.Itoa(n))
		s.Pieces = chunks
		return s
	}
	return NewText(kind, chunks...)
}

func usageNode(u Usage) StepNode {
	return NewStep("usage", fmt.Sprintf("{input: %d, output: %d, cached: %d, reasoning: %d}", u.Input, u.Output, u.Cached,
		u.Reasoning))
}

func toolNode(s *Step) StepNode {
	var more []string
	if s.Raw {
		more = append(more, "raw: "+yamlfile.QuoteAll(s.Chunks))
	} else if len(s.Args) > 0 {
		more = append(more, "args: "+string(appendFlow(nil, s.Args)))
	}
	if s.Pieces > 1 {
		more = append(more, "chunks: "+strconv.Itoa(s.Pieces))
	}
	if s.Gate != "" {
		more = append(more, "args_gate: "+quoted(s.Gate))
	}
	if s.GateAt > 0 {
		more = append(more, "args_gate_at: "+strconv.Itoa(s.GateAt))
	}
	if s.CallID != "" {
		more = append(more, "id: "+quoted(s.CallID))
	}
	return NewStep("tool", quoted(s.Tool), more...)
}

// String returns the span in the notation of a script.
func (s Span) String() string {
	if s.Max <= s.Min {
		return s.Min.String()
	}
	return s.Min.String() + ".." + s.Max.String()
}

// flow returns the fault as a YAML mapping, which is the value of the key fail.
func (f *Fail) flow() string {
	var parts []string
	add := func(set bool, format string, a ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	add(f.Status != 0, "status: %d", f.Status)
	add(f.Type != "", "type: %s", quoted(f.Type))
	add(f.Message != "", "message: %s", quoted(f.Message))
	add(f.HasRetryAfter, "retry_after: %v", f.RetryAfter)
	if len(f.Headers) > 0 {
		var headers object = lists.Map(f.Headers, func(h [2]string) member { return member{h[0], h[1]} })
		add(true, "headers: %s", appendFlow(nil, headers))
	}
	add(f.Times > 0, "times: %d", f.Times)
	add(f.AfterChunks > 0, "after_chunks: %d", f.AfterChunks)
	add(f.Disconnect != "", "disconnect: %s", f.Disconnect)
	add(f.Hang, "hang: true")
	add(f.Malformed != "", "malformed: %s", f.Malformed)
	add(f.Truncate != "", "truncate: %s", f.Truncate)
	add(f.ContentType != "", "content_type: %s", quoted(f.ContentType))
	if f.Body != nil {
		add(true, "body: %s", quoted(*f.Body))
	}
	add(f.Comment != "", "comment: %s", quoted(f.Comment))
	if f.Slow != nil {
		add(true, "slow: {bytes: %d, every: %v}", f.Slow.Bytes, max(f.Slow.Every, time.Nanosecond))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// answerEntry returns the transcript entry for the answer to request n. id is the id by which later requests may
// continue the answer; "" if the wire format has none.
func answerEntry(n int, id string, steps []StepNode) object {
	o := object{{"n", n}}
	if id != "" {
		o = append(o, member{"id", id})
	}
	return append(o, member{"steps", lists.Map(steps, func(s StepNode) any { return s.Text })})
}
