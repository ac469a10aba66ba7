// Package secret finds secrets in text that is about to be written or shown. It finds known secrets in all common
// encodings, and values that look like a secret because of their format or the name next to them.
package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

// Mark is the default text that replaces a secret.
const Mark = "REDACTED"

// Name reports whether the name of an environment variable, a header, a flag or a
// key says that its value is secret.
func Name(name string) bool {
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

// shortest is the minimum length of a known secret, in bytes. Replacing shorter values would destroy common words.
const shortest = 6

// Finder finds known secrets in text. Apart from Add, its methods may be called concurrently.
type Finder struct {
	values []string
	forms  []form // longest first, because a form may contain another
}

type form struct {
	text  []byte
	value string
}

// New returns a Finder for the values of environment variables ("NAME=value") whose names say that the value is
// secret. It ignores absolute paths, because they only say where a secret is stored.
func New(env ...string) *Finder {
	f := &Finder{}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); Name(name) && !filepath.IsAbs(value) {
			f.Add(value)
		}
	}
	return f
}

// Add adds a value to the known secrets. Values shorter than 6 bytes are ignored.
func (f *Finder) Add(value string) {
	value = strings.TrimSpace(value)
	if len(value) < shortest || slices.Contains(f.values, value) {
		return
	}
	f.values = append(f.values, value)
	for _, text := range forms(value) {
		f.forms = append(f.forms, form{[]byte(text), value})
	}
	slices.SortStableFunc(f.forms, func(a, b form) int { return len(b.text) - len(a.text) })
}

// forms returns the encodings in which a value may occur in text: unchanged, in JSON and JSON in JSON, in URLs, in
// base64 at any offset, and in hex.
func forms(value string) []string {
	all := []string{value}
	for _, html := range []bool{false, true} {
		in := value
		for range 6 { // agents nest JSON in JSON, and reports quote it
			in = jsonText(in, html)
			all = append(all, in)
		}
	}
	query, path := url.QueryEscape(value), url.PathEscape(value)
	component := strings.ReplaceAll(query, "+", "%20")
	all = append(all, query, path, jsonText(path, true), component, lowerHex(query), lowerHex(component))
	for skip := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString(append(make([]byte, skip), value...))
			text = text[[]int{0, 2, 3}[skip]:]
			if (skip+len(value))%3 != 0 {
				text = text[:len(text)-1] // the last character also encodes the next bytes
			}
			if len(text) >= shortest {
				all = append(all, text)
			}
		}
	}
	digits := hex.EncodeToString([]byte(value))
	all = append(all, digits, strings.ToUpper(digits))
	slices.Sort(all)
	return slices.Compact(all)
}

func jsonText(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // encoding a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
}

var percent = lazy.Regexp(`%[0-9A-F]{2}`)

func lowerHex(s string) string { return percent().ReplaceAllStringFunc(s, strings.ToLower) }

// Any reports whether the Finder has any known secret.
func (f *Finder) Any() bool { return len(f.values) > 0 }

// Has reports whether b may contain a known secret, either complete or cut off by an ellipsis.
func (f *Finder) Has(b []byte) bool {
	if f.Any() && bytes.Contains(b, ellipsis) {
		return true
	}
	return slices.ContainsFunc(f.forms, func(s form) bool { return bytes.Contains(b, s.text) })
}

// Known replaces each known secret in b by the result of mark. It returns b itself if b contains none.
func (f *Finder) Known(b []byte, mark func(secret string) string) []byte {
	for _, s := range f.forms {
		if bytes.Contains(b, s.text) {
			b = bytes.ReplaceAll(b, s.text, []byte(mark(s.value)))
		}
	}
	if bytes.Contains(b, ellipsis) {
		b = f.cut(b, mark)
	}
	return b
}

// ellipsis is the text that acp-test inserts where it has shortened a text.
var ellipsis = []byte("…")

