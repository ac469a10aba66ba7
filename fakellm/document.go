package fakellm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/yamlfile"
)

// Document is the syntax tree of a model script: its turns are split into steps, everything else is text. Code that
// changes or writes scripts uses a Document; a server runs a Script.
type Document struct {
	// Rest is the YAML of the top-level keys other than the turns.
	Rest string
	// Lead are the comments above the first turn.
	Lead  []string
	Turns []TurnNode
}

// TurnNode holds the model's replies after one prompt.
type TurnNode struct {
	// Mapping is true if the turn is written as a mapping with the key replies. Rest is then the YAML of its other
	// keys.
	Mapping bool
	Rest    string
	// Lead are the comments above the first reply.
	Lead    []string
	Replies []ReplyNode
}

// ReplyNode is the model's reply to one request.
type ReplyNode struct {
	// Raw is the YAML of a reply with alternatives; such a reply has no Steps. "" for any other reply.
	Raw   string
	Lead  []string
	Steps []StepNode
}

// StepNode is one step of a reply.
type StepNode struct {
	// Kind is the YAML key that determines the kind of step: "text", "tool", "gate", ….
	Kind string
	// Text is the step as a YAML mapping without indentation, including the comments below the step.
	Text string
	// Pieces are the chunks of a step that streams a text, thinking, a refusal or raw arguments.
	Pieces []string
}

// NewStep returns a step with the key kind, the YAML value of that key, and further lines of YAML.
func NewStep(kind, value string, more ...string) StepNode {
	return StepNode{Kind: kind, Text: strings.Join(append([]string{kind + ": " + value}, more...), "\n")}
}

// NewText returns a step of the kind text, thinking or refusal whose chunks are pieces.
func NewText(kind string, pieces ...string) StepNode {
	value := yamlfile.QuoteAll(pieces)
	if len(pieces) == 1 {
		value = quoted(pieces[0])
	}
	s := NewStep(kind, value)
	s.Pieces = pieces
	return s
}

// Says reports whether the step is a text, thinking or a refusal.
func (s StepNode) Says() bool { return s.Kind == "text" || s.Kind == "thinking" || s.Kind == "refusal" }

// NewScript returns a script with these turns, one for each prompt. The error is a *mistake.Mistake, with a position
// in the text that Document.Format writes.
func NewScript(turns ...TurnNode) (*Script, error) {
	d := Document{Turns: turns}
	return ParseScript("script", []byte(d.Format()), nil)
}

// NewTurn returns the turn of one prompt. The model sends the replies in order. After each reply with tool calls, the
// agent sends another request and gets the next reply.
func NewTurn(replies ...ReplyNode) TurnNode { return TurnNode{Replies: replies} }

// NewReply returns the reply to one model request.
func NewReply(steps ...StepNode) ReplyNode { return ReplyNode{Steps: steps} }

// Text returns a step that sends a text; each piece is a chunk of its own.
func Text(pieces ...string) StepNode { return NewText("text", pieces...) }

// CallTool returns a step that calls a tool: a neutral tool, such as write_file, or one of the agent's tools. If args
// cannot be encoded as JSON, the script becomes invalid.
func CallTool(name string, args map[string]any) StepNode {
	raw, err := json.Marshal(args)
	if err != nil {
		raw = yamlfile.Quote(nil, err.Error())
	}
	return NewStep("tool", quoted(name), "args: "+string(raw))
}

// HoldAt returns a step that holds the stream until Server.Release is called with
// the gate's name.
func HoldAt(gate string) StepNode { return NewStep("gate", quoted(gate)) }

// Format returns the script as YAML. A script with one turn is written in the short form, with replies at the top
// level.
func (d *Document) Format() string {
	var w blockWriter
	if d.Rest != "" {
		w.b.WriteString(d.Rest + "\n")
	}
	switch {
	case len(d.Turns) == 0:
		w.b.WriteString("replies: []\n")
	case len(d.Turns) == 1 && !d.Turns[0].Mapping:
		w.b.WriteString("replies:\n")
		w.replies(d.Turns[0], 2)
	default:
		w.b.WriteString("turns:\n")
		w.lines(2, d.Lead...)
		for _, t := range d.Turns {
			w.turn(t)
		}
	}
	return w.b.String()
}

// Unprompted removes the prompt texts from the turns. Only a server without registered prompts needs the texts, to
// match requests to turns.
func (d *Document) Unprompted() {
	for i := range d.Turns {
		d.Turns[i].Mapping, d.Turns[i].Rest = false, ""
	}
}

// blockWriter writes lists in block style. The first line of an item follows its dash on the same line.
type blockWriter struct {
	b     strings.Builder
	begun int // width of the current line if it contains only dashes so far, else 0
}

