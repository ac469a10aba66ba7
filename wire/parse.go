package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

const (
	maxText  = 512 << 20 // maximum size of a text in bytes, so that offsets and counts fit into a node
	maxDepth = 10_000    // maximum nesting depth of arrays and objects
	maxNodes = 16 << 20  // maximum number of values and keys, so that a short text needs no huge table

	idleNodes = 64 << 10 // a larger table is freed when a text needs much less
)

// SyntaxError says why a text is not JSON, and where.
type SyntaxError struct {
	Offset int    // number of bytes before the error
	Msg    string // for example "invalid character 'x' where a value should begin"
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset) }

// Doc is a parsed JSON text. It is a flat table with one node for each value
// and each key, in the order of the text. It may be reused for any number of
// texts, one after the other. Several goroutines may read it as long as none
// calls Parse.
type Doc struct {
	raw   []byte
	nodes []node
	lone  bool // at least one string has a lone surrogate

	method string // the latest method; see again
}

// node is one value or key. The nodes of a container's content follow the
// container. next is the index after the whole value. While a container is
// still open, next is the index of the enclosing container, so that the parser
// needs no stack.
type node struct {
	start, end uint32
	next       uint32
	info       uint32 // three bits kind, then flags or, for containers, the count
}

const (
	kindBits    = 3
	flagEscaped = 1 << kindBits       // String: contains a backslash
	flagLone    = 1 << (kindBits + 1) // String: contains a lone surrogate
	flagInteger = 1 << (kindBits + 2) // Number: without fraction and exponent
	oneMore     = 1 << kindBits       // Array, Object: increment of the count
)

func (n *node) kind() Kind          { return Kind(n.info & (1<<kindBits - 1)) }
func (n *node) is(flag uint32) bool { return n.info&flag != 0 }
func (n *node) count() uint32       { return n.info >> kindBits }

// Parse parses one JSON text into a new Doc.
func Parse(raw []byte) (Value, error) {
	d := &Doc{nodes: make([]node, 0, min(len(raw)/12+4, 1024))}
	err := d.Parse(raw)
	return d.Root(), err
}

// Root returns the value of the last parsed text, or Missing if that text was
// invalid.
func (d *Doc) Root() Value {
	if len(d.nodes) == 0 {
		return Value{}
	}
	return Value{d, 0}
}

// Parse parses raw as one JSON text, and forgets the previous text. White space
// around the JSON text is allowed. The Doc refers to raw until the next Parse.
// Parse rejects texts of more than 512 MiB, more than 16,777,216 values, or a
// nesting deeper than 10,000. Every error is a *SyntaxError.
func (d *Doc) Parse(raw []byte) error {
	if cap(d.nodes) > idleNodes && len(raw) < cap(d.nodes)/4 {
		d.nodes = nil
	}
	d.raw, d.nodes, d.lone = raw, d.nodes[:0], false
	if len(raw) > maxText {
		return &SyntaxError{maxText, "JSON text of more than 512 MiB"}
	}
	if err := d.parse(raw); err != nil {
		d.nodes = d.nodes[:0]
		return err
	}
	return nil
}

const outside = ^uint32(0) // the index that means "no container", used around the root

