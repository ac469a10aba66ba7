package replay

import (
	"bytes"
	"fmt"
	"math"
	"net/textproto"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Redaction says what must not reach the disk. The zero value takes out what
// looks like a secret by itself.
type Redaction struct {
	// Protocol says which frames may hold text.
	Protocol Protocol
	// Env is the environment ("NAME=value") whose secret values are taken out
	// wherever they stand: those of variables with a name such as *_API_KEY.
	Env []string
	// Patterns are further secrets; of one with a group only the group.
	Patterns []*regexp.Regexp
	// KeepText leaves prompts, messages, file contents and output as they are,
	// secrets in them too. MaskText takes them out as a whole.
	KeepText, MaskText bool
}

// Secret reports whether a name, of an environment variable, a header or a key,
// says that its value is a secret.
func Secret(name string) bool {
	name = strings.ToLower(name)
	for _, not := range []string{"keyboard", "keymap", "public", "tokens", "author", "token_count", "keyid"} {
		name = strings.ReplaceAll(name, not, "")
	}
	for _, part := range []string{"apikey", "api_key", "api-key", "token", "secret", "passw", "passphrase",
		"credential", "authorization", "cookie", "private_key", "privatekey", "access_key", "accesskey"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "_key") || strings.HasSuffix(name, "-key") || strings.HasSuffix(name, "_auth")
}

// mark begins each placeholder; what follows is a number that stands for the
// same secret throughout a recording.
const mark = "REDACTED-"

// Func returns what to give to transcript.Options.Redact. A secret gets the
// same placeholder wherever it stands in one recording, so that what was equal
// stays equal. What is cut in two by messages of its own, such as a key that a
// model streams letter by letter, cannot be found: MaskText is for that.
func (r Redaction) Func() func(transcript.Entry) transcript.Entry {
	d := &redactor{Redaction: r, numbers: map[string]int{}, names: map[string]bool{}}
	for _, kv := range r.Env {
		name, value, _ := strings.Cut(kv, "=")
		// A shorter value is no secret, and would blot out common words; a path
		// says where a secret is.
		if Secret(name) && len(value) >= 6 && !filepath.IsAbs(value) {
			d.secrets = append(d.secrets, value)
			for _, form := range []string{string(bytes.Trim(wire.AppendString(nil, value), `"`)), textproto.TrimString(value)} {
				if form != value && len(form) >= 6 {
					d.secrets = append(d.secrets, form)
				}
			}
		}
	}
	slices.SortFunc(d.secrets, func(a, b string) int { return len(b) - len(a) }) // one may hold another
	d.secrets = slices.Compact(d.secrets)
	d.rewriter.change, d.rewriter.skip = d.change, d.harmless
	return d.entry
}

type redactor struct {
	Redaction
	secrets []string

	mu       sync.Mutex
	numbers  map[string]int  // of placeholders, by secret
	names    map[string]bool // what Secret says of keys
	rewriter rewriter

	// of the entry at hand
	source  transcript.Source
	kind    transcript.Kind
	texts   bool // it may hold what a user or a model wrote
	suspect bool // a secret may stand in it as it is
	paths   []string
}

// mostNames bounds how many keys are remembered.
const mostNames = 4096

func (d *redactor) secretKey(name string) bool {
	is, known := d.names[name]
	if !known {
		is = Secret(name) && name != "sessionUpdate"
		if len(d.names) < mostNames {
			d.names[name] = is
		}
	}
	return is
}

func (d *redactor) placeholder(secret string) string {
	n, ok := d.numbers[secret]
	if !ok {
		n = len(d.numbers) + 1
		d.numbers[secret] = n
	}
	return fmt.Sprintf("%s%d", mark, n)
}

// entry is one entry without its secrets.
func (d *redactor) entry(e transcript.Entry) transcript.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.source, d.kind, d.paths = e.Source, e.Kind, nil
	d.texts = d.mayHoldText(e)
	d.suspect = d.looks(e.Raw)
	if root := e.JSON(); root.Exists() {
		e.Raw = d.rewriter.rewrite(e.Raw, root)
		if d.suspect && !(d.KeepText && d.texts) {
			e.Raw = d.bytes(e.Raw) // also in keys
		}
	} else {
		e.Raw = d.bytes(e.Raw)
	}
	d.suspect = true
	if v, err := wire.Parse([]byte(e.ID)); e.ID != "" && err == nil {
		if clean := d.text(v.Text()); clean != v.Text() {
			e.ID = wire.ID(serve.Quote(clean))
		}
	}
	e.Method, e.Session, e.Problem = d.text(e.Method), d.text(e.Session), d.text(e.Problem)
	if d.paths != nil {
		e.Redacted = append(slices.Clone(e.Redacted), d.paths...)
	}
	return e
}

