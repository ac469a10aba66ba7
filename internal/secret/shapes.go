package secret

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

// shapes matches API keys of well-known services that have a distinctive prefix. It uses no rule set of a secret
// scanner: these have hundreds of patterns and are made for files, whereas here every frame is checked and must be
// checked fast.
var shapes = lazy.Regexp(`\b(?:` + strings.Join([]string{
	`sk-[A-Za-z0-9_-]{16,}`,
	`AIza[A-Za-z0-9_-]{30,}`,
	`gh[pousr]_[A-Za-z0-9]{30,}`,
	`github_pat_[A-Za-z0-9_]{30,}`,
	`glpat-[A-Za-z0-9_-]{16,}`,
	`xox[abeprs]-[A-Za-z0-9-]{10,}`,
	`(?:AKIA|ASIA)[A-Z0-9]{16}`,
	`hf_[A-Za-z0-9]{30,}`,
	`npm_[A-Za-z0-9]{30,}`,
	`ya29\.[A-Za-z0-9_-]{20,}`,
	`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
}, "|") + `)`)

var bearer = lazy.Regexp(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})`)

var pem = lazy.Regexp(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// Shapes replaces each text in b that has the format of a secret by the result of mark. It returns b itself if there
// is none.
func Shapes(b []byte, mark func(secret string) string) []byte {
	if Hint(b) {
		b = Replace(b, shapes(), mark)
		b = Replace(b, bearer(), mark)
		b = Replace(b, pem(), mark)
	}
	return b
}

const names = `[a-z0-9_.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|authorization|credential|` +
	`access[_-]key|private[_-]key)[a-z0-9_.-]*`

// Patterns of values that are secret according to their names, in the notations in which programs pass them. The last
// group of a pattern is the value.
var (
	// flagged matches a flag with its value, written as words or as elements of a JSON array.
	flagged = lazy.Regexp(`(?i)--(` + names + `)(?:\s*=\s*|["']?,?\s+["']?|["'],["'])([^\s"'\\,;)\]}]+)`)
	// inURL matches the password in user:password@host.
	inURL = lazy.Regexp(`(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@"'\\]*:([^\s/@"'\\]+)@`)
	// query matches a parameter in a URL's query.
	query = lazy.Regexp(`(?i)(?:[?&]|\\u0026|&amp;)(` + names + `|key|sig|signature|auth)=([^\s&"'\\#]+)`)
	// pairs matches the elements of env and headers in session/new: {"name": …, "value": …}. pairsBack matches them
	// with the value first.
	pairs = lazy.Regexp(`(?i)\bname"?\s*:\s*"(` + names + `|cookie|set-cookie|x-auth[a-z-]*|[a-z0-9_-]*[_-]key)"` +
		`\s*,\s*"?value"?\s*:\s*"((?:[^"\\]|\\.)+)"`)
	pairsBack = lazy.Regexp(`(?i)\bvalue"?\s*:\s*"((?:[^"\\]|\\.)+)"\s*,\s*"?name"?\s*:\s*"(?:` + names +
		`|cookie|set-cookie|x-auth[a-z-]*|[a-z0-9_-]*[_-]key)"`)
)

// Named replaces values that are secret according to their names, by the result of mark. It finds values of flags
// such as --password, passwords and parameters in URLs, and the variables and headers in the lists of session/new.
func Named(b []byte, mark func(secret string) string) []byte {
	flag, parameter, pair := notations(b)
	if flag {
		b = Replace(b, flagged(), mark)
	}
	if hasLogin(b) {
		b = Replace(b, inURL(), mark)
	}
	if parameter {
		b = Replace(b, query(), mark)
	}
	if pair {
		b = Replace(b, pairs(), mark)
		b = Replace(b, pairsBack(), mark)
	}
	return b
}

// hasLogin reports whether b may contain a URL with a password.
func hasLogin(b []byte) bool { return bytes.Contains(b, []byte("://")) && bytes.IndexByte(b, '@') >= 0 }

// notations reports in which notations b may contain names of secrets with their values.
func notations(b []byte) (flag, parameter, pair bool) {
	flag, pair = bytes.Contains(b, []byte("--")), bytes.Contains(b, []byte("value"))
	parameter = bytes.IndexByte(b, '=') >= 0 && bytes.ContainsAny(b, "?&")
	if (flag || parameter || pair) && !mentions(b) {
		return false, false, false
	}
	return flag, parameter, pair
}

// mentions reports whether b contains a part of a name that means a secret.
func mentions(b []byte) bool {
	lower := lowered(b)
	return slices.ContainsFunc([]string{"key", "token", "secret", "passw", "passphrase", "auth", "credential", "cookie",
		"sig"}, func(part string) bool { return bytes.Contains(lower, []byte(part)) })
}

// Replace replaces the last group of each match of a pattern by the result of mark. It skips values that are
// implausible as secrets.
func Replace(b []byte, p *regexp.Regexp, mark func(secret string) string) []byte {
	matches := p.FindAllSubmatchIndex(b, -1)
	if p == flagged() {
		matches = slices.DeleteFunc(matches, func(m []int) bool { return !Name(string(b[m[2]:m[3]])) })
	}
	return substitute(b, matches, mark)
}

// substitute replaces the last group of each match in b by the result of mark.
func substitute(b []byte, matches [][]int, mark func(secret string) string) []byte {
	var out []byte
	end := 0
	for _, m := range matches {
		from, to := m[len(m)-2], m[len(m)-1]
		if from < 0 || from == to || bytes.HasPrefix(b[from:to], []byte(Mark)) {
			continue
		}
		out = append(append(out, b[end:from]...), mark(string(b[from:to]))...)
		end = to
	}
	if end == 0 {
		return b
	}
	return append(out, b[end:]...)
}

// Hint reports whether Shapes may find something in b. It is much faster than the patterns, because it is called for
// every frame and most frames contain no secret. It searches for the rarest letter of each prefix, in parts of b that
// fit into the processor's cache.
func Hint(b []byte) bool {
	const stretch, overlap = 16 << 10, 8 // overlap is longer than any prefix of the patterns
	for from := 0; from < len(b); from += stretch {
		if hinted(b[max(from-overlap, 0):min(from+stretch+overlap, len(b))]) {
			return true
		}
	}
	return false
}

func hinted(b []byte) bool {
	return found(b, 'J', 2, func(b []byte, i int) bool { return b[i-1] == 'y' && b[i-2] == 'e' }) ||
		found(b, '-', 2, dashed) || found(b, '_', 2, underscored) || found(b, 'A', 0, cloudKey) ||
		found(b, '9', 2, func(b []byte, i int) bool { return b[i-1] == '2' && b[i-2] == 'a' }) ||
		found(b, 'B', 0, authenticates) || found(b, 'b', 0, authenticates)
}

// dashed reports whether sk-, --, pat- or xo?- ends at index i.
func dashed(b []byte, i int) bool {
	return b[i-1] == 'k' && b[i-2] == 's' || b[i-1] == '-' && b[i-2] == '-' ||
		i >= 3 && (string(b[i-3:i]) == "pat" || b[i-3] == 'o' && b[i-2] == 'x')
}

// underscored reports whether hf_, pat_, npm_ or gh?_ ends at index i.
func underscored(b []byte, i int) bool {
	return b[i-1] == 'f' && b[i-2] == 'h' || i >= 3 && (string(b[i-3:i]) == "pat" || string(b[i-3:i]) == "npm" ||
		b[i-3] == 'g' && b[i-2] == 'h')
}

// cloudKey reports whether a key of a large provider begins at index i.
func cloudKey(b []byte, i int) bool {
	return i+4 <= len(b) && (string(b[i:i+4]) == "AIza" || string(b[i:i+4]) == "AKIA" || string(b[i:i+4]) == "ASIA")
}

// found calls check for each index of letter in b, starting at index from. It returns true as soon as check does,
// else false.
func found(b []byte, letter byte, from int, check func(b []byte, i int) bool) bool {
	for i := from; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], letter)
		if n < 0 {
			return false
		}
		if i += n; check(b, i) {
			return true
		}
	}
	return false
}

// authenticates reports whether "bearer" or "basic" begins at index i.
func authenticates(b []byte, i int) bool {
	if len(b)-i < 6 {
		return false
	}
	switch b[i+1] | 0x20 {
	case 'e':
		return bytes.EqualFold(b[i:i+6], []byte("bearer"))
	case 'a':
		return bytes.EqualFold(b[i:i+5], []byte("basic"))
	}
	return false
}
