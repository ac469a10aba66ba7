package replay

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// place is where in a JSON text a value stands: the keys that lead to it, from
// the outside in. Items of an array have the key of the array.
type place []string

// key is the innermost key; "" at the top.
func (p place) key() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1]
}

// within reports whether one of the keys is on the way.
func (p place) within(keys ...string) bool {
	for _, k := range p {
		for _, want := range keys {
			if k == want {
				return true
			}
		}
	}
	return false
}

// rewriter replaces values inside a JSON text and leaves every other byte as it
// is.
type rewriter struct {
	// change returns the JSON text that replaces a string or number, and
	// whether it does. text is the decoded string, or the number as written.
	change func(at place, v wire.Value, text string) (string, bool)
	// skip, if set, reports that a value stays as it is, before it is decoded.
	skip func(at place, v wire.Value) bool

	at  place
	out []byte
	raw []byte
	end int // what of raw is in out
}

// rewrite returns raw itself if nothing changes.
func (r *rewriter) rewrite(raw []byte, root wire.Value) []byte {
	r.raw, r.end, r.out, r.at = raw, 0, r.out[:0], r.at[:0]
	r.walk(root)
	if r.end == 0 {
		return raw
	}
	return bytes.Clone(append(r.out, raw[r.end:]...))
}

func (r *rewriter) walk(v wire.Value) {
	switch v.Kind() {
	case wire.Object:
		for key, m := range v.Members() {
			r.at = append(r.at, key)
			r.walk(m)
			r.at = r.at[:len(r.at)-1]
		}
	case wire.Array:
		for m := range v.Items() {
			r.walk(m)
		}
	case wire.String, wire.Number:
		if r.skip != nil && r.skip(r.at, v) {
			return
		}
		text, changed := r.change(r.at, v, v.Text())
		if !changed {
			return
		}
		from := v.Offset()
		r.out = append(append(r.out, r.raw[r.end:from]...), text...)
		r.end = from + len(v.Raw())
	}
}

// piecewise is a recorded text in the pieces in which it came.
var piecewise = regexp.MustCompile(`(?m)^(.*\b(?:text|thinking|refusal|raw): )(\[".*"\])$`)

// Relocate returns a model's script with other directories: pairs of what stands
// there and what takes its place.
func Relocate(script []byte, directories ...[2]string) []byte {
	return newBinding(directories).script(script)
}

// script is a model's script with the directories of now, also where one was
// cut in two by the pieces of an answer.
func (b *binding) script(script []byte) []byte {
	text := piecewise.ReplaceAllStringFunc(string(script), func(line string) string {
		m := piecewise.FindStringSubmatch(line)
		var pieces []string
		if json.Unmarshal([]byte(m[2]), &pieces) != nil {
			return line
		}
		return m[1] + quoteAll(b.pieces(pieces))
	})
	return []byte(b.text(text))
}

func quoteAll(pieces []string) string {
	var out []byte
	for i, p := range pieces {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = wire.AppendString(out, p)
	}
	return "[" + string(out) + "]"
}

// pieces joins the pieces in which a directory stands, if it was cut in two.
func (b *binding) pieces(pieces []string) []string {
	whole := strings.Join(pieces, "")
	var out []string
	for at, i := 0, 0; i < len(pieces); i++ {
		if len(out) > 0 && b.inside(whole, at) {
			out[len(out)-1] += pieces[i]
		} else {
			out = append(out, pieces[i])
		}
		at += len(pieces[i])
	}
	return out
}

// inside reports whether a place in a text is in the middle of a directory.
func (b *binding) inside(text string, at int) bool {
	for _, p := range b.paths {
		from := max(at-len(p[0])+1, 0)
		if i := strings.Index(text[from:min(at+len(p[0])-1, len(text))], p[0]); i >= 0 && from+i < at {
			return true
		}
	}
	return false
}
