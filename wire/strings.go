package wire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain returns the bytes between the quotes of a string without escapes. ok is
// false for any other value.
func (v Value) Plain() (inner []byte, ok bool) {
	if v.Kind() != String {
		return nil, false
	}
	n := v.node()
	if n.is(flagEscaped) {
		return nil, false
	}
	return v.d.raw[n.start+1 : n.end-1 : n.end-1], true
}

// Str returns a decoded string, or "" for any other value. JSON allows half of
// a surrogate pair, but UTF-8 does not, so it becomes U+FFFD; see
// LoneSurrogate.
func (v Value) Str() string {
	if inner, ok := v.Plain(); ok {
		return string(inner)
	}
	return string(v.AppendStr(nil))
}

// again is like Str, for a value that is often the same in successive texts. In
// that case it returns the same string without allocating.
func (v Value) again() string {
	inner, ok := v.Plain()
	if !ok {
		return v.Str()
	}
	if string(inner) != v.d.method {
		v.d.method = string(inner)
	}
	return v.d.method
}

// AppendStr appends the result of Str to dst.
func (v Value) AppendStr(dst []byte) []byte {
	if v.Kind() != String {
		return dst
	}
	n := v.node()
	rest := v.d.raw[n.start+1 : n.end-1]
	for {
		next := bytes.IndexByte(rest, '\\')
		if next < 0 {
			return append(dst, rest...)
		}
		dst = append(dst, rest[:next]...)
		var r rune
		r, rest, _ = unescape(rest[next:])
		dst = utf8.AppendRune(dst, r)
	}
}

// Is reports whether the value is a string equal to s. It does not allocate.
func (v Value) Is(s string) bool {
	if v.Kind() != String {
		return false
	}
	n := v.node()
	if !n.is(flagEscaped) {
		return int(n.end-n.start)-2 == len(s) && string(v.d.raw[n.start+1:n.end-1]) == s
	}
	rest := v.d.raw[n.start+1 : n.end-1]
	var buf [utf8.UTFMax]byte
	for len(rest) > 0 {
		var r rune
		part := rest[:1]
		if rest[0] == '\\' {
			r, rest, _ = unescape(rest)
			part = utf8.AppendRune(buf[:0], r)
		} else {
			rest = rest[1:]
		}
		if len(s) < len(part) || s[:len(part)] != string(part) {
			return false
		}
		s = s[len(part):]
	}
	return s == ""
}

// LoneSurrogate reports whether the value contains a string or key with a \u
// escape that is only half of a surrogate pair. Such a text is valid JSON but
// not a Unicode string: peers replace the character or fail.
func (v Value) LoneSurrogate() bool {
	if v.d == nil || !v.d.lone {
		return false
	}
	for _, n := range v.d.nodes[v.i:v.node().next] {
		if n.kind() == String && n.is(flagLone) {
			return true
		}
	}
	return false
}

// unescape decodes the escape at the start of valid. A surrogate that is not
// part of a pair becomes U+FFFD, and lone is then true.
func unescape(valid []byte) (r rune, rest []byte, lone bool) {
	switch valid[1] {
	case 'b':
		r = '\b'
	case 'f':
		r = '\f'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 't':
		r = '\t'
	case 'u':
		r, rest = hex4(valid[2:]), valid[6:]
		if !utf16.IsSurrogate(r) {
			return r, rest, false
		}
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(rest[2:])); pair != utf8.RuneError {
				return pair, rest[6:], false
			}
		}
		return utf8.RuneError, rest, true
	default: // a quote, backslash or slash
		r = rune(valid[1])
	}
	return r, valid[2:], false
}

// hex4 returns the value of the four hexadecimal digits of a \u escape, or -1
// if they are invalid.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// AppendString appends s to dst as a JSON string literal. It escapes only what
// JSON requires; invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// Quote returns s as a JSON string literal.
func Quote(s string) string { return string(AppendString(nil, s)) }

// Clip returns a text of at most n bytes unchanged. It cuts a longer text to n
// bytes, or fewer so that no character is split, and appends an ellipsis.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
