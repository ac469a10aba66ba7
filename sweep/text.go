package sweep

import (
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/scenarios/script"
)

// archive is a scenario in its parts: sweeping rewrites scenarios, so that what it
// finds is a file that anybody can read, run and change.
type archive struct {
	lines []*script.Line
	model string // llm.yaml, "" if there is none
	files []script.ArchiveFile
}

func split(text []byte) archive {
	f, _ := script.Parse("", text)
	out := archive{lines: f.Lines}
	for len(out.lines) > 0 && out.lines[len(out.lines)-1].Kind == script.Blank {
		out.lines = out.lines[:len(out.lines)-1]
	}
	for _, part := range f.Files {
		if part.Name == "llm.yaml" {
			out.model = string(part.Data)
		} else {
			out.files = append(out.files, part)
		}
	}
	return out
}

func (a archive) text() []byte {
	f := &script.File{Lines: a.lines, Files: a.files}
	if a.model != "" {
		model := script.ArchiveFile{File: txtar.File{Name: "llm.yaml", Data: []byte(a.model)}}
		f.Files = append([]script.ArchiveFile{model}, a.files...)
	}
	return script.Format(f)
}

// holds reports whether the archive holds a file of the workspace.
func (a archive) holds(name string) bool {
	return slices.ContainsFunc(a.files, func(f script.ArchiveFile) bool { return f.Name == name })
}

// looks reports whether a line leaves the run as it is.
func (b *base) looks(l *script.Line) bool {
	if l.Kind != script.Command || l.Negated {
		return true
	}
	c := b.commands[l.Name.Raw()]
	return c != nil && c.Looks()
}

// setsUp reports whether a line stands before the agent starts, or may. needs saw
// asks what has come, so it does not.
func (b *base) setsUp(l *script.Line) bool {
	c := b.commands[l.Name.Raw()]
	return c != nil && c.SetsUp() && !l.Says("needs", "saw")
}

// command is the name of the command of a line, "" if it has none.
func command(l *script.Line) string {
	if l.Kind != script.Command {
		return ""
	}
	return l.Name.Raw()
}

// opensSession returns the name of the session that a line opens, "" if it opens
// none.
func opensSession(l *script.Line) string {
	if len(l.Words) > 1 && (l.Says("session", "new") || l.Says("session", "load") || l.Says("session", "resume")) {
		return l.Words[1].Raw()
	}
	return ""
}

// plainPrompt returns the quoted text of a prompt, as it is spelled; "" if it has
// none.
func plainPrompt(l *script.Line) string {
	for _, w := range l.Words {
		if s := w.String(); strings.HasPrefix(s, "'") && strings.HasSuffix(s, "'") && !strings.ContainsAny(s, "$@") {
			return s
		}
	}
	return ""
}
