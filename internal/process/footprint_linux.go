package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
)

// holds returns the anonymous memory of a process, in bytes, and the number of
// its descriptors.
func holds(pid int) (memory, descriptors int, ok bool) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, 0, false
	}
	anonymous, has := statusOf(pid, "RssAnon")
	if !has { // an ending process has no memory
		return 0, len(open), true
	}
	memory, err = strconv.Atoi(strings.TrimSuffix(anonymous, " kB"))
	return memory << 10, len(open), err == nil
}

var stalled = lazy.Regexp(`(?m)^some .*total=(\d+)`)

// Starved returns how long, since the system began, some runnable process waited
// for a processor. It is always 0 if the kernel does not report that; see its
// documentation of pressure stall information.
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
