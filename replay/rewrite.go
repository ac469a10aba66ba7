package replay

import (
	"bytes"

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
