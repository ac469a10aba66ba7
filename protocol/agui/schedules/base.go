package schedules

import (
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
	commands map[string]*scenarios.Command
	sweep.Archive
	spoken *fakellm.Document
	// targets are the runs into which a front end can be made to act, reached those that
	// the baseline got to, as they were there.
	targets []target
	reached []observed
}

// observed is a run and what the baseline showed of it.
type observed struct {
	target target
	seen   seen
}

// target is one run of a base.
type target struct {
	line   int           // in base.Lines
	turn   int           // which of the model's turns it is, from 0
	thread string        // its name
	opened bool          // a line before has begun the thread
	words  []script.Word // of the line, without the thread
}

// readBase takes a scenario apart and finds the runs that can be swept: those before which
// all others have ended, and into which the script itself does not act.
func readBase(commands map[string]*scenarios.Command, id string, text []byte) (b *base, notes []string) {
	b = &base{id: id, commands: commands, Archive: sweep.Split(text)}
	b.Lines = slices.DeleteFunc(b.Lines, func(l *script.Line) bool { return l.Is("protocol") }) // head says it
	b.Lines = sweep.Waiting(b.Lines)
	b.spoken = sweep.ReadModel(b.Model)
	open, turns, begun := 0, 0, map[string]bool{}
	for i, l := range b.Lines {
		switch {
		case sweep.Looks(commands, l):
		case l.Is("both"), l.Is("beside"):
			return b, append(notes, fmt.Sprintf("%s: the script after line %d is not swept: it does two things at once", id,
				l.Number))
		case l.Is("kill"), l.Is("signal"), l.Is("post"):
			return b, notes // what follows is about an end, or about no run
		case l.Is("thread"):
			begun[l.Words[0].Raw()] = true
		case l.Is("run"):
			t := target{line: i, turn: turns, thread: "main", words: l.Words}
			if len(l.Words) > 0 && begun[l.Words[0].Raw()] && !l.Words[0].Quoted {
				t.thread, t.words = l.Words[0].Raw(), l.Words[1:]
			}
			t.opened = begun[t.thread]
			begun[t.thread] = true
			if !t.speaks() {
				open++
				continue // it goes on with the turn of the model before
			}
			turns++
			if why := b.stands(t, open); why != "" {
				notes = append(notes, fmt.Sprintf("%s: the run on line %d is not swept: %s", id, l.Number, why))
			} else {
				b.targets = append(b.targets, t)
			}
			open++
		case l.Is("resume"):
			open++
		default:
			for l := range (&script.File{Lines: b.Lines[i : i+1]}).All() {
				if ends(l) {
					open = max(open-1, 0)
				}
			}
		}
	}
	return b, notes
}

// speaks reports whether the run has a text of the user, by which the model's turn is found.
func (t target) speaks() bool {
	return len(t.words) > 0 && (t.words[0].Quoted || strings.HasPrefix(t.words[0].Raw(), "@"))
}

// ended are the patterns of the end of a run.
var ended = []string{"turn", "finished", "error", "interrupt", "cancelled", "refused", "no-stream", "truncated",
	"hung-up", "unreachable"}

// ends reports whether a line waits for the end of a run.
func ends(l *script.Line) bool {
	return l.Is("await") && len(l.Words) > 0 && slices.Contains(ended, l.Words[0].Raw())
}

// stands is what stands against sweeping a run, "" if nothing does.
func (b *base) stands(t target, open int) string {
	switch {
	case open > 0:
		return "another one goes on"
	case t.turn >= len(b.spoken.Turns), b.spoken.Turns[t.turn].Mapping,
		len(sweep.Plain(b.spoken.Turns[t.turn]).Places()) == 0:
		return "its model says nothing that can be held up"
	}
	for _, l := range b.Lines[t.line+1:] {
		switch {
		case sweep.Looks(b.commands, l), l.Is("release"):
		case ends(l):
			return ""
		case l.Is("await"):
		case l.Is("group") && !slices.ContainsFunc(l.Blocks[0], func(l *script.Line) bool { return !l.Is("await") }):
			if slices.ContainsFunc(l.Blocks[0], ends) {
				return ""
			}
		default:
			return "the script acts in it"
		}
	}
	return "the script does not wait for its end"
}

// before are the lines that lead up to a target, without those that judge.
func (b *base) before(t target) []*script.Line {
	return slices.DeleteFunc(slices.Clone(b.Lines[:t.line]), func(l *script.Line) bool {
		return sweep.Looks(b.commands, l)
	})
}

// says reports whether a run of the scenario has this text.
func (b *base) says(text string) bool {
	return slices.ContainsFunc(b.Lines, func(l *script.Line) bool {
		return l.Is("run") && slices.ContainsFunc(l.Words, func(w script.Word) bool { return w.String() == text })
	})
}