func (d *Doc) parse(raw []byte) *SyntaxError {
	var (
		nodes = d.nodes
		open  = outside // index of the innermost open container
		depth int
		i     int
		err   *SyntaxError
	)
	for {
		// A value begins here.
		if i = skipSpace(raw, i); i == len(raw) {
			return endsEarly(raw, open == outside)
		}
		at := len(nodes)
		if at >= maxNodes {
			return &SyntaxError{i, "more than 16,777,216 values"}
		}
		switch c := raw[i]; c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return &SyntaxError{i, "nesting deeper than 10,000"}
			}
			info, closer := uint32(Object), byte('}')
			if c == '[' {
				info, closer = uint32(Array), ']'
			}
			nodes = append(nodes, node{uint32(i), 0, open, info})
			if i = skipSpace(raw, i+1); i == len(raw) {
				return endsEarly(raw, false)
			}
			if raw[i] != closer {
				open = uint32(at)
				if c == '[' {
					continue
				}
				goto key
			}
			depth--
			i++
			nodes[at].end, nodes[at].next = uint32(i), uint32(at+1)
		default:
			var info uint32
			start := i
			if i, info, err = d.scanScalar(raw, i); err != nil {
				return err
			}
			nodes = append(nodes, node{uint32(start), uint32(i), uint32(at + 1), info})
		}

	after: // A value ends here.
		if i < len(raw) && raw[i] <= ' ' {
			i = skipSpace(raw, i)
		}
		if open == outside {
			if i < len(raw) {
				return unexpected(raw, i, "after the end of the JSON text")
			}
			d.nodes = nodes
			return nil
		}
		if i == len(raw) {
			return endsEarly(raw, false)
		}
		nodes[open].info += oneMore
		{
			object := nodes[open].kind() == Object
			switch raw[i] {
			case ',':
				i++
				if object {
					goto key
				}
				continue
			case closerOf(object):
				i++
				depth--
				around := nodes[open].next
				nodes[open].end, nodes[open].next = uint32(i), uint32(len(nodes))
				open = around
				goto after
			default:
				return unexpected(raw, i, neitherNor[object])
			}
		}

	key: // A key of an object begins here.
		var key node
		if i, key, err = d.scanKey(raw, i); err != nil {
			return err
		}
		key.next = uint32(len(nodes) + 1)
		nodes = append(nodes, key)
	}
}

// closerOf returns the byte that closes an object or, if object is false, an array.
func closerOf(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

// neitherNor has the messages for an unexpected byte after a value. The key is
// true for objects and false for arrays.
var neitherNor = map[bool]string{
	true:  "where ',' or '}' should follow in an object",
	false: "where ',' or ']' should follow in an array",
}

// scanKey checks a key and the following colon. It returns the index after
// them.
func (d *Doc) scanKey(raw []byte, i int) (int, node, *SyntaxError) {
	if i = skipSpace(raw, i); i == len(raw) {
		return i, node{}, endsEarly(raw, false)
	}
	if raw[i] != '"' {
		return i, node{}, unexpected(raw, i, "where a key in quotes should begin")
	}
	start := i
	i, info, err := d.scanString(raw, i)
	if err != nil {
		return i, node{}, err
	}
	key := node{uint32(start), uint32(i), 0, info}
	if i = skipSpace(raw, i); i == len(raw) {
		return i, node{}, endsEarly(raw, false)
	}
	if raw[i] != ':' {
		return i, node{}, unexpected(raw, i, "where ':' should follow a key")
	}
	return i + 1, key, nil
}

// scanScalar checks the value at raw[i], which is not an object or array. It
// returns the index after the value.
func (d *Doc) scanScalar(raw []byte, i int) (int, uint32, *SyntaxError) {
	switch c := raw[i]; {
	case c == '"':
		return d.scanString(raw, i)
	case c == '-' || '0' <= c && c <= '9':
		return scanNumber(raw, i)
	case c == 't':
		return scanWord(raw, i, "true", Bool)
	case c == 'f':
		return scanWord(raw, i, "false", Bool)
	case c == 'n':
		return scanWord(raw, i, "null", Null)
	}
	return i, 0, unexpected(raw, i, "where a value should begin")
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) {
		if c := raw[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return i
		}
		i++
	}
	return i
}

