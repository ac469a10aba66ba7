package process

import (
	"os/exec"
	"sync"
)

// children are the processes that this one started itself. All others that are its
// children were left to it by somebody who died: by a keeper that its agent killed.
var children = struct {
	sync.Mutex
	known   map[int]bool
	adopted bool // orphans become ours
}{known: map[int]bool{}}

// StartChild starts a command, by the function that does so, as a child of this
// process that is no orphan until EndChild.
func StartChild(cmd *exec.Cmd, start func() error) error {
	children.Lock()
	defer children.Unlock()
	err := start()
	if err == nil {
		children.known[cmd.Process.Pid] = true
	}
	return err
}

// EndChild says that a command has been waited for.
func EndChild(cmd *exec.Cmd) {
	children.Lock()
	defer children.Unlock()
	delete(children.known, cmd.Process.Pid)
}

// AdoptOrphans makes orphans among the descendants of this process its children, so
// that KillOrphans finds them. It is for a program all of whose children are started
// with StartChild. It does nothing on other systems than Linux.
func AdoptOrphans() {
	children.Lock()
	defer children.Unlock()
	children.adopted = subreaper && becomeSubreaper() == nil
}

// KillOrphans kills what others left to this process, with all that descends from
// it, and returns the processes that it could not kill.
func KillOrphans() []Info {
	children.Lock()
	adopted := children.adopted
	children.Unlock()
	if !adopted {
		return nil
	}
	return killOrphans()
}
