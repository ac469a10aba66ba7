package replay

import (
	"sort"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/wire"
)

// binding knows what names of the recording are called now. Terminal ids and
// the ids of our own requests are the editor's, and stay as they were.
type binding struct {
	names map[string]string // ids of sessions, tool calls, messages
	paths [][2]string       // directories, the longest first
}

func newBinding(paths [][2]string) *binding {
	b := &binding{names: map[string]string{}}
	for _, p := range paths {
		if p[0] != "" && p[0] != "/" && p[1] != "" && p[0] != p[1] {
			b.paths = append(b.paths, p)
		}
	}
	sort.SliceStable(b.paths, func(i, j int) bool { return len(b.paths[i][0]) > len(b.paths[j][0]) })
	return b
}

func (b *binding) reversed() *binding {
	r := &binding{names: map[string]string{}}
	for k, v := range b.names {
		r.names[v] = k
	}
	r.paths = lists.Map(b.paths, func(p [2]string) [2]string { return [2]string{p[1], p[0]} })
	sort.SliceStable(r.paths, func(i, j int) bool { return len(r.paths[i][0]) > len(r.paths[j][0]) })
	return r
}

// text is a string of the recording as it is called now.
func (b *binding) text(s string) string {
	if now, ok := b.names[s]; ok {
		return now
	}
	for _, p := range b.paths {
		s = ReplacePath(s, p[0], p[1])
	}
	return s
}

// ReplacePath replaces a directory where it stands as a path, and not as the
// beginning of a longer name.
func ReplacePath(s, from, to string) string {
	if !strings.Contains(s, from) {
		return s
	}
	var out strings.Builder
	for {
		i := strings.Index(s, from)
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		rest := s[i+len(from):]
		if rest == "" || !isNamePart(rest[0]) {
			out.WriteString(to)
		} else {
			out.WriteString(from)
		}
		s = rest
	}
}

func isNamePart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// frame is a recorded frame with everything in it called as it is now. id, if
// any, replaces the frame's own id.
func (b *binding) frame(raw []byte, id wire.ID) []byte {
	v, err := wire.Parse(raw)
	if err != nil {
		return raw // what is no JSON has no names
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
