package sweep

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Situation is an act at a point of a turn.
type Situation struct {
	Script *Script
	Seen   *Seen
	Point  Point
	Act    *Act
	// Probes has questions that the first run of the schedule raised. The script
	// asks them too, so that it fails for the same reason.
	Probes map[string]bool
}

// Builder writes the scenario of a Situation.
type Builder struct {
	Situation
	Lines []*script.Line
	// Keep is the set of lines that must stay when the scenario is shortened.
	// Without them it would be a different schedule.
	Keep map[string]bool
	// Turns lists the turns of the model's script.
	Turns []fakellm.TurnNode
	// Held means that the model waits at the gate Hold.
	Held  bool
	slugs map[string]int
}

// NewBuilder returns a Builder whose scenario has this title.
func NewBuilder(s Situation, title string) *Builder {
	b := &Builder{Situation: s, Keep: map[string]bool{}, slugs: map[string]int{}}
	b.Lines = s.Script.Head(title)
	b.Add("golden off")
	return b
}

func (b *Builder) built() *Builder { return b }

// Archive returns the scenario written so far, and the lines that must stay.
func (b *Builder) Archive() (Archive, map[string]bool) {
	a := Archive{Lines: b.Lines, Files: slices.Clone(b.Script.Files)}
	if with := b.Point.With; with != nil {
		for _, f := range with.Script.Files {
			if !a.Holds(f.Name) {
				a.Files = append(a.Files, f)
			}
		}
	}
	if len(b.Turns) > 0 {
		a.Model = (&fakellm.Document{Rest: b.Script.Spoken.Rest, Turns: b.Turns}).Format()
	}
	return a, b.Keep
}

// Add adds a line. template and args are as for script.New.
func (b *Builder) Add(template string, args ...any) {
	b.Lines = append(b.Lines, script.New(template, args...))
}

// Key adds a line that must stay when the scenario is shortened.
func (b *Builder) Key(template string, args ...any) {
	b.Add(template, args...)
	b.KeepLast()
}

// KeepLast records that the last line must stay when the scenario is shortened.
func (b *Builder) KeepLast() { b.Keep[b.last().String()] = true }

func (b *Builder) last() *script.Line { return b.Lines[len(b.Lines)-1] }

// Has reports whether this line was added already.
func (b *Builder) Has(line string) bool {
	return slices.ContainsFunc(b.Lines, func(l *script.Line) bool { return l.String() == line })
}

// Check opens a check for a requirement, which may be "". It adds a number to
// the slug if the slug is already used.
func (b *Builder) Check(requirement, slug string) {
	if other, ok := b.Script.Renamed[requirement]; ok {
		requirement = other
	}
	b.slugs[slug]++
	if n := b.slugs[slug]; n > 1 {
		slug = fmt.Sprintf("%s-%d", slug, n)
	}
	b.Add("check %s %s", Optional(requirement), slug)
}

// Optional converts a text to a word. It returns the zero Word for "".
func Optional(text string) script.Word {
	if text == "" {
		return script.Word{}
	}
	return script.Text(text)
}

// Prompt adds a prompt to a session, and the model's turn for that prompt.
func (b *Builder) Prompt(session string, text script.Word, rest []script.Word, as string, says fakellm.TurnNode) {
	b.Add(b.Script.Planner.Prompt+" %s %s %s", Optional(session), text, rest)
	b.last().As = Optional(as)
	b.Turns = append(b.Turns, says)
}

// post adds a prompt for the line "post TEXT says=TEXT gate=NAME in=SESSION as
// NAME" of a table of acts. Other options become options of the prompt. Without
// says=, the model sends the reply of the original turn.
func (b *Builder) post(l *script.Line) {
	options := map[string]string{}
	var rest []script.Word
	for _, w := range l.Words[1:] {
		key, _, value, _ := w.Cut("=")
		if options[key] = value.Raw(); !slices.Contains([]string{"says", "gate", "in"}, key) {
			rest = append(rest, w)
		}
	}
	says := Plain(b.Script.Spoken.Turns[b.Seen.Nth])
	if text := options["says"]; text != "" {
		says = Says(text)
	}
	if gate := options["gate"]; gate != "" {
		says = says.With(fakellm.Place{}, Gate(gate))
	}
	b.Prompt(options["in"], b.Own(l.Words[0].Raw()), rest, l.As.Raw(), says)
}

// Own returns a prompt text that does not yet occur in the scenario. The text
// must be unique, because the model finds its turns by their prompts.
func (b *Builder) Own(text string) script.Word {
	with := b.Point.With
	for {
		w := script.Quote(text)
		if !b.Script.Says(w) && (with == nil || !with.Script.Says(w)) {
			return w
		}
		text = "Now: " + text
	}
}

// Awaits adds await lines that must stay when the scenario is shortened. If
// grouped is true, the awaited entries may come in any order.
func (b *Builder) Awaits(lines []*script.Line, grouped bool) {
	for _, l := range lines {
		b.Keep[l.String()] = true
	}
	if grouped && len(lines) > 1 {
		b.Key("group {")
		b.last().With(lines...)
		return
	}
	b.Lines = append(b.Lines, lines...)
}

// Release adds a line that releases the model if it waits at the point's gate.
func (b *Builder) Release() {
	if b.Held {
		b.Add("release %s", Hold)
		b.Held = false
	}
}
