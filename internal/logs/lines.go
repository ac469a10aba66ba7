package logs

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/wire"
)

var (
	// escapes are the control sequences of terminals.
	escapes = lazy.Regexp("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")
	// tells is what a line that holds a message has: a member of one, or an object that is
	// cut off.
	tells = lazy.Regexp(`"(?:jsonrpc|method|sessionUpdate|threadId|runId)\\*"|\{$|\{\\?"[^{}]*$`)
	// lead is what stands before each line of a message over several lines.
	lead = lazy.Regexp(`^[ \t]*(?:data:|[>|#*]|//)?[ \t]*`)
)

// maxSpan bounds how many bytes are looked through for the ends of messages over several
// lines, in all.
const maxSpan = 256 << 20

// lines takes the messages in lines of text.
func (r *reader) lines(text string, p place) {
	if strings.IndexByte(text, 0x1b) >= 0 {
		text = escapes().ReplaceAllString(text, "")
	}
	list := strings.Split(text, "\n")
	said := "" // the line before, if it has no message
	for n := 0; n < len(list); {
		p.line = n + 1
		line := strings.TrimRight(list[n], "\r \t")
		if line == "" {
			n++
			continue
		}
		found, used := r.line(line, list[n:], said, p)
		n += used
		if said = ""; !found {
			said = line
			if r.log.Lines++; tells().MatchString(line) {
				r.leave(p.line, errors.New("it seems to hold a message, which is cut off or no JSON"))
			}
		}
	}
}

// line takes the messages in a line, which may go on in those after it. It returns how many
// lines they take.
func (r *reader) line(line string, rest []string, said string, p place) (found bool, used int) {
	before := 0 // the end of the message before
	used = 1
	for at := 0; ; {
		i := strings.IndexByte(line[at:], '{')
		if i < 0 {
			return found, used
		}
		at += i
		raw, length, err := object(line, at)
		if errors.Is(err, io.ErrUnexpectedEOF) && used == 1 {
			raw, used = r.span(line[at:], rest)
			length = len(line) - at
		}
		v, wrong := wire.Parse([]byte(raw))
		if errors.Is(err, io.ErrUnexpectedEOF) && wrong != nil {
			return found, used // objects within one that is cut off are no messages
		}
		if wrong == nil && r.value(v, r.near(line[before:at], said, p)) {
			found = true
			before = at + length
		}
		at += max(length, 1)
	}
}

// text takes the messages in a text that a member of an object holds.
func (r *reader) text(s string, p place) bool {
	n := len(r.log.Messages)
	for line := range strings.Lines(s) {
		r.line(strings.TrimRight(line, "\r\n"), []string{line}, "", p)
	}
	if len(r.log.Messages) == n { // it may be one message over several lines
		if v, err := wire.Parse([]byte(s)); err == nil {
			return r.value(v, p)
		}
	}
	return len(r.log.Messages) > n
}

// near reads the time and the sender in the text before a message, or in the line before it.
func (r *reader) near(text, said string, p place) place {
	if c := claimOf(text); c.side != Unknown {
		p.claim = c
	} else if c := claimOf(said); c.side != Unknown && p.claim.side == Unknown {
		p.claim = c
	}
	for _, s := range []string{text, said} {
		if ms, ok := r.clock(s); ok && !p.timed {
			p.at, p.timed = ms, true
		}
	}
	return p
}

// object returns the JSON object that begins at a place of a line, and how long it is there.
// The object may stand in quotes, escaped. If there is none, length is that of the text which
// cannot begin another, and the error is io.ErrUnexpectedEOF if the line is too short.
func object(line string, at int) (raw string, length int, err error) {
	rest := line[at:]
	if rest[len(rest)-1] == '}' {
		if _, err := wire.Parse([]byte(rest)); err == nil {
			return rest, len(rest), nil
		}
	}
	if strings.HasPrefix(rest, `{\`) && at > 0 && line[at-1] == '"' {
		var inner string
		if n, err := decode(line[at-1:], &inner); err == nil {
			return strings.TrimSpace(inner), n - 1, nil
		}
	}
	var message json.RawMessage
	if at > 1 && line[at-1] == '\'' && (line[at-2] == 'b' || line[at-2] == 'B') { // bytes of Python
		if end := strings.LastIndexByte(rest, '\''); end > 0 {
			inner, _ := strconv.Unquote(`"` + strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `"`, `\"`).Replace(rest[:end]) + `"`)
			if _, err := decode(inner, &message); err == nil {
				return string(message), end, nil
			}
		}
	}
	n, err := decode(rest, &message)
	if wrong := new(json.SyntaxError); errors.As(err, &wrong) {
		return "", int(wrong.Offset) - 1, err
	}
	return string(message), n, err
}

// decode reads the JSON value that a text begins with, and returns how long it is.
func decode(text string, into any) (int, error) {
	d := json.NewDecoder(strings.NewReader(text))
	err := d.Decode(into)
	return int(d.InputOffset()), err
}

// span returns the object that begins with first and goes on in the lines after it, and how
// many lines it takes; "" and 1 if it does not. Lines may be quoted, indented, parts of an
// event, or wrapped by a terminal.
func (r *reader) span(first string, lines []string) (raw string, used int) {
	width := utf8.RuneCountInString(strings.TrimRight(lines[0], "\r"))
	for _, between := range []string{"\n", ""} {
		var b strings.Builder
		b.WriteString(first)
		open := &balance{}
		open.see(first)
		for n := 1; n < len(lines) && r.spanned < maxSpan; n++ {
			line := strings.TrimRight(lines[n], "\r")
			if between == "\n" {
				line = line[len(lead().FindString(line)):]
			} else if utf8.RuneCountInString(strings.TrimRight(lines[n-1], "\r")) != width {
				break // the line before was not full
			}
			b.WriteString(between)
			b.WriteString(line)
			r.spanned += len(line) + 1
			if open.see(between + line); open.broken {
				break
			}
			if open.depth > 0 {
				continue
			}
			var message json.RawMessage
			if _, err := decode(b.String(), &message); err == nil {
				return string(message), n + 1
			} else if !errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
		}
	}
	return "", 1
}

// balance counts the brackets that are open in a text, outside of its strings.
type balance struct {
	depth            int
	inside, escaping bool
	broken           bool // a string goes on over the end of a line
}

func (b *balance) see(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case b.escaping:
			b.escaping = false
		case b.inside && c == '\\':
			b.escaping = true
		case c == '"':
			b.inside = !b.inside
		case b.inside && c == '\n':
			b.broken = true
		case b.inside:
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
		}
	}
}
