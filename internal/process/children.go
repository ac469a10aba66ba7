package process

import (
	"os/exec"
	"sync"
)

// children are the processes that this one started itself. All others that are its
// children were left to it by somebody who died: by a keeper that its agent killed.
var children struct {
	mu      sync.Mutex
	known   map[int]bool
	adopted bool // orphans become ours
}

// StartChild starts a command, by the function that does so, as a child of this
// process that is not an orphan until EndChild.
func StartChild(cmd *exec.Cmd, start func() error) error {
	children.mu.Lock()
	defer children.mu.Unlock()
	if err := start(); err != nil {
		return err
	}
	if children.known == nil {
		children.known = map[int]bool{}
	}
	children.known[cmd.Process.Pid] = true
	return nil
}

// EndChild says that a command has been waited for.
func EndChild(cmd *exec.Cmd) {
	children.mu.Lock()
	defer children.mu.Unlock()
	delete(children.known, cmd.Process.Pid)
}

// AdoptOrphans makes orphans among the descendants of this process its children, so
// that KillOrphans finds them. It is for a program all of whose children are started
// with StartChild. It does nothing on other systems than Linux.
func AdoptOrphans() {
	if subreaper && becomeSubreaper() == nil {
		children.mu.Lock()
		defer children.mu.Unlock()
		children.adopted = true
	}
}

// KillOrphans kills what others left to this process, with all that descends from
// it, and returns what it could not kill.
func KillOrphans() []Info {
	children.mu.Lock()
	adopted := children.adopted
	children.mu.Unlock()
	if !adopted {
		return nil
	}
	return killOrphans()
}
