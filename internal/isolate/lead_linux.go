package isolate

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tellFile is the file descriptor over which the first process of an agent's namespace reports to the keeper. It
// writes two lines: the agent's pid as the agent sees it, and later the agent's wait status, as wait4 returns it.
const tellFile = 3

// lead runs in the first process of a process namespace. It starts the agent, reports the agent's end, and exits when
// no process of the agent is left. If lead's process is killed, the kernel kills all processes of the namespace. The
// agent's processes can neither kill nor stop it.
func lead(path string, args []string) error {
	syscall.CloseOnExec(tellFile)
	tell := os.NewFile(tellFile, "keeper")
	signal.Notify(make(chan os.Signal, 1))                               // a caught signal has no effect
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // the agent must not trace this process
		return err
	}
	agent, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// Close the agent's pipes, because this process must not keep them open after the agent has ended.
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup2(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	fmt.Fprintln(tell, agent)
	for {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil: // ECHILD: no process is left
			return nil
		case pid == agent:
			fmt.Fprintln(tell, uint32(status))
		}
	}
}

// Inside converts a pid in a namespace to the pid on this machine. first is the pid, on this machine, of the
// namespace's first process; the process to find must be a child of it. Inside returns 0 if the process is gone.
func Inside(first, pid int) int {
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range all {
		text, _ := os.ReadFile(path) // empty if the process is gone
		here, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		_, parent, _ := strings.Cut(string(text), "\nPPid:\t")
		_, ids, found := strings.Cut(parent, "\nNSpid:")
		ids, _, _ = strings.Cut(ids, "\n")
		if found && strings.HasPrefix(parent, fmt.Sprintln(first)) && strings.HasSuffix("\t"+ids, fmt.Sprint("\t", pid)) {
			return here
		}
	}
	return 0
}
