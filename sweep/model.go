package sweep

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/wire"
)

// model is the model's part of a scenario, in pieces that can be put together
// anew.
type model struct {
	rest  string // what stands beside the turns: lanes, models
	turns []turn
}

// turn is what the model says after one prompt, reply by reply.
type turn struct {
	replies []reply
	// raw is a turn in a form that is kept as it is: it gets no gates.
	raw string
}

// reply is a list of steps, each the text of one YAML mapping.
type reply struct {
	steps []step
	raw   string // as of turn
}

// step is one step. Its pieces are the chunks it is sent in.
type step struct {
	kind   string
	text   string
	pieces []string // of a text, thinking or refusal
}

// place is a point of a turn of the model: before a piece of a step. A step
// past the last is the end of the reply.
type place struct{ reply, step, piece int }

var topKey = regexp.MustCompile(`^([a-z_]+):(.*)$`)

// readModel takes llm.yaml apart. Scripts it cannot take apart are kept.
func readModel(src string) model {
	var m model
	var rest, body []string
	key := ""
	for line := range strings.Lines(src) {
		line = strings.TrimRight(line, "\n")
		if k := topKey.FindStringSubmatch(line); k != nil {
			if key = k[1]; key == "replies" || key == "turns" {
				continue // what stands on the line itself is at most an empty list
			}
		}
		if key == "replies" || key == "turns" {
			body = append(body, line)
		} else {
			rest = append(rest, line)
		}
	}
	m.rest = strings.Join(rest, "\n")
	if one := !strings.Contains("\n"+src, "\nturns:"); one {
		if t := readTurn(body); len(t.replies) > 0 || t.raw != "" {
			m.turns = []turn{t}
		}
		return m
	}
	for _, item := range items(body) {
		m.turns = append(m.turns, readTurn(item))
	}
	return m
}

func readTurn(lines []string) turn {
	if !isList(lines) {
		return turn{raw: strings.Join(lines, "\n")}
	}
	var t turn
	for _, item := range items(lines) {
		if !isList(item) {
			t.replies = append(t.replies, reply{raw: strings.Join(item, "\n")})
			continue
		}
		var r reply
		for _, s := range items(item) {
			r.steps = append(r.steps, readStep(s))
		}
		t.replies = append(t.replies, r)
	}
	return t
}

func isList(lines []string) bool {
	for _, l := range lines {
		if s := strings.TrimSpace(l); s != "" && !strings.HasPrefix(s, "#") {
			return s == "-" || strings.HasPrefix(s, "- ")
		}
	}
	return false
}

// items takes the items of a block list apart and moves each to the left.
func items(lines []string) [][]string {
	var out [][]string
	depth := -1
	for _, l := range lines {
		trimmed := strings.TrimLeft(l, " ")
		if trimmed == "" || strings.HasPrefix(trimmed, "#") && len(out) == 0 {
			continue
		}
		indent := len(l) - len(trimmed)
		if depth < 0 {
			depth = indent
		}
		if indent == depth && (trimmed == "-" || strings.HasPrefix(trimmed, "- ")) {
			rest := strings.TrimLeft(trimmed[1:], " ")
			out = append(out, []string{strings.Repeat(" ", len(l)-len(rest)) + rest})
			continue
		}
		if len(out) > 0 {
			out[len(out)-1] = append(out[len(out)-1], l)
		}
	}
	for i, item := range out {
		least := 1 << 20
		for _, l := range item {
			if t := strings.TrimLeft(l, " "); t != "" {
				least = min(least, len(l)-len(t))
			}
		}
		for j, l := range item {
			out[i][j] = l[min(least, len(l)):]
		}
	}
	return out
}

func readStep(lines []string) step {
	s := step{text: strings.TrimRight(strings.Join(lines, "\n"), "\n")}
	for _, l := range lines {
		if k := topKey.FindStringSubmatch(l); k != nil {
			switch k[1] {
			case "text", "thinking", "refusal", "tool", "gate", "pause", "delay", "usage", "stop", "fail", "when", "must":
				s.kind = k[1]
			}
		}
		if s.kind != "" {
			break
		}
	}
	if s.kind == "text" || s.kind == "thinking" || s.kind == "refusal" {
		parsed, err := fakellm.ParseScript("", []byte("replies:\n"+indent([]step{s}, 2)), nil)
		if err == nil && len(parsed.Turns) == 1 && len(parsed.Turns[0].Replies) == 1 && len(parsed.Turns[0].Replies[0].Steps) == 1 {
			s.pieces = parsed.Turns[0].Replies[0].Steps[0].Chunks
		}
	}
	return s
}

