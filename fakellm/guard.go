package fakellm

import (
	"fmt"
	"slices"
	"strings"
)

// facts are the fields of a request that conditions compare.
type facts struct {
	r      *request
	prompt *Prompt
}

func (c Condition) String() string {
	switch {
	case c.Pattern != nil && c.Negate:
		return fmt.Sprintf("%s!~ %q", c.Field, c.Pattern)
	case c.Pattern != nil:
		return fmt.Sprintf("%s~ %q", c.Field, c.Pattern)
	}
	return fmt.Sprintf("%s: %q", c.Field, c.Value)
}

// holds reports whether all conditions hold.
func (f *facts) holds(g Guard) bool {
	return !slices.ContainsFunc(g, func(c Condition) bool { return !f.check(c) })
}

func (f *facts) check(c Condition) bool {
	if c.Field == "tool" {
		return slices.ContainsFunc(f.r.toolNames(), c.match) != c.Negate
	}
	return c.match(f.text(c.Field)) != c.Negate
}

func (c Condition) match(s string) bool {
	if c.Pattern != nil {
		return c.Pattern.MatchString(s)
	}
	return strings.TrimSpace(s) == strings.TrimSpace(c.Value)
}

// text returns a field. user is what the user said last, all of it; prompt is
// the editor's text alone.
func (f *facts) text(field string) string {
	r := f.r
	switch field {
	case "user":
		return r.lastRun(roleUser, len(r.items))
	case "prompt":
		if f.prompt != nil {
			return f.prompt.Text
		}
	case "result":
		return strings.Join(r.results(), "\n")
	case "system":
		return r.systemText()
	case "model":
		return r.model
	case "wire":
		return r.wire
	case "path":
		return r.path
	case "body":
		return string(r.raw)
	case "tool":
		return strings.Join(r.toolNames(), " ")
	case "tools":
		return fmt.Sprint(len(r.tools) > 0)
	case "schema":
		return fmt.Sprint(r.wantJSON)
	case "stream":
		return fmt.Sprint(r.stream)
	}
	return ""
}
