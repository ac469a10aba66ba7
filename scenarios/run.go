package scenarios

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// run is the state of one run of a scenario.
type run struct {
	engine   *Engine
	scenario *Scenario
	box      *workspace.Dirs
	files    *confined.Root // box.Root, opened before the agent ran
	t        *transcript.Transcript
	model    *fakellm.Server
	trap     *fakellm.Trap           // nil if connections to other machines are not blocked
	cutShort context.CancelCauseFunc // ends the script

	checker *rules.Checker
	judged  func() // waits until the checker has seen all entries
	told    func(e transcript.Entry, path string) (string, bool)
	client  Client
	state   state
	flood   flood
	effects effects
	folder  *evidence.Folder // nil if no artifacts are written
	below   string           // path of the scenarios within folder
	log     *evidence.File   // the transcript's file
	// launching is locked while an agent starts.
	launching sync.Mutex
	rendered  string
}

// Login returns the id of the login method in the profile, or "".
func (b *Branch) Login() string { return b.run.engine.Profile.Auth }

// Provided reports whether the editor tells the agent its model with providers/set.
func (b *Branch) Provided() bool { return b.run.engine.Profile.Providers }

// StartMode returns the mode that the editor sets in new sessions; "" keeps the agent's initial mode.
func (b *Branch) StartMode() string { return b.run.engine.startMode }

// Lacks returns the reason why the agent lacks a neutral tool, or an ability of such a tool. It returns "" if the
// agent has it.
func (b *Branch) Lacks(need string) string { return b.run.engine.Profile.Lacks(need) }

// Session is a conversation that the script opened.
type Session struct {
	// Name is the session's name in the script. ID is its id in the protocol.
	Name, ID string
	// Dir is the session's working directory.
	Dir string

	// coming returns the session's ID, or "" until the agent has sent it. coming is nil if the ID is already known.
	coming  func() string
	begin   int   // Seq from which the session's first await searches
	prompts []int // Seqs of its prompts; the lock of the run's state protects it
}

// NewSession returns a session that a line is about to open. Its first await searches from the branch's current
// position.
func (b *Branch) NewSession(name, dir string) *Session {
	return &Session{Name: name, Dir: dir, begin: b.At()}
}

// OpensBy records that a session will be open as soon as id returns its ID. Until then, id returns "".
func (b *Branch) OpensBy(c *Session, id func() string) {
	b.change(func(s *state) { c.coming, s.opening = id, append(s.opening, c) })
}

// checkState is a check with its misses so far.
type checkState struct {
	decl    *language.Check
	reached bool
	misses  []*Miss
}

// InWork returns the absolute path for a path in the script. A relative path is relative to the workspace.
func (r *run) InWork(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.box.Work, filepath.FromSlash(name))
}

// ReadFile reads a regular file; name is a path in the script. An error may be caused by the agent, which may have
// created the file.
func (r *run) ReadFile(ctx context.Context, name string) (data []byte, err error) {
	wait, cancel := r.StepTimeout(ctx, 0)
	defer cancel()
	err = r.find(name, func(root *confined.Root, name string) error {
		data, err = root.ReadFile(wait, name, confined.Limit)
		return err
	})
	return data, err
}

// lstat returns an error if a file of the workspace does not exist. It does not follow links.
func (r *run) lstat(name string) error {
	return r.find(name, func(root *confined.Root, name string) error {
		_, err := root.Lstat(name)
		return err
	})
}

// Path expands a word that is the path of a file or folder. A path outside the run's directories is a mistake of the
// scenario.
func (b *Branch) Path(l *Line, w script.Word) (string, error) {
	name, err := b.Expand(w)
	if err != nil {
		return "", l.Fault(err)
	}
	if err = b.find(name, func(*confined.Root, string) error { return nil }); err != nil {
		err = l.Fault(err)
	}
	return name, err
}

// find calls do with a path of the script, relative to root, the run's directory. It returns an error for a path
// outside that directory.
func (r *run) find(name string, do func(root *confined.Root, name string) error) error {
	rel, ok := r.files.Rel(r.InWork(name))
	if !ok {
		return fmt.Errorf("%s is outside of the run's directories: name a file below $WORK, $HOME or $TMP", name)
	}
	return do(r.files, rel)
}
