package process

import (
	"os"
	"strconv"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
)

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
