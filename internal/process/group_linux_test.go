package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A group holds what is started in it, whatever that starts, until all of it is killed.
func TestGroup(t *testing.T) {
	g := newGroup(os.Getpid())
	if g == nil {
		t.Skip("no control group can be made here")
	}
	defer g.remove()
	c := exec.Command("sh", "-c", "setsid sleep 1000 & echo begun; exec sleep 1000")
	c.SysProcAttr = &syscall.SysProcAttr{}
	g.holds(c.SysProcAttr)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip("no process may be started in a group here: ", err)
	}
	begun := make([]byte, len("begun\n"))
	if _, err := out.Read(begun); err != nil {
		t.Fatal(err)
	}
	members := func() int {
		text, err := os.ReadFile(filepath.Join(g.dir.Name(), "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	if n := members(); n != 2 {
		t.Errorf("%d processes are in the group, want 2", n)
	}
	again := openGroup(os.Getpid()) // as the harness does of a keeper that was killed
	again.killAll()
	if err := c.Wait(); err == nil {
		t.Error("the process was not killed")
	}
	again.remove()
	if _, err := os.Stat(g.dir.Name()); !os.IsNotExist(err) {
		t.Errorf("the group is left: %s", g.dir.Name())
	}
}
