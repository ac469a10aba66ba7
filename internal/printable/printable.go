// Package printable makes an agent's text safe to print. In its results, nothing can control a terminal or a CI
// system that reads the log.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lazy"
)

// commands matches text that CI systems read as commands in a log: GitHub's ::name:: at the beginning of a line, and,
// anywhere, GitHub's older form and the forms of Azure and TeamCity. GitLab's commands begin with an escape
// character.
var commands = lazy.Regexp(`(?m)(^[ \t]*:):|(#)#(?:\[|[A-Za-z]+\[)`)

// Plural returns n followed by the word one if n is 1, and by the word many otherwise.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Text returns s with unsafe characters written as visible escapes. Unsafe are control characters, which can move the
// cursor and hide or fake output. Unsafe are also characters that change the writing direction or have no width, and
// line separators other than newline. Commands to CI systems are made harmless. Newlines and tabs stay unchanged.
func Text(s string) string {
	if !clean(s) {
		var b strings.Builder
		for _, r := range s {
			switch {
			case passes(r) || r == utf8.RuneError:
				b.WriteRune(r)
			case r < 0x80:
				fmt.Fprintf(&b, `\x%02x`, r)
			case r > 0xffff:
				fmt.Fprintf(&b, `\U%08x`, r)
			default:
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		s = b.String()
	}
	if !strings.Contains(s, "::") && !strings.Contains(s, "##") {
		return s
	}
	return commands().ReplaceAllStringFunc(s, func(c string) string {
		if at := strings.Index(c, "::"); at >= 0 {
			return c[:at] + `\x3a` + c[at+1:]
		}
		return `\x23` + c[1:]
	})
}

// Line is like Text, but returns a single line. If the line is longer than most characters, Line shortens it and adds
// an ellipsis.
func Line(s string, most int) string {
	s = Text(strings.NewReplacer("\r", "", "\n", " ", "\t", " ").Replace(s))
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}

func clean(s string) bool {
	for _, r := range s {
		if !passes(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func passes(r rune) bool { return r == '\n' || r == '\t' || r != utf8.RuneError && unicode.IsPrint(r) }

// Wrap breaks a paragraph into lines of at most width bytes. A longer word gets a line of its own.
func Wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(text) {
		switch {
		case at == 0:
		case at+1+len(word) > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
