package replay

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/wire"
)

// place is the position of a value in a JSON text: the keys that lead to the value, outermost first. An item of an
// array has the place of the array.
type place []string

// key returns the innermost key; "" at the top.
func (p place) key() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1]
}

// within reports whether the place contains one of the keys.
func (p place) within(keys ...string) bool {
	return slices.ContainsFunc(p, func(key string) bool { return slices.Contains(keys, key) })
}

// rewriter replaces values inside a JSON text and leaves every other byte unchanged.
type rewriter struct {
	// change returns the JSON text that replaces a string or number. It returns false if the value stays unchanged. text
	// is the decoded string, or the number as it is written.
	change func(at place, v wire.Value, text string) (string, bool)
	// skip, if set, reports whether a value stays unchanged. It is called before decoding the value.
	skip func(at place, v wire.Value) bool

	at  place
	out []byte
	raw []byte
	end int // how many bytes of raw have been copied to out
}

// rewrite returns the rewritten text. It returns raw itself if nothing changes.
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

// piecewise matches a line of a model script whose text is a list of pieces.
var piecewise = lazy.Regexp(`(?m)^(.*\b(?:text|thinking|refusal|raw): )(\[".*"\])$`)

// Relocate replaces directories in a model script. Each element of directories is an old and a new directory.
func Relocate(script []byte, directories ...[2]string) []byte {
	return newBinding(directories).script(script)
}

// script replaces recorded directories in a model script by the live ones. It also finds a directory that is split
// over two pieces of a reply.
func (b *binding) script(script []byte) []byte {
	text := piecewise().ReplaceAllStringFunc(string(script), func(line string) string {
		m := piecewise().FindStringSubmatch(line)
		var pieces []string
		if json.Unmarshal([]byte(m[2]), &pieces) != nil {
			return line
		}
		return m[1] + yamlfile.QuoteAll(b.pieces(pieces))
	})
	return []byte(b.text(text))
}

// pieces joins adjacent pieces if a directory is split between them.
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

// inside reports whether the offset at is inside a directory's path, but not at its beginning.
func (b *binding) inside(text string, at int) bool {
	for _, p := range b.paths {
		from := max(at-len(p[0])+1, 0)
		if i := strings.Index(text[from:min(at+len(p[0])-1, len(text))], p[0]); i >= 0 && from+i < at {
			return true
		}
	}
	return false
}

// binding maps ids and directories of the recording to the live ones. It leaves terminal ids and the ids of the
// editor's own requests unchanged, because the editor chooses them.
type binding struct {
	names map[string]string // ids of sessions, tool calls and messages
	paths [][2]string       // directories, longest first
}

func newBinding(paths [][2]string) *binding {
	b := &binding{names: map[string]string{}}
	for _, p := range paths {
		if p[0] != "" && p[0] != "/" && p[1] != "" && p[0] != p[1] {
			b.paths = append(b.paths, p)
		}
	}
	slices.SortStableFunc(b.paths, func(p, q [2]string) int { return len(q[0]) - len(p[0]) })
	return b
}

func (b *binding) reversed() *binding {
	r := newBinding(lists.Map(b.paths, func(p [2]string) [2]string { return [2]string{p[1], p[0]} }))
	for k, v := range b.names {
		r.names[v] = k
	}
	return r
}

// text returns a string of the recording with the live ids and directories.
func (b *binding) text(s string) string {
	if now, ok := b.names[s]; ok {
		return now
	}
	for _, p := range b.paths {
		s = ReplacePath(s, p[0], p[1])
	}
	return s
}

// ReplacePath replaces a directory where it is a whole path or followed by a separator. It does not replace part of a
// longer name.
func ReplacePath(s, from, to string) string {
	if !strings.Contains(s, from) {
		return s
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, from)
		out.WriteString(before)
		switch {
		case !found:
			return out.String()
		case rest == "" || !isNamePart(rest[0]):
			out.WriteString(to)
		default:
			out.WriteString(from)
		}
		s = rest
	}
}

func isNamePart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// frame returns a recorded frame with the live ids and directories. If id is not "", it replaces the frame's id.
func (b *binding) frame(raw []byte, id wire.ID) []byte {
	v, err := wire.Parse(raw)
	if err != nil {
		return raw // a line that is not JSON contains no ids
	}
	r := rewriter{change: func(at place, v wire.Value, text string) (string, bool) {
		if id != "" && len(at) == 1 && at[0] == "id" {
			return string(id), true
		}
		if v.Kind() != wire.String || len(at) <= 1 {
			return "", false
		}
		now := b.text(text)
		return serve.Quote(now), now != text
	}}
	return r.rewrite(raw, v)
}
