//go:build unix

package process

import (
	"bytes"
	"io"
	"os"
)

// trimFile removes the text after the last newline of a file. It ignores errors, because the program that could
// report them has died.
func trimFile(path string) {
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return
	}
	whole := int64(0)
	block := make([]byte, 1<<20)
	for at := end; at > 0 && whole == 0; {
		n := min(at, int64(len(block)))
		at -= n
		if _, err := f.ReadAt(block[:n], at); err != nil {
			return
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			whole = at + int64(i) + 1
		}
	}
	if whole < end {
		_ = f.Truncate(whole)
	}
}
