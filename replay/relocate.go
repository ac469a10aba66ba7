package replay

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

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
