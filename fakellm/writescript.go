package fakellm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/yamlfile"
)

// Script returns what was recorded so far, as the YAML of a script without
// secrets. A server that runs it gives the same answers to the same requests.
func (r *Recorder) Script() []byte {
	r.mu.Lock()
	takes := slices.Clone(r.takes)
	r.mu.Unlock()
	slices.SortStableFunc(takes, func(a, b *take) int { return a.n - b.n })
	main, side := split(takes)
	lanes := r.writeLanes(side, len(main) > 0 && !main[0].hasTools)
	if len(main) == 0 {
		return []byte(lanes)
	}
	d := Document{Rest: strings.TrimSuffix(lanes, "\n"), Turns: r.writeTurns(main)}
	return []byte(d.Format())
}

// split tells the conversation from the side requests: where any request has
// tools, those without are not the conversation.
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

// quote writes a text as a YAML scalar, without secrets.
func (r *Recorder) quote(s string) string { return string(yamlfile.Quote(nil, r.redact(s))) }

// writeLanes writes one lane for each side request, told by what it says.
func (r *Recorder) writeLanes(side []*take, noTools bool) string {
	if len(side) == 0 && !noTools {
		return ""
	}
	var w blockWriter
	w.lines(0, "lanes:")
	for i, group := range group(side, func(t *take) string { return fmt.Sprint(t.wantJSON, t.hasTools, t.last) }) {
		t := group[0]
		w.lines(2, fmt.Sprintf("side-%d:", i+1))
		w.lines(4, fmt.Sprintf("when: {user: %s, schema: %t, tools: %t}", r.quote(t.last), t.wantJSON, t.hasTools), "reply:")
		w.steps(r.steps(group), 6)
	}
	if noTools {
		w.lines(2, LaneNoTools+": {main: true}")
	}
	return w.b.String()
}

// group collects takes of the same key, in order of first appearance.
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

func (r *Recorder) writeTurns(main []*take) []TurnNode {
	groups := group(main, func(t *take) string { return fmt.Sprint(t.turns, " ", t.said) })
	// One conversation is told by counting; several need the prompts' texts.
	counted := true
	for i, turn := range groups {
		for _, t := range turn {
			counted = counted && t.turns == i+1
		}
	}
	var turns []TurnNode
	for _, takes := range groups {
		turn := TurnNode{Mapping: true}
		if !counted {
			turn.Rest = "prompt: " + r.quote(takes[0].said)
		}
		byStep := map[int][]*take{}
		last := 0
		for _, t := range takes {
			byStep[t.step] = append(byStep[t.step], t)
			last = max(last, t.step)
		}
		for step := 1; step <= last; step++ {
			steps := []StepNode{NewText("text", "")}
			if len(byStep[step]) > 0 {
				steps = r.steps(byStep[step])
			}
			turn.Replies = append(turn.Replies, ReplyNode{Steps: steps})
		}
		turns = append(turns, turn)
	}
	return turns
}

// best is the answer that stays: the last whole one, else the last that began.
func best(takes []*take) int {
	end, rank := 0, -1
	for i, t := range takes {
		now := 0
		switch {
		case t.answer != nil && !t.broken:
			now = 2
		case t.answer != nil:
			now = 1
		}
		if now >= rank {
			end, rank = i, now
		}
	}
	return end
}

// steps are the answers to one key: the errors that came first, then the last
// answer.
func (r *Recorder) steps(takes []*take) (steps []StepNode) {
	add := func(kind, format string, a ...any) { steps = append(steps, NewStep(kind, fmt.Sprintf(format, a...))) }
	end := best(takes)
	for i, t := range takes[:end+1] {
		if t.answer != nil {
			continue
		}
		retry, times := "", ""
		if seconds, err := strconv.Atoi(t.retry); err == nil {
			retry = fmt.Sprintf(", retry_after: %d", seconds)
		}
		if i < end {
			times = ", times: 1"
		}
		add("fail", "{status: %d%s%s, body: %s}", t.status, retry, times, r.quote(t.errBody))
	}
	t := takes[end]
	if t.answer == nil {
		return steps
	}
	for _, s := range t.answer.steps {
		chunks := yamlfile.QuoteAll(r.redactChunks(s.Chunks))
		switch s.Kind {
		case StepTool:
			steps = append(steps, NewStep("tool", r.quote(s.Tool), "raw: "+chunks))
		case StepThinking:
			add("thinking", "%s", chunks)
		case StepRefusal:
			add("refusal", "%s", chunks)
		default:
			add("text", "%s", chunks)
		}
	}
	if u := t.answer.usage; t.answer.used {
		add("usage", "{input: %d, output: %d, cached: %d, reasoning: %d}", u.Input, u.Output, u.Cached, u.Reasoning)
	}
	switch {
	case t.left: // nobody knows how it would have gone on
		add("fail", "{hang: true}")
	case t.broken:
		add("fail", "{disconnect: now}")
	case t.cut:
		add("fail", "{truncate: end}")
	case t.answer.stop != StopAuto:
		add("stop", "%s", t.answer.stop)
	case len(t.answer.steps) == 0 && !t.answer.used:
		add("text", `""`)
	}
	return steps
}