// dash begins a list item, indented by depth columns.
func (w *blockWriter) dash(depth int) {
	w.b.WriteString(strings.Repeat(" ", depth-w.begun) + "- ")
	w.begun = depth + 2
}

// lines writes lines, indented by depth columns.
func (w *blockWriter) lines(depth int, lines ...string) {
	for _, l := range lines {
		if l != "" {
			w.b.WriteString(strings.Repeat(" ", depth-w.begun) + l)
		}
		w.b.WriteByte('\n')
		w.begun = 0
	}
}

func (w *blockWriter) turn(t TurnNode) {
	w.dash(2)
	switch {
	case t.Mapping:
		if t.Rest != "" {
			w.lines(4, strings.Split(t.Rest, "\n")...)
		}
		w.lines(4, "replies:")
		w.replies(t, 6)
	case len(t.Replies) == 0:
		w.lines(4, "[]")
	default:
		w.replies(t, 4)
	}
}

func (w *blockWriter) replies(t TurnNode, depth int) {
	w.lines(depth, t.Lead...)
	for _, r := range t.Replies {
		w.dash(depth)
		switch {
		case r.Raw != "":
			w.lines(depth+2, strings.Split(r.Raw, "\n")...)
		case len(r.Steps) == 0:
			w.lines(depth+2, "[]")
		default:
			w.lines(depth+2, r.Lead...)
			w.steps(r.Steps, depth+2)
		}
	}
}

func (w *blockWriter) steps(steps []StepNode, depth int) {
	for _, s := range steps {
		w.dash(depth)
		w.lines(depth+2, strings.Split(s.Text, "\n")...)
	}
}

// Place is a position in a turn, before a piece of a step. All indices count from 0. If Step is the number of steps,
// the place is the end of the reply.
type Place struct{ Reply, Step, Piece int }

// String returns the place as reply.step.piece. Reply and step are counted from 1, the piece from 0.
func (p Place) String() string { return fmt.Sprintf("%d.%d.%d", p.Reply+1, p.Step+1, p.Piece) }

// Places returns all places at which the turn's stream can be held, in order.
func (t TurnNode) Places() []Place {
	var out []Place
	for r, reply := range t.Replies {
		if reply.Raw == "" {
			out = reply.places(out, r)
		}
	}
	return out
}

func (r ReplyNode) places(out []Place, at int) []Place {
	end := len(r.Steps)
	for i, s := range r.Steps {
		switch {
		case s.Says():
			for p := range s.Pieces {
				out = append(out, Place{at, i, p})
			}
		case s.Kind == "tool":
			out = append(out, Place{at, i, 0})
		case s.Kind == "usage" || s.Kind == "stop":
			end = min(end, i)
		case s.Kind == "fail":
			return out // nothing follows in the turn
		}
	}
	return append(out, Place{at, end, 0})
}

// With returns the turn with an extra step inserted at a place.
func (t TurnNode) With(at Place, extra StepNode) TurnNode {
	t.Replies = slices.Clone(t.Replies)
	r := &t.Replies[at.Reply]
	steps := slices.Clone(r.Steps[:min(at.Step, len(r.Steps))])
	rest := r.Steps[len(steps):]
	if at.Piece > 0 {
		s := rest[0]
		steps, rest = append(steps, NewText(s.Kind, s.Pieces[:at.Piece]...)),
			append([]StepNode{NewText(s.Kind, s.Pieces[at.Piece:]...)}, rest[1:]...)
	}
	r.Steps = append(append(steps, extra), rest...)
	return t
}

// CutAt returns the turn cut off at a place, with the step last as its final step.
func (t TurnNode) CutAt(at Place, last StepNode) TurnNode {
	t = t.With(at, last)
	t.Replies = t.Replies[:at.Reply+1]
	r := &t.Replies[at.Reply]
	end := at.Step
	if at.Piece > 0 {
		end++
	}
	r.Steps = r.Steps[:min(end, len(r.Steps)-1)+1]
	return t
}

// Paced returns the turn with a delay before each further chunk of its replies.
func (t TurnNode) Paced(each time.Duration) TurnNode {
	t.Replies = slices.Clone(t.Replies)
	for i, r := range t.Replies {
		if r.Raw == "" {
			delay := NewStep("delay", fmt.Sprintf("{per_chunk: %v}", each))
			t.Replies[i].Steps = slices.Concat(r.Steps, []StepNode{delay})
		}
	}
	return t
}

// Without returns a copy of the turn without the steps of the given kinds.
func (t TurnNode) Without(kinds ...string) TurnNode {
	t.Replies = slices.Clone(t.Replies)
	for i := range t.Replies {
		t.Replies[i].Steps = slices.DeleteFunc(slices.Clone(t.Replies[i].Steps),
			func(s StepNode) bool { return slices.Contains(kinds, s.Kind) })
	}
	return t
}
