package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
)

// holds reads the anonymous memory of a process, in bytes, and counts its descriptors.
func holds(pid int) (memory, descriptors int, ok bool) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, 0, false
	}
	anonymous, has := statusOf(pid, "RssAnon")
	if !has { // a process that ends has no memory
		return 0, len(open), true
	}
	memory, err = strconv.Atoi(strings.TrimSuffix(anonymous, " kB"))
	return memory << 10, len(open), err == nil
}

var stalled = lazy.Regexp(`(?m)^some .*total=(\d+)`)

// Starved is how long, since the system began, some process that could have run waited
// for a processor. It is always 0 where the kernel does not tell; see its
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
