//go:build unix

package confined

import (
	"io/fs"
	"syscall"
)

const nonblock = syscall.O_NONBLOCK

// Links returns the number of hard links to a file, or 1 if the number is unknown.
func Links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}
