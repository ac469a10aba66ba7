package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// group is a control group (version 2) in which an agent is started. The kernel can kill all processes of a group at
// once, even those that are being forked. A *group is nil if no group can be created, as in most containers; its
// methods then do nothing. An agent that runs as root can leave the group, so the keeper also looks for processes
// outside of it.
type group struct {
	dir  *os.File
	kill *os.File
}

// newGroup creates the group of a keeper. It returns nil if that is not possible.
func newGroup(keeper int) *group {
	path := groupPath(keeper)
	if path == "" || os.Mkdir(path, 0o755) != nil {
		return nil
	}
	g := openGroup(keeper)
	if g == nil {
		_ = os.Remove(path)
	}
	return g
}

// openGroup opens the group that a keeper has created, or returns nil if there is none.
func openGroup(keeper int) *group {
	path := groupPath(keeper)
	if path == "" {
		return nil
	}
	kill, err := os.OpenFile(filepath.Join(path, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		kill.Close()
		return nil
	}
	return &group{dir: dir, kill: kill}
}

// groupPath returns the path of a keeper's group, which is below the group of this process. It returns "" if control
// groups of version 2 are not available.
func groupPath(keeper int) string {
	var own string
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = path
		}
	}
	text, _ = os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		below, err := filepath.Rel(fields[3], own) // path below the mounted part of the tree
		if err == nil && own != "" && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below, fmt.Sprint("acp-test-", keeper))
		}
	}
	return ""
}

// holds sets attr so that it starts a process in the group.
func (g *group) holds(attr *syscall.SysProcAttr) {
	if g != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(g.dir.Fd())
	}
}

func (g *group) killAll() {
	if g != nil {
		_, _ = g.kill.WriteString("1")
	}
}

// remove removes the group as soon as its killed processes are gone. It gives up after five seconds.
func (g *group) remove() {
	if g == nil {
		return
	}
	for range 1000 {
		if err := os.Remove(g.dir.Name()); err == nil || os.IsNotExist(err) {
			break
		}
		time.Sleep(5 * time.Millisecond) // the kernel sends no event, so poll
	}
	g.dir.Close()
	g.kill.Close()
}
