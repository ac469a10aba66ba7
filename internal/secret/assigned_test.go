package secret

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Assignments must find the same as the pattern does, although it tries the pattern only at names.
func TestAssignmentsAreThoseOfThePattern(t *testing.T) {
	whole := regexp.MustCompile(`(?i)\b` + assignment)
	pieces := []string{"token", "Secret", "API key", "api_key", "apikey", "x-key", "passwd", "PASSWORD", "credential",
		"cookie", "_auth", "authorization", "passphrase", "s", ".", "-", "_", " ", "\n", ":", "=", " = ", " is ", "was",
		"equals", " are ", `\`, `\\`, `"`, `'`, "`", "bearer ", "dragon", "x1", "é", "K", "{", "[", ",", ";", "a", "!"}
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 24).Draw(t, "pieces"), ""))
		want, got := whole.FindAllSubmatchIndex(text, -1), assignments(text)
		found += len(want)
		if len(want)+len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %v, but the pattern finds %v", text, got, want)
		}
	})
	if found == 0 {
		t.Error("no text has an assignment")
	}
}

// Named must find the same as its patterns do, although it tries them only on texts that can have a match.
func TestNamedTriesEachPatternThatMayMatch(t *testing.T) {
	pieces := []string{"--", "api-key", "Token", "x-secret", "private_key", "sig", "auth", "COOKIE", "PASSWD", "mode", "=",
		" = ", " ", "?", "&", "://", "https", ":", "@", `"`, "name", "value", `"name":"`, `","value":"`, `"value":"`,
		`","name":"`, "hunter22", "/", "x"}
	mark := func(string) string { return Mark }
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "pieces"), ""))
		want := text
		for _, p := range []*regexp.Regexp{flagged(), inURL(), query(), pairs(), pairsBack()} {
			want = Replace(want, p, mark)
		}
		if got := Named(text, mark); string(got) != string(want) {
			t.Fatalf("%q becomes %q, but the patterns make it %q", text, got, want)
		}
		if string(want) != string(text) {
			found++
		}
	})
	if found == 0 {
		t.Error("no text has a secret")
	}
}

// What is searched most is text without secrets, and JSON whose names are those of secrets.
func BenchmarkAssigned(b *testing.B) {
	for name, text := range map[string]string{
		"plain":  strings.Repeat("The quick brown fox jumps over the lazy dog. ", 100),
		"tokens": strings.Repeat(`{"outputTokens":12,"authMethods":[],"note":"the token"} `, 100),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for range b.N {
				if out := Assigned([]byte(text), func(string) string { return Mark }); string(out) != text {
					b.Fatalf("%.100q", out)
				}
			}
		})
	}
}
