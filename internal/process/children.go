package process

import (
	"os/exec"
	"sync"
)

// family is the set of processes that this process started itself. Its other
// children are orphans whose parent died, for example a keeper that its agent
// killed.
type family struct {
	mu      sync.Mutex
	known   map[int]bool
	adopted bool // orphans become this process's children
}

// children is the only family of this process.
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

// StartChild starts a command by calling start. The command is a child of this
// process that does not count as an orphan until EndChild.
func StartChild(cmd *exec.Cmd, start func() error) error { return children.start(cmd, start) }

// EndChild marks a command as waited for.
func EndChild(cmd *exec.Cmd) { children.end(cmd) }

// AdoptOrphans makes orphans among the descendants of this process its children,
// so that KillOrphans finds them. It is for a program that starts all its
// children with StartChild. It does nothing on systems other than Linux.
func AdoptOrphans() { children.adopt() }

// KillOrphans kills the orphans that became children of this process, with all
// their descendants. It returns the processes that it could not kill.
func KillOrphans() []Info {
	if !children.adopts() {
		return nil
	}
	return killOrphans()
}
