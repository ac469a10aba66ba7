package mockclient

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// String returns the conversation as text for people, with one paragraph per part.
func (h History) String() string {
	return h.render(view{thoughts: true, plans: true, statuses: true, titles: true})
}

// Same returns the difference between two histories of the same conversation, or "" if they are equivalent. Lines
// that are only in want begin with -, lines that are only in got with +.
//
// Same ignores where texts are split into chunks, how ids divide messages, and white space around a text. The title
// of a tool call may differ, but must not be missing. Thoughts and plans are compared only if both histories have
// some, because the protocol does not require an agent to repeat them. A tool call that is not finished in want may
// have any status in got.
func Same(want, got History) string {
	both := func(kind string) bool { return want.has(kind) && got.has(kind) }
	v := view{thoughts: both("thought"), plans: both("plan"), statuses: true, open: map[string]bool{}}
	for _, m := range want {
		for _, p := range m.Parts {
			if p.Tool != nil && (p.Tool.Status == "pending" || p.Tool.Status == "in_progress") {
				v.open[p.Tool.ID] = true
			}
		}
	}
	a, b := want.render(v), got.render(v)
	if a == b {
		return ""
	}
	return udiff.Unified("want", "got", a, b)
}

func (h History) has(kind string) bool {
	for _, m := range h {
		for _, p := range m.Parts {
			if p.Kind == kind {
				return true
			}
		}
	}
	return false
}

type view struct {
	thoughts, plans, statuses, titles bool
	open                              map[string]bool // ids of the tool calls whose status is not shown
}

func (h History) render(v view) string {
	var b strings.Builder
	role := ""
	var said strings.Builder // the text of kind last that may still continue
	last := ""
	flush := func() {
		// Models often begin reasoning with empty lines, which a replayed history need not preserve.
		if text := strings.TrimSpace(said.String()); text != "" {
			b.WriteString(role + map[string]string{"text": ": ", "thought": " thinks: "}[last])
			b.WriteString(strings.ReplaceAll(text, "\n", "\n  ") + "\n")
		}
		said.Reset()
		last = ""
	}
	for _, m := range h {
		for _, p := range m.Parts {
			if p.Kind == "thought" && !v.thoughts || p.Kind == "plan" && !v.plans {
				continue
			}
			if p.Text == "" && (p.Kind == "text" || p.Kind == "thought") {
				continue // an empty chunk does not end the text before it
			}
			if m.Role != role {
				flush()
				role = m.Role
			}
			switch p.Kind {
			case "text", "thought":
				if last != p.Kind {
					flush()
					last = p.Kind
				}
				said.WriteString(p.Text)
				continue
			}
			flush()
			switch p.Kind {
			case "tool":
				p.Tool.render(&b, v)
			case "plan":
				b.WriteString("agent plans:\n")
				for _, e := range p.Plan {
					fmt.Fprintf(&b, "  [%s] %s (%s)\n", e.Status, e.Content, e.Priority)
				}
			default:
				fmt.Fprintf(&b, "%s: [%s %s]\n", role, p.Kind, p.Text)
			}
		}
	}
	flush()
	return b.String()
}

func (t *ToolCall) render(b *strings.Builder, v view) {
	fmt.Fprintf(b, "agent uses %s", t.Kind)
	switch {
	case v.titles:
		b.WriteString(": " + t.Title)
	case t.Title == "":
		b.WriteString(" without a title")
	}
	if v.statuses && !v.open[t.ID] {
		fmt.Fprintf(b, " (%s)", t.Status)
	}
	b.WriteByte('\n')
	for _, d := range t.Diffs {
		fmt.Fprintf(b, "  changes %s\n", d.Path)
	}
}
