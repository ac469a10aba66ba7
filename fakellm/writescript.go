package fakellm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// Script returns what was recorded so far, as the YAML of a script without
// secrets. A server that runs it gives the same answers to the same requests.
func (r *Recorder) Script() []byte {
	r.mu.Lock()
	takes := slices.Clone(r.takes)
	r.mu.Unlock()
	slices.SortStableFunc(takes, func(a, b *take) int { return a.n - b.n })
	w := &scriptWriter{r: r}
	main, side := split(takes)
	w.lanes(side, len(main) > 0 && !main[0].hasTools)
	w.turns(main)
	return []byte(w.b.String())
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

type scriptWriter struct {
	r *Recorder
	b strings.Builder
}

func (w *scriptWriter) line(depth int, format string, a ...any) {
	w.b.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&w.b, format, a...)
	w.b.WriteByte('\n')
}

// quote writes a text as a YAML scalar; a JSON string is one.
func (w *scriptWriter) quote(s string) string { return string(wire.AppendString(nil, w.r.redact(s))) }

func quoteAll(chunks []string) string {
	var out []string
	for _, c := range chunks {
		out = append(out, string(wire.AppendString(nil, c)))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// lanes writes one lane for each side request, told by what it says.
func (w *scriptWriter) lanes(side []*take, noTools bool) {
	if len(side) == 0 && !noTools {
		return
	}
	w.line(0, "lanes:")
	n := 0
	seen := map[string]bool{}
	for _, group := range group(side, func(t *take) string { return fmt.Sprint(t.wantJSON, t.hasTools, t.last) }) {
		t := group[0]
		n++
		key := fmt.Sprint(t.wantJSON, t.hasTools, t.last)
		if seen[key] {
			continue
		}
		seen[key] = true
		w.line(1, "side-%d:", n)
		w.line(2, "when: {user: %s, schema: %t, tools: %t}", w.quote(t.last), t.wantJSON, t.hasTools)
		w.line(2, "reply:")
		w.steps(3, "- ", group)
	}
	if noTools {
		w.line(1, "%s: {main: true}", LaneNoTools)
	}
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

func (w *scriptWriter) turns(main []*take) {
	turns := group(main, func(t *take) string { return fmt.Sprint(t.turns, " ", t.said) })
	if len(turns) == 0 {
		return
	}
	// One conversation is told by counting; several need the prompts' texts.
	counted := true
	for i, turn := range turns {
		for _, t := range turn {
			counted = counted && t.turns == i+1
		}
	}
	w.line(0, "turns:")
	for _, turn := range turns {
		if counted {
			w.line(1, "- replies:")
		} else {
			w.line(1, "- prompt: %s", w.quote(turn[0].said))
			w.line(2, "replies:")
		}
		byStep := map[int][]*take{}
		last := 0
		for _, t := range turn {
			byStep[t.step] = append(byStep[t.step], t)
			last = max(last, t.step)
		}
		for step := 1; step <= last; step++ {
			if len(byStep[step]) == 0 {
				w.line(3, "- - text: \"\"")
				continue
			}
			w.steps(3, "- - ", byStep[step])
		}
	}
}

// best is the answer that stays: the last whole one, else the last that began.
func best(takes []*take) int {
	end, rank := 0, -1
	for i, t := range takes {
		now := 0
		switch {
		case t.heard != nil && !t.broken:
			now = 2
		case t.heard != nil:
			now = 1
		}
		if now >= rank {
			end, rank = i, now
		}
	}
	return end
}

// steps writes the answers to one key: the errors that came first, then the
// last answer. first stands before the first step.
func (w *scriptWriter) steps(depth int, first string, takes []*take) {
	step := func(format string, a ...any) {
		w.line(depth, first+format, a...)
		first = strings.Repeat(" ", len(first)-2) + "- "
	}
	more := func(format string, a ...any) {
		w.line(depth, strings.Repeat(" ", len(first))+format, a...)
	}
	end := best(takes)
	for i, t := range takes[:end+1] {
		if t.heard != nil {
			continue
		}
		retry := ""
		if seconds, err := strconv.Atoi(t.retry); err == nil {
			retry = fmt.Sprintf(", retry_after: %d", seconds)
		}
		times := ""
		if i < end {
			times = ", times: 1"
		}
		step("fail: {status: %d%s%s, body: %s}", t.status, retry, times, w.quote(t.errBody))
	}
	t := takes[end]
	if t.heard == nil {
		return
	}
	for _, s := range t.heard.steps {
		chunks := w.r.redactChunks(s.Chunks)
		switch s.Kind {
		case StepTool:
			step("tool: %s", w.quote(s.Tool))
			more("raw: %s", quoteAll(chunks))
		default:
			step("%s: %s", map[StepKind]string{StepText: "text", StepThinking: "thinking", StepRefusal: "refusal"}[s.Kind], quoteAll(chunks))
		}
	}
	if u := t.heard.usage; t.heard.used {
		step("usage: {input: %d, output: %d, cached: %d, reasoning: %d}", u.Input, u.Output, u.Cached, u.Reasoning)
	}
	switch {
	case t.left: // nobody knows how it would have gone on
		step("fail: {hang: true}")
	case t.broken:
		step("fail: {disconnect: now}")
	case t.cut:
		step("fail: {truncate: end}")
	case t.heard.stop != StopAuto:
		step("stop: %s", t.heard.stop)
	case len(t.heard.steps) == 0 && !t.heard.used:
		step("text: \"\"")
	}
}
