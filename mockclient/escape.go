package mockclient

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// encoded returns a message as the editor writes it. JSON has several ways to write a character.
func (e *Editor) encoded(message []byte) []byte {
	if !e.opts.Escape {
		return message
	}
	out := make([]byte, 0, 2*len(message))
	for i := 0; i < len(message); {
		r, size := utf8.DecodeRune(message[i:])
		switch {
		case r == '\\' && i+1 < len(message): // an escape stays as it is
			size = 2
			out = append(out, message[i:i+size]...)
		case r == '/':
			out = append(out, '\\', '/')
		case r >= utf8.RuneSelf && r <= 0xFFFF:
			out = fmt.Appendf(out, `\u%04x`, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = append(out, byte(r))
		}
		i += size
	}
	return out
}
