package scenarios

import (
	"slices"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
)

// view is the position up to which one branch has read one session.
type view struct {
	cursor int   // Seq from which await searches
	ended  int   // Seq of the last turn end that await found
	over   []int // prompts whose turn end await has found
}

// Branch is a thread of control: the script, or one side of a "both". Lines that name no session use the branch's
// session.
type Branch struct {
	*run
	session *Session
	cursor  int // position while no session is open
	views   map[*Session]*view
	group   *group
	apart   bool // the branch is one side of a "both"
}

// view returns this branch's reading position in a session.
func (b *Branch) view(s *Session) *view {
	v := b.views[s]
	if v == nil {
		v = &view{cursor: s.begin}
		if b.views == nil {
			b.views = map[*Session]*view{}
		}
		b.views[s] = v
	}
	return v
}

// fork returns a branch for one side of a "both". It starts at the positions of b and then advances independently.
func (b *Branch) fork() *Branch {
	own := &Branch{run: b.run, session: b.Session(), cursor: b.cursor, views: map[*Session]*view{}, apart: true}
	for s, v := range b.views {
		own.views[s] = &view{v.cursor, v.ended, slices.Clone(v.over)}
	}
	return own
}

// join moves b forward to the positions that one side of a "both" has reached.
func (b *Branch) join(side *Branch) {
	b.cursor = max(b.cursor, side.cursor)
	for s, v := range side.views {
		mine := b.view(s)
		mine.cursor, mine.ended = max(mine.cursor, v.cursor), max(mine.ended, v.ended)
		mine.over = lists.With(mine.over, v.over...)
	}
}

// group is the state of a running group { }.
type group struct {
	taken map[int]bool
	ends  map[*Session]int // session -> the last entry that a line matched in it; the key nil means no session
}

// Session returns the session for lines that name none: the branch's own session, else the session opened last.
func (b *Branch) Session() *Session {
	if b.session != nil {
		return b.session
	}
	return b.lastSession(func(*Session) bool { return true })
}

// Speak sets the own session of a branch that is one side of a "both". The session opened last might belong to the
// other side.
func (b *Branch) Speak(s *Session) {
	if b.apart {
		b.session = s
	}
}

// At returns the branch's position: the Seq from which it searches.
func (b *Branch) At() int {
	if s := b.Session(); s != nil {
		return max(b.view(s).cursor, b.cursor)
	}
	return b.cursor
}

// Acted moves the branch's position forward to an entry that an act of the script logged.
func (b *Branch) Acted(s *Session, e transcript.Entry) {
	if e.Seq == 0 {
		return
	}
	b.run.Settle(e)
	if s != nil {
		v := b.view(s)
		v.cursor = max(v.cursor, e.Seq)
	} else {
		b.cursor = max(b.cursor, e.Seq)
	}
}

// reach moves the branch's position forward to an entry that await found, never backward.
func (b *Branch) reach(s *Session, e transcript.Entry) {
	if g := b.group; g != nil {
		b.run.Settle(e)
		g.taken[e.Seq] = true
		g.ends[s] = max(g.ends[s], e.Seq)
		return
	}
	b.Acted(s, e)
}
