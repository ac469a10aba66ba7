package scenarios

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"

	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
)

// effects logs which files of the workspace changed during a turn, as soon as the turn has ended. The script waits for
// that log entry, so that its own writes are not attributed to the agent.
type effects struct {
	looking sync.Mutex // guards last; observers of the log never lock it
	last    workspace.Snapshot

	mu    sync.Mutex
	done  *sync.Cond
	ended int          // ended turns whose changes are not logged yet
	open  map[int]bool // Seqs of prompts whose turn has not ended
	// others is set if a program other than the agent changed files during a turn.
	others bool
}

// wait waits until the file changes of all ended turns are logged.
func (x *effects) wait() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.ended > 0 {
		x.done.Wait()
	}
}

// changes is the content of an entry of kind transcript.Changed.
type changes struct {
	// Turn is the Seq of the prompt. It is 0 if a program other than the agent may have changed files too. Paths are
	// relative to Root. Cut is the reason why some files were not compared, or "".
	Turn  int       `json:"turn"`
	Root  string    `json:"root"`
	Files []changed `json:"files"`
	Cut   string    `json:"cut,omitempty"`
}

type changed struct {
	Path string `json:"path"`
	What string `json:"what"` // "new file", "changed" or "deleted"
	Is   string `json:"is,omitempty"`
	Text string `json:"text,omitempty"` // the new content of a small file
	Mode string `json:"mode,omitempty"` // whether the file is executable, if that changed
}

// keptText is the size in bytes of the largest file whose text is logged.
const keptText = 4 << 10

// turns tracks the open turns of a run. It is called with each entry of the transcript.
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

// lookAtTurn logs the files that changed before the end of a turn. It first waits until the editor has written the
// files that the agent requested, because an agent may end its turn without waiting for the editor's response.
func (r *run) lookAtTurn(conn int, session string, prompt int) {
	x := &r.effects
	ctx, cancel := context.WithTimeout(context.Background(), r.engine.StepTimeout)
	defer cancel()
	r.client.Settle(ctx)
	x.looking.Lock()
	defer x.looking.Unlock()
	r.logServed(conn, session)
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

// logServed logs what the MCP servers did since the previous call. The caller must hold x.looking.
func (r *run) logServed(conn int, session string) {
	if w, ok := r.client.(Witness); ok {
		for _, did := range w.Served() {
			r.t.Event(conn, transcript.Note, transcript.Served, session, did)
		}
	}
}

// logChanges logs the files that changed since the previous call. The caller must hold x.looking.
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

// changedByOthers logs file changes that a program other than the agent may have made. If no agent runs, it logs
// nothing.
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
