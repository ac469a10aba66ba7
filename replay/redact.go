package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Redaction describes the data that must not be written to disk. The zero value removes values that look like
// secrets.
type Redaction struct {
	// Protocol identifies the frames that may contain text.
	Protocol Protocol
	// Known finds secrets that are removed wherever they are, such as the values of secret variables. It may be nil.
	Known *secret.Finder
	// Patterns match further secrets. If a pattern has a group, only the group is a secret.
	Patterns []*regexp.Regexp
	// KeepText leaves prompts, messages, file contents and output unchanged, including secrets in them. MaskText
	// replaces each of them completely.
	KeepText, MaskText bool
}

// mark is the beginning of each placeholder. The number after it identifies the secret within a recording.
const mark = secret.Mark + "-"

// Func returns a function for transcript.Options.Redact. Within a recording, a secret always has the same
// placeholder, so that equal texts stay equal. Func does not find an unknown secret that is split over several
// messages, such as a key that a model streams letter by letter. MaskText hides such secrets.
func (r Redaction) Func() func(transcript.Entry) transcript.Entry {
	d := &redactor{Redaction: r, known: cmp.Or(r.Known, secret.New()), numbers: map[string]int{}, names: map[string]bool{},
		begun: map[string]string{}}
	d.rewriter.change, d.rewriter.skip = d.change, d.harmless
	return d.entry
}

type redactor struct {
	Redaction
	known *secret.Finder

	mu       sync.Mutex
	numbers  map[string]int    // secret -> number of its placeholder
	names    map[string]bool   // key -> whether its value is secret
	begun    map[string]string // writer -> rest of a secret that its latest text has begun
	rewriter rewriter

	// These fields describe the current entry.
	source  transcript.Source
	kind    transcript.Kind
	texts   bool   // the entry may contain text of a user or a model
	suspect bool   // the entry may contain an unescaped secret
	writer  string // the writer of the entry; its texts may continue in later entries
	paths   []string
}

// mostNames is the maximum number of keys whose secrecy is remembered.
const mostNames = 4096

func (d *redactor) secretKey(name string) bool {
	is, known := d.names[name]
	if !known {
		is = secret.Name(name) && name != "sessionUpdate"
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

// entry returns an entry without its secrets.
func (d *redactor) entry(e transcript.Entry) transcript.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.source, d.kind, d.paths = e.Source, e.Kind, nil
	d.texts = d.mayHoldText(e)
	if len(d.begun) > 0 || d.known.Any() {
		d.writer = fmt.Sprint(e.Conn, e.Source, e.Session)
	}
	d.suspect = d.looks(e.Raw) || d.begun[d.writer+" text"] != "" || d.texts && len(d.begun) > 0
	// A text that also occurs in a frame without secrets contains no secret.
	clear := func(s string) bool {
		return !d.suspect && e.Frame() && !strings.Contains(s, `\`) && bytes.Contains(e.Raw, []byte(s))
	}
	method, session, id := clear(e.Method), clear(e.Session), clear(string(e.ID))
	if root := e.JSON(); root.Exists() {
		e.Raw = d.rewriter.rewrite(e.Raw, root)
		if d.suspect && !(d.KeepText && d.texts) {
			e.Raw = d.bytes(e.Raw) // this includes secrets in keys
		}
	} else {
		e.Raw = d.bytes(e.Raw)
		if e.Kind == transcript.Chunk {
			e.Raw = d.cut(fmt.Sprint(e.Conn, e.Source), e.Raw)
		}
	}
	d.suspect = true
	if !id {
		if v, err := wire.Parse([]byte(e.ID)); err == nil {
			if clean := d.text(v.Text()); clean != v.Text() {
				e.ID = wire.ID(serve.Quote(clean))
			}
		}
	}
	if !method {
		e.Method = d.text(e.Method)
	}
	if !session {
		e.Session = d.text(e.Session)
	}
	e.Problem = d.text(e.Problem)
	if d.paths != nil {
		e.Redacted = append(slices.Clone(e.Redacted), d.paths...)
	}
	return e
}

func (d *redactor) mayHoldText(e transcript.Entry) bool {
	return e.Frame() && d.Protocol.HasText(e) || e.Source == transcript.Model || e.Source == transcript.Terminal
}

// looks reports whether b may contain an unescaped secret.
func (d *redactor) looks(b []byte) bool {
	return len(d.Patterns) > 0 || secret.Hint(b) || secret.Hinted(b) || d.known.Has(b)
}

// isText reports whether a value is the text of a user or a model.
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

// harmless reports whether a value needs no examination: its frame was already searched for secrets, and the value
// has no escapes that could hide one.
func (d *redactor) harmless(at place, v wire.Value) bool {
	if d.suspect || d.texts && d.isText(at) || d.MaskText && d.texts || d.secretKey(at.key()) || d.sensitive(at) {
		return false
	}
	_, plain := v.Plain()
	return plain || v.Kind() == wire.Number
}

// change returns the replacement of one value. It returns false if the value stays unchanged.
func (d *redactor) change(at place, v wire.Value, text string) (string, bool) {
	if v.Kind() == wire.Number {
		if d.known.Has([]byte(text)) {
			return d.changed(at, d.placeholder(text))
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
	clean := text
	if _, plain := v.Plain(); d.suspect || !plain { // otherwise the search of the whole frame covered it
		clean = d.text(text)
	}
	if isText && d.known.Any() {
		clean = string(d.cut(d.writer+" "+at.key(), []byte(clean)))
	}
	if clean != text {
		return d.changed(at, clean)
	}
	return "", false
}

func (d *redactor) changed(at place, text string) (string, bool) {
	d.paths = append(d.paths, strings.Join(at, "."))
	return serve.Quote(text), true
}

// sensitive reports whether a value is in a place where keys are passed, for example the environment of an MCP
// server, HTTP headers, or a command line.
func (d *redactor) sensitive(at place) bool {
	return at.within("env", "headers", "_meta", "args", "command", "credentials", "Args")
}

// text returns a text without secrets.
func (d *redactor) text(s string) string {
	if s == "" {
		return s
	}
	return string(secret.Assigned(d.bytes([]byte(s)), d.placeholder))
}

// bytes returns b with each secret replaced by its placeholder. It returns b itself if b has no secret.
func (d *redactor) bytes(b []byte) []byte {
	b = secret.Shapes(d.known.Known(b, d.placeholder), d.placeholder)
	b = secret.Named(b, d.placeholder)
	if d.source == transcript.Stderr || d.kind == transcript.Malformed {
		b = secret.Assigned(b, d.placeholder)
	}
	for _, p := range d.Patterns {
		b = secret.Replace(b, p, d.placeholder)
	}
	return b
}

// cut masks the end of a piece of text if a known secret begins there. It also masks the rest of that secret at the
// beginning of the same writer's next piece.
func (d *redactor) cut(writer string, b []byte) []byte {
	b, rest := d.known.Piece(b, d.begun[writer])
	delete(d.begun, writer)
	if rest != "" {
		d.begun[writer] = rest
	}
	return b
}

// random reports whether a text looks random: long, one word, with digits and letters, and with more than 3.3 bits of
// entropy per character.
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
