package glob_test

import (
	"testing"

	"github.com/acp-test/acp-test/internal/glob"
)

func TestPath(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"load/*", "load/fresh", true}, {"load/*", "load/deep/fresh", false}, {"cancel/**", "cancel/deep/twice", true},
		{"**", "a/b/c", true}, {"**/c", "a/b/c", true}, {"agent_*_chunk", "agent_message_chunk", true},
		{"a?c", "abc", true}, {"a?c", "a/c", false},
		{"[a]{b}", "[a]{b}", true}, {"[ab]", "a", false}, {`a\b`, `a\b`, true}, {"a", "ab", false}, {"", "", true},
	} {
		if got := glob.Path(c.pattern, c.name); got != c.want {
			t.Errorf("Path(%q, %q) is %t", c.pattern, c.name, got)
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "Read a/b [x] {y}", true}, {"", "", true}, {"", "a", false}, {"a*b*c", "a/b/bc", true},
		{"**c", "a/b c", true},
		{"Write*", "Write /a/b.txt", true}, {"é?", "é/", true}, {"é?", "é", false}, {"* [x]*", "Read a/b [x] y", true},
		{"/a/*", "/a/b/c", true},
		{"git *", "git log", true}, {"*a*", "bb", false}, {"a\nb*", "a\nbc", true},
	} {
		if got := glob.Text(c.pattern, c.text); got != c.want {
			t.Errorf("Text(%q, %q) is %t", c.pattern, c.text, got)
		}
	}
}
