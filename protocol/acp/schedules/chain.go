package schedules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// inChain has the commands that a schedule may use if it shares a process with others. Sessions that these commands
// open are named, and changes that they make are undone.
var inChain = []string{"session", "prompt", "await", "release", "cancel", "cancel-request", "check", "text", "saw",
	"model", "group", "stall", "request", "same-history", "write-shape"}

// onceInChain are the commands that a chain writes once for all its schedules.
var onceInChain = []string{"needs", "client", "files", "buffer", "env", "home", "ids", "nulls", "escapes", "policy",
	"rules", "terminal", "elicit", "mcp"}

// shared returns a key for a schedule. Schedules with equal keys can share a process. The key is "" if the schedule
// changes its process, so that it cannot share one.
func shared(s sweep.Situation, a sweep.Archive) (key string) {
	if n := of(s.Seen); n.asked > 0 || len(n.effects) > 0 || s.Point.Kind == atTerminal || s.Point.With != nil {
		return "" // answers for always and files affect other sessions too
	}
	for _, t := range s.Script.Spoken.Turns {
		if t.Mapping || slices.ContainsFunc(t.Replies, func(r fakellm.ReplyNode) bool { return r.Raw != "" }) {
			return "" // the gates of such a script cannot be renamed
		}
	}
	key = s.Script.ID
	for l := range (&script.File{Lines: a.Lines}).All() {
		c := command(l)
		switch {
		case chainHead(l), l.Negated:
		case slices.Contains(onceInChain, c):
			key += "\n" + l.String()
		case !slices.Contains(inChain, c):
			return ""
		case c == "write-shape" && !l.Says("write-shape", "coalesce") && !l.Says("write-shape", "normal"):
			return ""
		case c == "prompt" && (plainPrompt(l) == "" || strings.HasPrefix(plainPrompt(l), "'/")):
			return ""
		}
	}
	return key
}

// chainHead reports whether a line belongs to the head of a scenario. A chain has only one head, which chain writes.
func chainHead(l *script.Line) bool {
	return l.Kind != script.Command || l.Is("protocol") || l.Is("golden") || l.Is("tag")
}

// chain returns a scenario that runs several schedules one after another. keep has the lines that must not be removed.
func chain(parts []sweep.Schedule) (a sweep.Archive, keep map[string]bool) {
	b := parts[0].At.Script
	title := fmt.Sprintf("%d schedules of %s, one after another in one process.", len(parts), b.ID)
	a = sweep.Archive{Lines: append(b.Head(title), script.New("golden off"), script.New("tag cancel")),
		Files: slices.Clone(b.Files)}
	keep = map[string]bool{}
	var turns []fakellm.TurnNode
	once := func(l *script.Line) bool { return slices.Contains(onceInChain, command(l)) }
	for i, p := range parts {
		n := i + 1
		text, kept := p.Write(nil)
		main := p.At.Seen.Session
		if !slices.ContainsFunc(text.Lines, func(l *script.Line) bool { return l.Says("session", "new", main) }) {
			own := script.New("session new %s", main)
			kept[own.String()] = true
			at := slices.IndexFunc(text.Lines, func(l *script.Line) bool { return !chainHead(l) && !once(l) })
			text.Lines = slices.Insert(text.Lines, at, own)
		}
		for _, l := range text.Lines {
			if !chainHead(l) && (i == 0 || !once(l)) {
				a.Lines = append(a.Lines, numberedLine(l, n, kept, keep))
			}
		}
		if n > 1 {
			a.Lines = append(a.Lines, script.New("check SESSION-020 knows-nothing-of-others.%s", n),
				script.New("! model saw text~%s", script.Quote(fmt.Sprintf(`\(schedule [1-%d]\)`, n-1))))
		}
		for _, t := range sweep.ReadModel(text.Model).Turns {
			turns = append(turns, renamed(t, n))
		}
	}
	a.Model = (&fakellm.Document{Rest: b.Spoken.Rest, Turns: turns}).Format()
	return a, keep
}

// numberedLine returns a copy of a line for the n-th schedule of a chain. It adds n to the names and prompts that must
// be unique in a scenario. If kept has the line, the copy is added to keep.
func numberedLine(line *script.Line, n int, kept, keep map[string]bool) *script.Line {
	l := *line
	l.Words = slices.Clone(l.Words)
	last := len(l.Words) - 1
	switch {
	case l.Is("prompt"):
		text := plainPrompt(line)
		i := slices.IndexFunc(l.Words, func(w script.Word) bool { return w.String() == text })
		l.Words[i] = script.Quote(fmt.Sprintf("%s (schedule %d)", l.Words[i].Raw(), n))
	case l.Is("check"), l.Is("release"), l.Says("await", "gate"):
		l.Words[last] = script.Text(fmt.Sprintf("%s.%d", l.Words[last].Raw(), n))
	case l.Is("model") && !l.Negated && l.Words[last].Quoted:
		key, operator, value, _ := l.Words[last].Cut("~")
		l.Words[last] = script.Join(script.Text(key+operator), script.Quote(fmt.Sprintf(`%s \(schedule %d\)`, value.Raw(),
			n)))
	}
	l.Blocks = nil
	for _, block := range line.Blocks {
		lines := lists.Map(block, func(inner *script.Line) *script.Line { return numberedLine(inner, n, kept, keep) })
		l.Blocks = append(l.Blocks, lines)
	}
	keep[l.String()] = keep[l.String()] || kept[line.String()]
	return &l
}

// renamed returns a model turn in which .n is added to the names of gates, for the n-th schedule of a chain.
func renamed(t fakellm.TurnNode, n int) fakellm.TurnNode {
	out := fakellm.TurnNode{}
	for _, r := range t.Replies {
		c := fakellm.ReplyNode{}
		for _, s := range r.Steps {
			if s.Kind == "gate" {
				s.Text = fmt.Sprintf("%s.%d", s.Text, n)
			}
			c.Steps = append(c.Steps, s)
		}
		out.Replies = append(out.Replies, c)
	}
	return out
}

// furtherText matches the text of a second prompt, in a schedule or in a chain.
var furtherText = lazy.Regexp(`And another thing\.( \(schedule [0-9]\))?`)
