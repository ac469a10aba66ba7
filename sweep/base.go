package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// base is a scenario that is swept.
type base struct {
	id, path string
	archive
	spoken *fakellm.Document
	// targets are the turns into which an editor can be made to act.
	targets []target
	// reached are the targets that the baseline got to, as they were there.
	reached []observed
	// notes say which turns are not swept, and why.
	notes []string
}

// observed is a turn and what the baseline showed of it.
type observed struct {
	target target
	seen   seen
}

// target is one turn of a base.
type target struct {
	line   int // of its prompt, in base.lines
	turn   int // which prompt of the script it is, from 0
	text   string
	rest   string // what stands behind the text: attachments
	main   string // the session's name
	opened bool   // a line before opens the session
}

// readBase takes a scenario apart and finds the turns that can be swept: those
// before which all others have ended, and into which the script itself does
// not act.
func readBase(id, path string, text []byte) *base {
	b := &base{id: id, path: path, archive: split(text)}
	b.spoken = readModel(b.model)
	for i, l := range b.lines {
		// The baseline shows that it comes; a schedule has to wait for it, too.
		if rest, ok := strings.CutPrefix(strings.TrimSpace(l), "needs await "); ok {
			b.lines[i] = "await " + rest
		}
	}
	open, prompts := 0, 0
	session, opened := "main", false
	for i, l := range b.lines {
		w := words(l)
		if looks(l) {
			continue
		}
		switch {
		case w[0] == "both" || w[0] == "group" && open == 0 || w[0] == "}{":
			b.notes = append(b.notes, fmt.Sprintf("%s: the script after line %d is not swept: it does two things at once", id, i+1))
			return b
		case w[0] == "session" && len(w) > 2 && (w[1] == "new" || w[1] == "load" || w[1] == "resume"):
			session, opened = w[2], true
		case w[0] == "session" || w[0] == "kill" || w[0] == "close-stdin" || w[0] == "signal" || w[0] == "send" || w[0] == "request":
			if len(w) > 1 && w[0] == "session" && w[1] == "list" {
				continue
			}
			return b // what follows is about an end
		case w[0] == "prompt":
			t, ok := b.target(i, prompts, session, opened)
			prompts++
			switch {
			case open > 0:
				b.notes = append(b.notes, fmt.Sprintf("%s: the turn on line %d is not swept: another one runs", id, i+1))
			case !b.last(t):
				b.notes = append(b.notes, fmt.Sprintf("%s: the turn on line %d is not swept: another session was opened after its own", id, i+1))
			case !ok:
				b.notes = append(b.notes, fmt.Sprintf("%s: the turn on line %d is not swept: the script acts in it, or its model cannot be held", id, i+1))
			default:
				b.targets = append(b.targets, t)
			}
			open++
			opened = true
		case w[0] == "await" && len(w) > 1 && w[1] == "turn":
			open = max(open-1, 0)
		}
	}
	return b
}

// target reads the prompt on a line, and reports whether the script leaves its
// turn alone.
func (b *base) target(line, number int, session string, opened bool) (target, bool) {
	w := words(b.lines[line])
	t := target{line: line, turn: number, main: session, opened: opened}
	w = w[1:]
	if n := len(w); n > 2 && w[n-2] == "as" {
		w = w[:n-2]
	}
	if len(w) > 1 && !strings.HasPrefix(w[0], "'") && !strings.Contains(w[1], "=") {
		t.main, w = w[0], w[1:]
	}
	if len(w) == 0 {
		return t, false
	}
	t.text, t.rest = w[0], strings.Join(w[1:], " ")
	if number >= len(b.spoken.Turns) || b.spoken.Turns[number].Mapping || len(plain(b.spoken.Turns[number]).Places()) == 0 {
		return t, false
	}
	for _, l := range b.lines[line+1:] {
		c := words(l)
		switch {
		case looks(l):
		case c[0] == "await" && len(c) > 1 && c[1] == "turn":
			return t, true
		case c[0] == "await", c[0] == "release":
		default:
			return t, false
		}
	}
	return t, false
}

// before are the lines that lead up to a target, without those that judge and
// without sessions that nobody has spoken in: the target's has to be the one
// opened last, so that no line need name it.
func (b *base) before(t target) []string {
	var out []string
	for _, l := range b.lines[:t.line] {
		if w := words(l); len(w) > 2 && w[0] == "session" && w[1] == "new" && w[2] != t.main && !b.spokenIn(w[2], t.line) {
			continue
		}
		if !looks(l) && command(l) != "linger" {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}

// spokenIn reports whether a prompt before a line names a session.
func (b *base) spokenIn(session string, line int) bool {
	return slices.ContainsFunc(b.lines[:line], func(l string) bool {
		w := words(l)
		return len(w) > 2 && w[0] == "prompt" && w[1] == session
	})
}

// last reports whether the session of a target is the one opened last before
// it, of those that matter.
func (b *base) last(t target) bool {
	name := t.main
	for _, l := range b.before(t) {
		if w := words(l); len(w) > 2 && w[0] == "session" && (w[1] == "new" || w[1] == "load" || w[1] == "resume") {
			name = w[2]
		}
	}
	return name == t.main
}
