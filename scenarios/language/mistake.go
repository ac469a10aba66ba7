package language

import "github.com/acp-test/acp-test/mistake"

// Mistake is something wrong with a scenario file: the user's to mend, never the
// agent's.
type Mistake = mistake.Mistake

// Suggestion is the nearest known word in parentheses, to stand behind a
// message.
func Suggestion(word string, known ...string) string {
	if s := mistake.Nearest(word, known); s != "" {
		return " (" + s + ")"
	}
	return ""
}
