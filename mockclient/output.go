package mockclient

import (
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/transcript"
)

// print adds output and logs it.
func (l *ledger) print(t *terminal, p []byte) {
	l.mu.Lock()
	t.output = append(t.output, p...)
	if len(t.output) > 2*t.limit+utf8.UTFMax {
		// Twice the limit before anything is moved keeps this linear; the
		// exact cut is made when the agent looks.
		t.output = append(t.output[:0], t.output[len(t.output)-t.limit-utf8.UTFMax:]...)
		t.truncated = true
	}
	l.mu.Unlock()
	l.event(t, transcript.TermOutput, termEvent{Bytes: len(p), Data: string(p)})
}

type termOutput struct {
	Output     string      `json:"output"`
	Truncated  bool        `json:"truncated"`
	ExitStatus *ExitStatus `json:"exitStatus,omitempty"`
}

func (l *ledger) outputOf(t *terminal) termOutput {
	l.mu.Lock()
	defer l.mu.Unlock()
	raw := t.output
	if t.Exit == nil {
		raw = wholeRunes(raw) // the rest of a character may still come
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	tail := Tail(text, t.limit)
	return termOutput{tail, t.truncated || len(tail) < len(text), t.Exit}
}

// Tail is the end of a UTF-8 text: at most limit bytes, beginning at a
// character boundary (ACP v1, Terminals, outputByteLimit).
func Tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	from := len(text) - max(limit, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// wholeRunes leaves out the beginning of a character at the end.
func wholeRunes(b []byte) []byte {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		last := b[len(b)-n:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}