// cut replaces the beginning of a known secret that is followed by an ellipsis, because a text was shortened in the
// middle of the secret. It checks only the first 10,000 ellipses, because acp-test does not shorten a text in more
// places.
func (f *Finder) cut(b []byte, mark func(secret string) string) []byte {
	const least, most = 6, 10_000
	var out []byte
	rest := b
	for range most {
		at := bytes.Index(rest, ellipsis)
		if at < 0 {
			break
		}
		longest, value := 0, ""
		for _, s := range f.forms {
			for k := min(len(s.text)-1, at); k >= least && k > longest; k-- {
				if rest[at-1] == s.text[k-1] && bytes.HasSuffix(rest[:at], s.text[:k]) {
					longest, value = k, s.value
				}
			}
		}
		out = append(out, rest[:at-longest]...)
		if longest > 0 {
			out = append(out, mark(value)...)
		}
		out = append(out, ellipsis...)
		rest = rest[at+len(ellipsis):]
	}
	return append(out, rest...)
}

// Piece masks secrets in b, a piece of a text, that are split between pieces. At the start of b, it masks the rest of
// a secret that an earlier piece began; begun is that missing rest. At the end of b, it masks the beginning of a
// secret, and returns the part that is still missing as rest.
func (f *Finder) Piece(b []byte, begun string) (clean []byte, rest string) {
	if n := min(len(begun), len(b)); n > 0 && string(b[:n]) == begun[:n] {
		b = append([]byte(Mark), b[n:]...)
		if begun = begun[n:]; begun != "" {
			return b, begun
		}
	}
	n, rest := f.Begun(b)
	if n > 0 {
		b = append(b[:len(b)-n:len(b)-n], Mark...)
	}
	return b, rest
}

// Begun checks whether b ends with the beginning of a known secret. It returns the length n of that beginning and the
// missing rest of the secret. A beginning of less than four bytes does not count: n is then 0.
func (f *Finder) Begun(b []byte) (n int, rest string) {
	const least = 4
	for _, v := range f.values {
		for k := min(len(v)-1, len(b)); k >= least && k > n; k-- {
			if bytes.HasSuffix(b, []byte(v[:k])) {
				n, rest = k, v[k:]
			}
		}
	}
	return n, rest
}

// Clean replaces all secrets that it can find in a text by Mark: known secrets, values with the format of a secret,
// and values next to a name that says they are secret.
func (f *Finder) Clean(b []byte) []byte {
	mark := func(string) string { return Mark }
	return Assigned(Named(Shapes(f.Known(b, mark), mark), mark), mark)
}

// Text is like Clean, but for a string.
func (f *Finder) Text(s string) string { return string(f.Clean([]byte(s))) }

// Writer returns a writer that removes secrets, as Clean does, and then writes to w. It also masks a known secret
// that is split between two writes.
func (f *Finder) Writer(w io.Writer) io.Writer { return &writer{finder: f, to: w} }

type writer struct {
	finder *Finder
	to     io.Writer
	begun  string
}

func (w *writer) Write(p []byte) (int, error) {
	var clean []byte
	clean, w.begun = w.finder.Piece(w.finder.Clean(p), w.begun)
	if _, err := w.to.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// words lists the members of results whose texts come from acp-test or are names that its user chose.
var words = []string{"id", "file", "tags", "slug", "requirements", "rule", "point", "verdict", "class", "state",
	"scenario", "artifacts", "after", "known", "protocol", "profile"}

// Value returns a copy of a value, such as results, in which all texts are cleaned. It does not change the members
// listed in words, which cannot contain secrets.
func Value[T any](f *Finder, v T) T {
	return f.value(reflect.ValueOf(&v)).Elem().Interface().(T)
}

func (f *Finder) value(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(f.Text(v.String()))
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Kind() == reflect.Pointer {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(f.value(v.Elem()))
		} else if !v.IsNil() {
			out.Set(f.value(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(f.value(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMap(v.Type()))
		}
		for key, value := range v.Seq2() {
			out.SetMapIndex(f.value(key), f.value(value))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if out.Field(i).CanSet() && !slices.Contains(words, name) {
				out.Field(i).Set(f.value(v.Field(i)))
			}
		}
	}
	return out
}