// said is a step of text in pieces.
func said(kind string, pieces ...string) step {
	s := step{kind: kind, pieces: pieces}
	if len(pieces) == 1 {
		s.text = kind + ": " + string(wire.AppendString(nil, pieces[0]))
		return s
	}
	var b strings.Builder
	for i, p := range pieces {
		if i > 0 {
			b.WriteString(", ")
		}
		b.Write(wire.AppendString(nil, p))
	}
	s.text = kind + ": [" + b.String() + "]"
	return s
}

func gate(name string) step { return step{kind: "gate", text: "gate: " + name} }

// indent writes the steps of one reply as an item of a list.
func indent(steps []step, depth int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", depth)
	first := pad + "- - "
	if len(steps) == 0 {
		return pad + "- []\n"
	}
	for _, s := range steps {
		for i, l := range strings.Split(s.text, "\n") {
			if i == 0 {
				b.WriteString(first + l + "\n")
			} else {
				b.WriteString(pad + "    " + l + "\n")
			}
		}
		first = pad + "  - "
	}
	return b.String()
}

// text writes the model's part: short if it is one turn.
func (m model) text() string {
	var b strings.Builder
	if m.rest != "" {
		b.WriteString(m.rest + "\n")
	}
	if len(m.turns) == 0 {
		return b.String() + "replies: []\n"
	}
	if len(m.turns) == 1 && m.turns[0].raw == "" {
		b.WriteString("replies:\n")
		for _, r := range m.turns[0].replies {
			b.WriteString(r.text(2))
		}
		return b.String()
	}
	b.WriteString("turns:\n")
	for _, t := range m.turns {
		b.WriteString(t.text())
	}
	return b.String()
}

func (r reply) text(depth int) string {
	if r.raw == "" {
		return indent(r.steps, depth)
	}
	return item(r.raw, depth)
}

func (t turn) text() string {
	if t.raw != "" {
		return item(t.raw, 2)
	}
	if len(t.replies) == 0 {
		return "  - []\n"
	}
	var b strings.Builder
	for _, r := range t.replies {
		b.WriteString(r.text(4))
	}
	s := b.String()
	return "  - " + s[4:]
}

func item(raw string, depth int) string {
	pad := strings.Repeat(" ", depth)
	out := ""
	for i, l := range strings.Split(raw, "\n") {
		mark := "  "
		if i == 0 {
			mark = "- "
		}
		out += pad + mark + l + "\n"
	}
	return out
}

// plain is the turn without gates and pauses of its own.
func (t turn) plain() turn {
	out := turn{raw: t.raw}
	for _, r := range t.replies {
		c := reply{raw: r.raw}
		for _, s := range r.steps {
			if s.kind != "gate" && s.kind != "pause" && s.kind != "delay" {
				c.steps = append(c.steps, s)
			}
		}
		out.replies = append(out.replies, c)
	}
	return out
}

// places are all places at which the turn can be held, in order.
func (t turn) places() []place {
	var out []place
	for r, rep := range t.replies {
		if rep.raw != "" {
			continue
		}
		end := len(rep.steps)
		for i, s := range rep.steps {
			switch s.kind {
			case "text", "thinking", "refusal":
				for p := range s.pieces {
					out = append(out, place{r, i, p})
				}
			case "tool":
				out = append(out, place{r, i, 0})
			case "usage", "stop":
				end = min(end, i)
			case "fail":
				end = -1
			}
			if end < 0 {
				break
			}
		}
		if end >= 0 {
			out = append(out, place{r, end, 0})
		}
	}
	return out
}

// with is the turn with a step put in at a place.
func (t turn) with(at place, extra step) turn {
	out := turn{raw: t.raw}
	for r, rep := range t.replies {
		if r != at.reply {
			out.replies = append(out.replies, rep)
			continue
		}
		var steps []step
		for i, s := range rep.steps {
			switch {
			case i != at.step:
				steps = append(steps, s)
			case at.piece == 0:
				steps = append(steps, extra, s)
			default:
				steps = append(steps, said(s.kind, s.pieces[:at.piece]...), extra, said(s.kind, s.pieces[at.piece:]...))
			}
		}
		if at.step >= len(rep.steps) {
			steps = append(steps, extra)
		}
		out.replies = append(out.replies, reply{steps: steps})
	}
	return out
}

// cutAt is the turn up to a place, where the step given ends it.
func (t turn) cutAt(at place, last step) turn {
	w := t.with(at, last)
	steps := w.replies[at.reply].steps
	for i, s := range steps {
		if s.text == last.text {
			w.replies[at.reply].steps = steps[:i+1]
			break
		}
	}
	w.replies = w.replies[:at.reply+1]
	return w
}

func (p place) String() string { return fmt.Sprintf("%d.%d.%d", p.reply+1, p.step+1, p.piece) }