func (d *redactor) mayHoldText(e transcript.Entry) bool {
	return e.Frame() && d.Protocol.HasText(e) || e.Source == transcript.Model || e.Source == transcript.Terminal
}

// looks reports whether a secret may stand in bytes as it is.
func (d *redactor) looks(b []byte) bool {
	if len(d.Patterns) > 0 || hint(b) {
		return true
	}
	for _, s := range d.secrets {
		if bytes.Contains(b, []byte(s)) {
			return true
		}
	}
	return false
}

// isText reports whether a value is such a text.
func (d *redactor) isText(at place) bool {
	if !d.texts {
		return false
	}
	switch at.key() {
	case "text", "content", "oldText", "newText", "data", "blob", "output", "user":
		return true
	}
	return at.within("rawInput", "rawOutput", "body")
}

// harmless reports that a value need not be looked at: what may be a secret by
// itself has been looked for in the whole text, and only escapes hide it there.
func (d *redactor) harmless(at place, v wire.Value) bool {
	if d.suspect || d.MaskText && d.texts || d.secretKey(at.key()) || d.sensitive(at) {
		return false
	}
	_, plain := v.Plain()
	return plain || v.Kind() == wire.Number
}

// change decides about one value.
func (d *redactor) change(at place, v wire.Value, text string) (string, bool) {
	if v.Kind() == wire.Number {
		for _, s := range d.secrets {
			if strings.Contains(text, s) {
				return d.changed(at, d.placeholder(text))
			}
		}
		return "", false
	}
	isText := d.isText(at)
	switch {
	case text == "" || strings.HasPrefix(text, mark):
		return "", false
	case isText && d.KeepText:
		return "", false
	case isText && d.MaskText:
		return d.changed(at, d.placeholder(text))
	case len(text) >= 4 && d.secretKey(at.key()),
		d.sensitive(at) && random(text):
		return d.changed(at, d.placeholder(text))
	}
	if clean := d.text(text); clean != text {
		return d.changed(at, clean)
	}
	return "", false
}

func (d *redactor) changed(at place, text string) (string, bool) {
	d.paths = append(d.paths, strings.Join(at, "."))
	return serve.Quote(text), true
}

// sensitive places are those where keys are handed over: what an MCP server or
// a terminal gets, what authenticates, command lines.
func (d *redactor) sensitive(at place) bool {
	return at.within("env", "headers", "_meta", "args", "command", "credentials", "Args")
}

// assigned finds "key: value" in running text.
var assigned = regexp.MustCompile(`(?i)` +
	`\b([a-z0-9_.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|authorization|credential)s?)` +
	`["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)?([^\s"',;&)\]}]{6,})`)

