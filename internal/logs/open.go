package logs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"
)

// maxUnpacked bounds a log that is packed, in bytes.
const maxUnpacked = 1 << 30

// Open returns a file as text: it unpacks gzip, and reads UTF-16, which Windows writes, and
// a byte order mark. The text comes as it is read, but for UTF-16.
func Open(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	head, _ := b.Peek(3) // the error comes again with the first read
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("unpacking gzip: %w", err)
		}
		return Open(io.LimitReader(unpacked, maxUnpacked))
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return wide(b, binary.LittleEndian)
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return wide(b, binary.BigEndian)
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, _ = b.Discard(3)
	}
	return b, nil
}

// wide reads UTF-16.
func wide(in io.Reader, order binary.ByteOrder) (io.Reader, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxUnpacked))
	if err != nil {
		return nil, err
	}
	units := make([]uint16, 0, len(text)/2)
	for i := 2; i+1 < len(text); i += 2 { // the mark comes first
		units = append(units, order.Uint16(text[i:]))
	}
	return bytes.NewReader([]byte(string(utf16.Decode(units)))), nil
}
