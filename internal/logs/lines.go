package logs

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/wire"
)

var (
	// escapes matches the control sequences of terminals.
	escapes = lazy.Regexp("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")
	// tells matches text by which a line seems to contain a message: a member of a message, or an object that is cut
	// off.
	tells = lazy.Regexp(`"(?:jsonrpc|method|params|result|sessionUpdate|threadId|runId)\\*"|\{\\?$|\{\\?"[^{}]*$`)
	// names matches the key of a message's member.
	names = lazy.Regexp(`"(?:jsonrpc|method|params|result|sessionUpdate|threadId|runId)\\*"`)
	// lead matches the prefix of each line, if a message is split over several lines.
	lead = lazy.Regexp(`^[ \t]*(?:data:|[>|#*]|//)?[ \t]*`)
)

// maxSpan limits the total number of bytes that are searched for the ends of messages split over several lines.
const maxSpan = 256 << 20

// narrowest is the width of the narrowest terminal that wraps lines.
const narrowest = 40

// lines reads the messages in a text, line by line.
func (r *reader) lines(text string, p place) {
	if strings.IndexByte(text, 0x1b) >= 0 {
		text = escapes().ReplaceAllString(text, "")
	}
	list := strings.Split(text, "\n")
	said := "" // the line before, if it contained no message
	for n := 0; n < len(list); {
		p.line = n + 1
		line := strings.TrimRight(list[n], "\r \t")
		if line == "" {
			n++
			continue
		}
		r.torn = false
		found, used := r.line(line, list[n:], said, p)
		n += used
		if said = ""; !found {
			said = line
			r.log.Lines++
		}
		if r.torn || !found && tells().MatchString(line) {
			bad := Left{p.line, errors.New("it seems to hold a message, but the message is cut off or not JSON")}
			r.log.Left = append(r.log.Left, bad)
		}
	}
}

// line reads the messages in a line. A message may continue on the next lines, which are in rest. It returns whether
// it found any, and the number of lines used.
func (r *reader) line(line string, rest []string, said string, p place) (found bool, used int) {
	before := 0 // end of the message before
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
			r.torn = r.torn || tells().MatchString(line[at:])
			return found, used // objects inside a truncated object are not messages
		}
		r.torn = r.torn || wrong != nil && names().MatchString(line[at:at+length])
		if wrong == nil && r.value(v, r.near(line[before:at], said, p)) {
			found = true
			before = at + length
		}
		at += max(length, 1)
	}
}

// text reads the messages in a string that is the value of a member. It reports whether it found any.
func (r *reader) text(s string, p place) bool {
	n := len(r.log.Messages)
	for line := range strings.Lines(s) {
		r.line(strings.TrimRight(line, "\r\n"), []string{line}, "", p)
	}
	if len(r.log.Messages) == n { // maybe one message over several lines
		if v, err := wire.Parse([]byte(s)); err == nil {
			return r.value(v, p)
		}
	}
	return len(r.log.Messages) > n
}

// near reads the time and the sender of a message from the text before the message on its line, or from said, the
// line before it.
func (r *reader) near(text, said string, p place) place {
	for _, s := range []*string{&text, &said} {
		if names().MatchString(*s) {
			*s = "" // a part of an unreadable message
		}
	}
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

// object returns the JSON object that begins in a line at the index at, and the object's length there. The object may
// be inside a quoted string, with escapes. If no object begins at the index, length is the number of bytes that the
// search can skip. The error is io.ErrUnexpectedEOF if the line ends inside the object.
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
	if at > 1 && line[at-1] == '\'' && (line[at-2] == 'b' || line[at-2] == 'B') { // a bytes literal of Python
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

// decode reads the JSON value at the beginning of a text, and returns its length.
func decode(text string, into any) (int, error) {
	d := json.NewDecoder(strings.NewReader(text))
	err := d.Decode(into)
	return int(d.InputOffset()), err
}

// span returns the object that begins with first and continues on the next lines, and the number of lines used. It
// returns "" and 1 if the object has no end there. The lines may have a prefix, such as indentation, > or "data:", or
// may have been wrapped by a terminal.
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
			} else if width < narrowest || utf8.RuneCountInString(strings.TrimRight(lines[n-1], "\r")) != width {
				break // the terminal did not wrap the previous line
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

// balance counts the open brackets in a text, except those in strings.
type balance struct {
	depth            int
	inside, escaping bool
	broken           bool // a string continues past the end of a line
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

var (
	dated = lazy.Regexp(`(\d{4})[-/](\d\d)[-/](\d\d)[T ]+(\d\d:\d\d:\d\d)(?:[.,](\d+))?\s*(Z|[+-]\d\d:?\d\d)?`)
	daily = lazy.Regexp(`(?:^|[^\d:])(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?`)
	epoch = lazy.Regexp(`^\W*(\d{10}(?:\.\d+)?|\d{13})(?:\D|$)`)
)

const day = 24 * 60 * 60 * 1000 // in ms

// clock reads a time from the text before a message, in ms since 1970 or, for a time of day, since the midnight
// before the first entry.
func (r *reader) clock(text string) (ms float64, ok bool) {
	if m := dated().FindStringSubmatch(text); m != nil {
		zone := m[6]
		if zone == "" {
			zone = "Z"
		} else if zone != "Z" && !strings.Contains(zone, ":") {
			zone = zone[:3] + ":" + zone[3:]
		}
		at, err := time.Parse(time.RFC3339, m[1]+"-"+m[2]+"-"+m[3]+"T"+m[4]+zone)
		return float64(at.UnixMilli()) + fraction(m[5]), err == nil
	}
	if m := epoch().FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		return scaled(n), err == nil
	}
	if m := daily().FindStringSubmatch(text); m != nil {
		h, _ := strconv.Atoi(m[1])
		min, _ := strconv.Atoi(m[2])
		s, _ := strconv.Atoi(m[3])
		ms := float64(((h*60+min)*60+s)*1000) + fraction(m[4])
		if ms+day/2 < r.last {
			r.days += day // the time went back, so midnight has passed
		}
		r.last = ms
		return r.days + ms, true
	}
	return 0, false
}

// fraction returns the fraction of a second after the decimal point, in ms.
func fraction(digits string) float64 {
	n, err := strconv.ParseFloat("0."+digits+"0", 64)
	if err != nil {
		return 0
	}
	return n * 1000
}

// instant reads a time from the value of an object's member, in ms.
func instant(v wire.Value) (ms float64, ok bool) {
	if n, ok := v.Float(); ok {
		return scaled(n), true
	}
	s := v.Str()
	if s == "" || len(s) > 64 {
		return 0, false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return scaled(n), true
	}
	return (&reader{}).clock(s)
}

// scaled converts a number to ms. It recognises seconds, microseconds and nanoseconds since 1970 by the size of the
// number. It returns any other number unchanged.
func scaled(n float64) float64 {
	switch {
	case n >= 1e17:
		return n / 1e6
	case n >= 1e14:
		return n / 1e3
	case n >= 1e9 && n < 1e11:
		return n * 1e3
	}
	return n
}
