package scenarios

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"

	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
)

// effects logs what changed in the workspace while a turn ran, as soon as that has ended. The
// script goes on when that is done, so that what it writes is not taken for the agent's.
type effects struct {
	looking sync.Mutex // guards last; no observer takes it
	last    workspace.Snapshot

	mu    sync.Mutex
	done  *sync.Cond
	ended int          // turns that are still to be looked at
	open  map[int]bool // prompts without an end, by Seq
	// others: somebody else than the agent changed files while a turn was open.
	others bool
}

// wait waits until each turn that has ended has been looked at.
func (x *effects) wait() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.ended > 0 {
		x.done.Wait()
	}
}

// changes is what an entry of kind transcript.Changed says.
type changes struct {
	// Turn is the Seq of the prompt, 0 if somebody else may have changed files too. Root is the
	// directory of the paths. Cut says why not all was looked at.
	Turn  int       `json:"turn"`
	Root  string    `json:"root"`
	Files []changed `json:"files"`
	Cut   string    `json:"cut,omitempty"`
}

type changed struct {
	Path string `json:"path"`
	What string `json:"what"` // new file, changed, deleted
	Is   string `json:"is,omitempty"`
	Text string `json:"text,omitempty"` // of a small file
	Mode string `json:"mode,omitempty"` // whether it can be executed, if that changed
}

// keptText is how many bytes of a file's text an entry holds.
const keptText = 4 << 10

// turns follows the turns of a run. It is an observer of the transcript.
func (r *run) turns(e transcript.Entry) {
	x := &r.effects
	x.mu.Lock()
	defer x.mu.Unlock()
	switch p := r.engine.Protocol; {
	case e.Kind == transcript.Exited:
		clear(x.open)
	case p.Prompts(e):
		x.open[e.Seq] = true
	case x.open[e.Ref]:
		if _, over := p.TurnEnd(e); over {
			delete(x.open, e.Ref)
			x.ended++
			go r.lookAtTurn(e.Conn, e.Session, e.Ref)
		}
	}
}

// lookAtTurn logs what changed until a turn ended. What the agent asked the editor to write is
// written first: an agent may end its turn without waiting for the answer.
func (r *run) lookAtTurn(conn int, session string, prompt int) {
	x := &r.effects
	ctx, cancel := context.WithTimeout(context.Background(), r.engine.StepTimeout)
	defer cancel()
	r.client.Settle(ctx)
	x.looking.Lock()
	defer x.looking.Unlock()
	x.mu.Lock()
	if x.others {
		prompt = 0
	}
	x.others = x.others && len(x.open) > 0
	x.mu.Unlock()
	r.logChanges(ctx, conn, session, prompt)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended--
	x.done.Broadcast()
}

// logChanges logs what changed since the last look; x.looking is held.
func (r *run) logChanges(ctx context.Context, conn int, session string, prompt int) {
	before, now := r.effects.last, r.look(ctx)
	r.effects.last = now
	said := changes{Turn: prompt, Root: r.box.Work, Files: []changed{}}
	for _, c := range before.Changes(now) {
		f := changed{Path: filepath.ToSlash(c.Path), What: c.What, Is: c.Is, Mode: c.Mode}
		if len(c.After) <= keptText && !workspace.Private(f.Path) && workspace.Sum([]byte(c.After)) == c.Is {
			f.Text = c.After
		}
		said.Files = append(said.Files, f)
	}
	if said.Cut = cmp.Or(before.Cut, now.Cut); len(said.Files) > 0 || prompt > 0 || said.Cut != "" {
		r.t.Event(conn, transcript.Note, transcript.Changed, session, said)
	}
}

// changedByOthers logs what somebody else than the agent may have changed.
func (r *run) changedByOthers(ctx context.Context) {
	x := &r.effects
	x.looking.Lock()
	defer x.looking.Unlock()
	x.mu.Lock()
	x.others = len(x.open) > 0
	x.mu.Unlock()
	if r.Agent() != nil {
		r.logChanges(ctx, r.connection(), "", 0)
	} else {
		x.last = r.look(ctx)
	}
}
