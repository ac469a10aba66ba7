package scenarios

import "github.com/acp-test/acp-test/mistake"

// Mistake is something wrong with a scenario file: the user's to mend, never the
// agent's.
type Mistake = mistake.Mistake

// suggestion is the nearest known word in parentheses, to stand behind a
// message.
func suggestion(word string, known []string) string {
	if s := mistake.Nearest(word, known); s != "" {
		return " (" + s + ")"
	}
	return ""
}
