package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
)

// holds returns the anonymous memory of a process, in bytes, and the number of its open file descriptors. ok is false
// if they are unknown.
func holds(pid int) (memory, descriptors int, ok bool) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, 0, false
	}
	anonymous, has := statusOf(pid, "RssAnon")
	if !has { // an exiting process has no memory
		return 0, len(open), true
	}
	memory, err = strconv.Atoi(strings.TrimSuffix(anonymous, " kB"))
	return memory << 10, len(open), err == nil
}

var stalled = lazy.Regexp(`(?m)^some .*total=(\d+)`)

// Starved returns the total time since the system started during which at least one runnable process waited for a
// processor. It returns 0 if the kernel does not report this time. The time comes from Linux's pressure stall
// information (PSI).
func Starved() time.Duration {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	m := stalled().FindSubmatch(text)
	if m == nil {
		return 0
	}
	micros, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return time.Duration(micros) * time.Microsecond
}