// shapes are what keys of well-known services look like.
var shapes = regexp.MustCompile(`\b(?:` + strings.Join([]string{
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

var bearer = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})`)

var pem = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// text is a text without the secrets in it.
func (d *redactor) text(s string) string {
	if s == "" {
		return s
	}
	return string(d.bytes([]byte(s)))
}

// bytes takes secrets out of any bytes; b itself if there are none.
func (d *redactor) bytes(b []byte) []byte {
	for _, s := range d.secrets {
		if bytes.Contains(b, []byte(s)) {
			b = bytes.ReplaceAll(b, []byte(s), []byte(d.placeholder(s)))
		}
	}
	if hint(b) {
		b = d.replace(b, shapes)
		b = d.replace(b, bearer)
		b = d.replace(b, pem)
	}
	if d.source == transcript.Stderr || d.kind == transcript.Malformed {
		b = d.replace(b, assigned)
	}
	for _, p := range d.Patterns {
		b = d.replace(b, p)
	}
	return b
}

// replace puts placeholders where the last group of a pattern matches.
func (d *redactor) replace(b []byte, p *regexp.Regexp) []byte {
	found := p.FindAllSubmatchIndex(b, -1)
	if found == nil {
		return b
	}
	var out []byte
	end := 0
	for _, m := range found {
		from, to := m[len(m)-2], m[len(m)-1]
		if from < 0 || from == to || bytes.HasPrefix(b[from:to], []byte(mark)) {
			continue
		}
		out = append(append(out, b[end:from]...), d.placeholder(string(b[from:to]))...)
		end = to
	}
	if end == 0 {
		return b
	}
	return append(out, b[end:]...)
}

// hint reports whether the slow patterns may find something: the most frames hold
// no secret, and all of them pass here. It looks for the rarest letter of each
// beginning, in one stretch after the other that stays in the processor's cache.
func hint(b []byte) bool {
	const stretch, overlap = 16 << 10, 8 // longer than what the patterns begin with
	for from := 0; from < len(b); from += stretch {
		if hinted(b[max(from-overlap, 0):min(from+stretch+overlap, len(b))]) {
			return true
		}
	}
	return false
}

func hinted(b []byte) bool {
	return found(b, 'J', 2, func(b []byte, i int) bool { return b[i-1] == 'y' && b[i-2] == 'e' }) ||
		found(b, '-', 2, func(b []byte, i int) bool {
			return b[i-1] == 'k' && b[i-2] == 's' || b[i-1] == '-' && b[i-2] == '-' ||
				i >= 3 && (string(b[i-3:i]) == "pat" || b[i-3] == 'o' && b[i-2] == 'x')
		}) ||
		found(b, '_', 2, func(b []byte, i int) bool {
			return b[i-1] == 'f' && b[i-2] == 'h' || i >= 3 && (string(b[i-3:i]) == "pat" || string(b[i-3:i]) == "npm" ||
				b[i-3] == 'g' && b[i-2] == 'h')
		}) ||
		found(b, 'A', 0, func(b []byte, i int) bool {
			return i+4 <= len(b) && (string(b[i:i+4]) == "AIza" || string(b[i:i+4]) == "AKIA" || string(b[i:i+4]) == "ASIA")
		}) ||
		found(b, '9', 2, func(b []byte, i int) bool { return b[i-1] == '2' && b[i-2] == 'a' }) ||
		found(b, 'B', 0, authenticates) || found(b, 'b', 0, authenticates)
}

// found calls check for each place of a letter, from a place on, until it
// reports true.
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

// authenticates reports whether "bearer" or "basic" begins at a place.
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

// random reports whether a text looks drawn at random: long, of one word, with
// digits and letters, and with more than three bits of entropy a character.
func random(s string) bool {
	if len(s) < 20 || strings.ContainsAny(s, " \t\n/\\{}:") {
		return false
	}
	var count [256]int
	digits, letters := false, false
	for i := range len(s) {
		count[s[i]]++
		digits = digits || s[i] >= '0' && s[i] <= '9'
		letters = letters || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= 'a' && s[i] <= 'z'
	}
	entropy := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			entropy -= p * math.Log2(p)
		}
	}
	return digits && letters && entropy > 3.3
}
