package process

import (
	"os/exec"
	"sync"
)

// family contains the child processes that this process started. All other children of this process are orphans,
// whose parent has died: for example, an agent that has killed its keeper.
type family struct {
	mu      sync.Mutex
	known   map[int]bool
	adopted bool // orphans become children of this process
}

// children is the family of this process.
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

// StartChild starts a command by calling start. It registers the command's process, so that KillOrphans does not take
// it for an orphan until EndChild is called.
func StartChild(cmd *exec.Cmd, start func() error) error { return children.start(cmd, start) }

// EndChild ends the registration of a command. Call it after waiting for the command.
func EndChild(cmd *exec.Cmd) { children.end(cmd) }

// AdoptOrphans makes orphans among the descendants of this process its children, so that KillOrphans finds them. Only
// a program that starts all its children with StartChild may call it. On systems other than Linux, it does nothing.
func AdoptOrphans() { children.adopt() }

// KillOrphans kills the orphans that became children of this process, with all their descendants. It returns the
// processes that it could not kill, and nothing unless AdoptOrphans was called.
func KillOrphans() []Info {
	if !children.adopts() {
		return nil
	}
	return killOrphans()
}
