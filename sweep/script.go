package sweep

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"golang.org/x/tools/txtar"
)

// Script is a scenario to sweep. Planner.Base returns it.
type Script struct {
	ID string
	Archive
	// Spoken is the model's script.
	Spoken *fakellm.Document
	// Turns lists the turns that can be swept. Reached lists those that the
	// baseline run reached, with what the run showed.
	Turns   []Turn
	Reached []Observed

	*Planner
	commands map[string]*scenarios.Command
	// instead is the text of the replacement scenario; nil if the scenario itself
	// is swept.
	instead []byte
}

// Turn is one turn of a Script.
type Turn struct {
	Line int // index of the prompt in Lines
	Nth  int // index of the turn in the model's script, from 0
	// Session is the name of the turn's session. Opened means that an earlier line
	// opens it.
	Session string
	Opened  bool
	Text    script.Word
	Rest    []script.Word // words after the text, such as attachments
}

// Observed is a turn with the facts from its baseline run.
type Observed struct {
	Script *Script
	Seen   *Seen
}

// read parses a scenario and finds the turns that can be swept. notes explain
// why others cannot.
func (p *Planner) read(commands map[string]*scenarios.Command, id string, text []byte) (s *Script, notes []string) {
	s = &Script{ID: id, Planner: p, commands: commands, Archive: Split(text)}
	s.Lines = slices.DeleteFunc(s.Lines, func(l *script.Line) bool { return l.Is("protocol") }) // Head adds this line
	s.Lines = waiting(s.Lines)
	s.Spoken = ReadModel(s.Model)
	return s, p.Turns(s)
}

// waiting replaces each "needs await" by "await". The baseline shows whether
// the entry comes; if it does, schedules require it.
func waiting(lines []*script.Line) []*script.Line {
	lines = slices.Clone(lines)
	for i, l := range lines {
		if l.Says("needs", "await") {
			waits := *l
			waits.Name, waits.Words = l.Words[0], l.Words[1:]
			lines[i] = &waits
		}
	}
	return lines
}

// Head returns the first lines of a scenario that is generated from the Script:
// the protocol and the title.
func (s *Script) Head(title string) (lines []*script.Line) {
	if s.Protocol != "" {
		lines = append(lines, script.New("protocol %s", s.Protocol))
	}
	if title != "" {
		lines = append(lines, script.NewComment(title))
	}
	return lines
}

// Command returns the command of a line. It returns nil for a line that is not
// a command.
func (s *Script) Command(l *script.Line) *scenarios.Command {
	if l.Kind != script.Command {
		return nil
	}
	return s.commands[l.Name.Raw()]
}

// Looks reports whether a line only checks something and does not change the
// run.
func (s *Script) Looks(l *script.Line) bool {
	c := s.Command(l)
	return l.Kind != script.Command || l.Negated || c != nil && c.Looks()
}

// Says reports whether one of the scenario's prompts has this text.
func (s *Script) Says(text script.Word) bool {
	return slices.ContainsFunc(s.Lines, func(l *script.Line) bool {
		return l.Is(s.Prompt) && slices.ContainsFunc(l.Words, func(w script.Word) bool { return w.String() == text.String() })
	})
}

// Silent reports whether the model cannot be held at any place in its n-th
// turn.
func (s *Script) Silent(nth int) bool {
	turns := s.Spoken.Turns
	return nth >= len(turns) || turns[nth].Mapping || len(Plain(turns[nth]).Places()) == 0
}

// Changes reports whether a line of the script may change a file itself.
func (s *Script) Changes(file string) bool {
	return slices.ContainsFunc(s.Lines, func(l *script.Line) bool {
		return (l.Is("write") || l.Is("exec")) && strings.Contains(l.String(), path.Base(file))
	})
}

// Unswept returns a note that a part of the script is not swept, with the
// reason.
func (s *Script) Unswept(l *script.Line, what, why string) string {
	return fmt.Sprintf("%s: the %s line %d is not swept: %s", s.ID, what, l.Number, why)
}

// Archive is a scenario that is split into its parts, so that a sweep can
// rewrite it. The results are scenario files that anyone can read, run and
// change.
type Archive struct {
	Lines []*script.Line
	Model string // content of llm.yaml; "" if there is none
	Files []script.ArchiveFile
}

// Split parses a scenario into its parts.
func Split(text []byte) Archive {
	f, _ := script.Parse("", text)
	out := Archive{Lines: f.Lines}
	for len(out.Lines) > 0 && out.Lines[len(out.Lines)-1].Kind == script.Blank {
		out.Lines = out.Lines[:len(out.Lines)-1]
	}
	for _, part := range f.Files {
		if part.Name == "llm.yaml" {
			out.Model = string(part.Data)
		} else {
			out.Files = append(out.Files, part)
		}
	}
	return out
}

// Text formats the scenario as a file.
func (a Archive) Text() []byte {
	f := &script.File{Lines: a.Lines, Files: a.Files}
	if a.Model != "" {
		model := script.ArchiveFile{File: txtar.File{Name: "llm.yaml", Data: []byte(a.Model)}}
		f.Files = append([]script.ArchiveFile{model}, a.Files...)
	}
	return script.Format(f)
}

// Holds reports whether the archive contains a file of the workspace.
func (a Archive) Holds(name string) bool {
	return slices.ContainsFunc(a.Files, func(f script.ArchiveFile) bool { return f.Name == name })
}

// ReadModel parses llm.yaml. It drops blank lines and the comments above first
// items. It keeps an invalid script unchanged.
func ReadModel(src string) *fakellm.Document {
	d, err := fakellm.ParseDocument("llm.yaml", []byte(src))
	if err != nil {
		return &fakellm.Document{Rest: src}
	}
	d.Lead = nil
	for i := range d.Turns {
		d.Turns[i].Lead = nil
		for j := range d.Turns[i].Replies {
			r := &d.Turns[i].Replies[j]
			r.Lead = nil
			for k := range r.Steps {
				r.Steps[k].Text = withoutBlank(r.Steps[k].Text)
			}
		}
	}
	return d
}

func withoutBlank(text string) string {
	kept := lists.Where(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) != "" })
	return strings.Join(kept, "\n")
}

// Hold is the name of the gate at which the model waits in a schedule.
const Hold = "hold"

// Says returns a turn of the model with one reply, which is the text.
func Says(text string) fakellm.TurnNode { return fakellm.NewTurn(fakellm.NewReply(fakellm.Text(text))) }

// Gate returns a step at which the model waits.
func Gate(name string) fakellm.StepNode { return fakellm.NewStep("gate", name) }

// Plain returns a turn without gates, pauses and delays.
func Plain(t fakellm.TurnNode) fakellm.TurnNode { return t.Without("gate", "pause", "delay") }

// after returns the first place of a turn at which the steps of this kind have
// sent the given number of bytes of text. It returns nil if there is no such
// place.
func after(t fakellm.TurnNode, kind string, bytes int) *fakellm.Place {
	all, total := t.Places(), 0
	for r, rep := range t.Replies {
		for s, st := range rep.Steps {
			if st.Kind != kind {
				continue
			}
			for p, piece := range st.Pieces {
				if total += len(piece); total < bytes {
					continue
				}
				i := slices.Index(all, fakellm.Place{Reply: r, Step: s, Piece: p})
				if i < 0 || i+1 >= len(all) {
					return nil
				}
				return &all[i+1]
			}
		}
	}
	return nil
}