// scanString checks the string that begins at raw[i]. It returns the index
// after the closing quote.
func (d *Doc) scanString(raw []byte, i int) (int, uint32, *SyntaxError) {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	info := uint32(String)
	i++
	for {
		// Check eight bytes at a time, for as long as none of them is special. A
		// borrow in the subtractions can only mark bytes above a byte that is
		// correctly marked, so the lowest mark is exact.
		for i+8 <= len(raw) {
			x := binary.LittleEndian.Uint64(raw[i:])
			marks := (x | (x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones)) & high
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		if i >= len(raw) {
			return i, 0, &SyntaxError{len(raw), "JSON text ends inside a string"}
		}
		switch c := raw[i]; {
		case c == '"':
			return i + 1, info, nil
		case c == '\\':
			next, lone, err := scanEscape(raw, i)
			if err != nil {
				return i, 0, err
			}
			info |= flagEscaped
			if lone {
				info |= flagLone
				d.lone = true
			}
			i = next
		case c < ' ':
			return i, 0, &SyntaxError{i, fmt.Sprintf("control character %#02x unescaped in a string", c)}
		case c < utf8.RuneSelf:
			i++
		default:
			for i < len(raw) && raw[i] >= utf8.RuneSelf {
				_, size := utf8.DecodeRune(raw[i:])
				if size == 1 {
					return i, 0, &SyntaxError{i, "invalid UTF-8 in a string"}
				}
				i += size
			}
		}
	}
}

// scanEscape checks the escape at raw[i]. A surrogate pair counts as one
// escape.
func scanEscape(raw []byte, i int) (next int, lone bool, err *SyntaxError) {
	if i+1 >= len(raw) {
		return i, false, &SyntaxError{len(raw), "JSON text ends inside a string"}
	}
	switch raw[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, false, nil
	case 'u':
		if hex4(raw[i+2:]) < 0 {
			if len(raw) < i+6 {
				return i, false, &SyntaxError{len(raw), "JSON text ends inside a string"}
			}
			return i, false, &SyntaxError{i, "\\u without four hexadecimal digits in a string"}
		}
		_, rest, lone := unescape(raw[i:])
		return len(raw) - len(rest), lone, nil
	}
	return i, false, unexpected(raw, i+1, "in an escape of a string")
}

// scanWord checks that raw[i:] begins with word, which is a value of the given
// kind.
func scanWord(raw []byte, i int, word string, kind Kind) (int, uint32, *SyntaxError) {
	for j := 0; j < len(word); j++ {
		if i+j == len(raw) {
			return i, 0, endsEarly(raw, false)
		}
		if raw[i+j] != word[j] {
			return i, 0, unexpected(raw, i+j, "in the word "+word)
		}
	}
	return i + len(word), uint32(kind), nil
}

func scanNumber(raw []byte, i int) (int, uint32, *SyntaxError) {
	info := uint32(Number) | flagInteger
	if raw[i] == '-' {
		i++
	}
	if i < len(raw) && raw[i] == '0' {
		i++
	} else if next := skipDigits(raw, i); next > i {
		i = next
	} else {
		return i, 0, noDigit(raw, i)
	}
	if i < len(raw) && raw[i] == '.' {
		info &^= flagInteger
		next := skipDigits(raw, i+1)
		if next == i+1 {
			return i, 0, noDigit(raw, next)
		}
		i = next
	}
	if i < len(raw) && (raw[i] == 'e' || raw[i] == 'E') {
		info &^= flagInteger
		i++
		if i < len(raw) && (raw[i] == '+' || raw[i] == '-') {
			i++
		}
		next := skipDigits(raw, i)
		if next == i {
			return i, 0, noDigit(raw, i)
		}
		i = next
	}
	return i, info, nil
}

func skipDigits(raw []byte, i int) int {
	for i < len(raw) && '0' <= raw[i] && raw[i] <= '9' {
		i++
	}
	return i
}

func noDigit(raw []byte, i int) *SyntaxError {
	if i == len(raw) {
		return &SyntaxError{i, "JSON text ends inside a number"}
	}
	return unexpected(raw, i, "in a number, where a digit should be")
}

func endsEarly(raw []byte, empty bool) *SyntaxError {
	if empty {
		return &SyntaxError{len(raw), "no JSON value"}
	}
	return &SyntaxError{len(raw), "JSON text ends too early"}
}

func unexpected(raw []byte, i int, where string) *SyntaxError {
	r, size := utf8.DecodeRune(raw[i:])
	if r == utf8.RuneError && size <= 1 {
		return &SyntaxError{i, fmt.Sprintf("invalid UTF-8 byte %#02x %s", raw[i], where)}
	}
	return &SyntaxError{i, fmt.Sprintf("invalid character %q %s", r, where)}
}
