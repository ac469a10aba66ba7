package sweep

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Script is a scenario that is swept. It is a Base.
type Script struct {
	ID string
	Archive
	// Spoken is the model's script.
	Spoken *fakellm.Document
	// Turns are those into which an editor can be made to act, Reached those of them that
	// the baseline got to, as they were there.
	Turns   []Turn
	Reached []Observed

	*Planner
	commands map[string]*scenarios.Command
	// instead is the replacement scenario; nil if the scenario itself is swept.
	instead []byte
}

// Turn is one turn of a Script.
type Turn struct {
	Line int // of its prompt, in Lines
	Nth  int // which of the model's turns it is, from 0
	// Session is the name of its session, Opened says that a line before opens that.
	Session string
	Opened  bool
	Text    script.Word
	Rest    []script.Word // behind the text: attachments
}

// Observed is a turn and its baseline run.
type Observed struct {
	Script *Script
	Seen   *Seen
}

// read takes a scenario apart and finds the turns that can be swept.
func (p *Planner) read(commands map[string]*scenarios.Command, id string, text []byte) (s *Script, notes []string) {
	s = &Script{ID: id, Planner: p, commands: commands, Archive: Split(text)}
	s.Lines = slices.DeleteFunc(s.Lines, func(l *script.Line) bool { return l.Is("protocol") }) // Head says it
	s.Lines = waiting(s.Lines)
	s.Spoken = ReadModel(s.Model)
	return s, p.Turns(s)
}

// waiting are the lines of a scenario in which what it needs to come is waited for: a
// baseline shows that it comes, but in a schedule it has to have come.
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

// Head are the first lines of a scenario that is made of the Script.
func (s *Script) Head(title string) (lines []*script.Line) {
	if s.Protocol != "" {
		lines = append(lines, script.New("protocol %s", s.Protocol))
	}
	if title != "" {
		lines = append(lines, script.NewComment(title))
	}
	return lines
}

// Command returns the command of a line, nil if it has none.
func (s *Script) Command(l *script.Line) *scenarios.Command {
	if l.Kind != script.Command {
		return nil
	}
	return s.commands[l.Name.Raw()]
}

// Looks reports whether a line leaves the run as it is.
func (s *Script) Looks(l *script.Line) bool {
	c := s.Command(l)
	return l.Kind != script.Command || l.Negated || c != nil && c.Looks()
}

// Says reports whether a prompt of the scenario has this text.
func (s *Script) Says(text script.Word) bool {
	return slices.ContainsFunc(s.Lines, func(l *script.Line) bool {
		return l.Is(s.Prompt) && slices.ContainsFunc(l.Words, func(w script.Word) bool { return w.String() == text.String() })
	})
}

// Silent reports whether the model says nothing in a turn that can be held up.
func (s *Script) Silent(nth int) bool {
	turns := s.Spoken.Turns
	return nth >= len(turns) || turns[nth].Mapping || len(Plain(turns[nth]).Places()) == 0
}

// Changes reports whether a line of the script itself changes a file.
func (s *Script) Changes(file string) bool {
	return slices.ContainsFunc(s.Lines, func(l *script.Line) bool {
		return (l.Is("write") || l.Is("exec")) && strings.Contains(l.String(), path.Base(file))
	})
}

// Unswept is the note that something of the script is not swept.
func (s *Script) Unswept(l *script.Line, what, why string) string {
	return fmt.Sprintf("%s: the %s line %d is not swept: %s", s.ID, what, l.Number, why)
}
