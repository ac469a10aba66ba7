package process

import (
	"os/exec"
	"sync"
)

// family are the processes that this one started itself. All others that are its
// children were left to it by somebody who died: by a keeper that its agent killed.
type family struct {
	mu      sync.Mutex
	known   map[int]bool
	adopted bool // orphans become ours
}

// children are a fact about this process, of which there is one.
var children = &family{known: map[int]bool{}}

func (f *family) start(cmd *exec.Cmd, start func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := start()
	if err == nil {
		f.known[cmd.Process.Pid] = true
	}
	return err
}

func (f *family) end(cmd *exec.Cmd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, cmd.Process.Pid)
}

func (f *family) adopt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.adopted = subreaper && becomeSubreaper() == nil
}

func (f *family) adopts() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.adopted
}

// StartChild starts a command, by the function that does so, as a child of this
// process that is no orphan until EndChild.
func StartChild(cmd *exec.Cmd, start func() error) error { return children.start(cmd, start) }

// EndChild says that a command has been waited for.
func EndChild(cmd *exec.Cmd) { children.end(cmd) }

// AdoptOrphans makes orphans among the descendants of this process its children, so
// that KillOrphans finds them. It is for a program all of whose children are started
// with StartChild. It does nothing on other systems than Linux.
func AdoptOrphans() { children.adopt() }

// KillOrphans kills what others left to this process, with all that descends from
// it, and returns the processes that it could not kill.
func KillOrphans() []Info {
	if !children.adopts() {
		return nil
	}
	return killOrphans()
}
