package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// holds reads the anonymous memory of a process, in bytes, and counts its descriptors.
func holds(pid int) (memory, descriptors int, ok bool) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, 0, false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(status) {
		if amount, found := bytes.CutPrefix(line, []byte("RssAnon:")); found {
			kilobytes, err := strconv.Atoi(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(amount), []byte("kB")))))
			return kilobytes << 10, len(open), err == nil
		}
	}
	return 0, len(open), err == nil
}
