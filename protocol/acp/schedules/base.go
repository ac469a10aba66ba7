package schedules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// base is a scenario that is swept.
type base struct {
	id       string
	second   bool // it is of version 2
	commands map[string]*scenarios.Command
	sweep.Archive
	spoken *fakellm.Document
	// instead is what is swept where the scenario as it is leaves turns out; nil is the
	// scenario.
	instead []byte
	// targets are the turns into which an editor can be made to act.
	targets []target
	// reached are the targets that the baseline got to, as they were there.
	reached []observed
}

// observed is a turn and what the baseline showed of it.
type observed struct {
	target target
	seen   seen
}

// target is one turn of a base.
type target struct {
	line   int // of its prompt, in base.Lines
	turn   int // which prompt of the script it is, from 0
	text   script.Word
	rest   []script.Word // what stands behind the text: attachments
	main   string        // the session's name
	opened bool          // a line before opens the session
}

// readBase takes a scenario apart and finds the turns that can be swept. If its script
// acts in some, it is swept as it is without that.
func readBase(second bool, commands map[string]*scenarios.Command, id string, text []byte) (b *base, notes []string) {
	b, notes = readTurns(second, commands, id, text)
	if len(notes) == 0 && len(b.targets) > 0 {
		return b, nil
	}
	instead := b.natural().Text()
	if other, rest := readTurns(second, commands, id, instead); len(other.targets) > len(b.targets) {
		other.instead = instead
		return other, rest
	}
	return b, notes
}

// readTurns finds the turns that can be swept: those before which all others have
// ended, and into which the script itself does not act.
func readTurns(second bool, commands map[string]*scenarios.Command, id string, text []byte) (b *base, notes []string) {
	b = &base{id: id, second: second, commands: commands, Archive: sweep.Split(text)}
	b.Lines = slices.DeleteFunc(b.Lines, func(l *script.Line) bool { return l.Is("protocol") }) // head says it
	b.Lines = sweep.Waiting(b.Lines)
	b.spoken = sweep.ReadModel(b.Model)
	open, prompts := 0, 0
	session, opened := "main", false
	unswept := func(l *script.Line, what, why string) {
		notes = append(notes, fmt.Sprintf("%s: the %s line %d is not swept: %s", id, what, l.Number, why))
	}
	for i, l := range b.Lines {
		if b.looks(l) {
			continue
		}
		switch name := command(l); {
		case name == "both" || name == "group" && open == 0:
			unswept(l, "script after", "it does two things at once")
			return b, notes
		case name == "beside":
			unswept(l, "script after", "it starts a second process beside the first")
			return b, notes
		case opensSession(l) != "":
			session, opened = opensSession(l), true
		case l.Says("session", "list"):
		case slices.Contains([]string{"session", "kill", "close-stdin", "signal", "send", "request", "cancel-tool",
			"cancel-terminal"}, name):
			return b, notes // what follows is about an end
		case name == "prompt":
			t, ok := b.target(i, prompts, session, opened)
			prompts++
			switch {
			case open > 0:
				unswept(l, "turn on", "another one runs")
			case !b.last(t):
				unswept(l, "turn on", "another session was opened after its own")
			case !ok:
				unswept(l, "turn on", b.stands(t))
			default:
				b.targets = append(b.targets, t)
			}
			open++
			opened = true
		default:
			for l := range (&script.File{Lines: b.Lines[i : i+1]}).All() {
				if l.Says("await", "turn") {
					open = max(open-1, 0)
				}
			}
		}
	}
	return b, notes
}

// inBlocks reports whether blocks stand in place of the prompt's text: said again with
// another text, it would be the same prompt for the model.
func (t target) inBlocks() bool {
	return slices.ContainsFunc(t.rest, func(w script.Word) bool {
		key, _, _, ok := w.Cut("=")
		return ok && key == "blocks"
	})
}

// target reads the prompt on a line, and reports whether the script leaves its
// turn alone.
func (b *base) target(line, number int, session string, opened bool) (target, bool) {
	t := target{line: line, turn: number, main: session, opened: opened}
	w := b.Lines[line].Words
	if len(w) > 1 && !strings.HasPrefix(w[0].String(), "'") && !strings.Contains(w[1].Raw(), "=") {
		t.main, w = w[0].Raw(), w[1:]
	}
	if len(w) == 0 {
		return t, false
	}
	t.text, t.rest = w[0], w[1:]
	if number >= len(b.spoken.Turns) || b.spoken.Turns[number].Mapping ||
		len(plain(b.spoken.Turns[number]).Places()) == 0 {
		return t, false
	}
	for _, l := range b.Lines[line+1:] {
		switch {
		case b.looks(l):
		case l.Says("await", "turn"):
			return t, true
		case l.Is("await"), l.Is("release"):
		default:
			return t, false
		}
	}
	return t, false
}

// stands is what stands against sweeping a turn.
func (b *base) stands(t target) string {
	turns := b.spoken.Turns
	if t.turn >= len(turns) || turns[t.turn].Mapping || len(plain(turns[t.turn]).Places()) == 0 {
		return "its model says nothing that can be held up"
	}
	return "the script acts in it"
}

// head are the first lines of a scenario that is made of it.
func (b *base) head(title string) []*script.Line {
	lines := []*script.Line{script.NewComment(title)}
	if b.second {
		lines = append([]*script.Line{script.New("protocol acp-v2")}, lines...)
	}
	return lines
}

// before are the lines that lead up to a target, without those that judge and
// without sessions that nobody has spoken in: the target's has to be the one
// opened last, so that no line need name it.
func (b *base) before(t target) []*script.Line {
	return slices.DeleteFunc(slices.Clone(b.Lines[:t.line]), func(l *script.Line) bool {
		other := l.Says("session", "new") && opensSession(l) != t.main && !b.spokenIn(opensSession(l), t.line)
		return other || b.looks(l) && !b.prepares(l)
	})
}

// prepares reports whether a line is a command that stands before the first prompt: it
// asks for nothing of the agent, but makes what the turns need.
func (b *base) prepares(l *script.Line) bool {
	first := slices.IndexFunc(b.Lines, func(l *script.Line) bool { return l.Is("prompt") })
	return l.Is("exec") && slices.Contains(b.Lines[:max(first, 0)], l)
}

// spokenIn reports whether a prompt before a line names a session.
func (b *base) spokenIn(session string, line int) bool {
	return slices.ContainsFunc(b.Lines[:line], func(l *script.Line) bool {
		return len(l.Words) > 1 && l.Says("prompt", session)
	})
}

// last reports whether the session of a target is the one opened last before
// it, of those that matter.
func (b *base) last(t target) bool {
	name := t.main
	for _, l := range b.before(t) {
		name = cmp.Or(opensSession(l), name)
	}
	return name == t.main
}
