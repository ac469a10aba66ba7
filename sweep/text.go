package sweep

import (
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// archive is the text of a scenario in its parts: sweeping rewrites text, so
// that what it finds is a file that anybody can read, run and change.
type archive struct {
	lines []string // the script
	model string   // llm.yaml, "" if there is none
	files []txtar.File
}

func split(text []byte) archive {
	a := txtar.Parse(text)
	out := archive{lines: strings.Split(strings.TrimRight(string(a.Comment), "\n"), "\n")}
	for _, f := range a.Files {
		if f.Name == "llm.yaml" {
			out.model = string(f.Data)
		} else {
			out.files = append(out.files, f)
		}
	}
	return out
}

func (a archive) text() []byte {
	t := txtar.Archive{Comment: []byte(strings.TrimRight(strings.Join(a.lines, "\n"), "\n") + "\n")}
	if a.model != "" {
		t.Files = append(t.Files, txtar.File{Name: "llm.yaml", Data: []byte(a.model)})
	}
	t.Files = append(t.Files, a.files...)
	return txtar.Format(&t)
}

// holds reports whether the archive holds a file of the workspace.
func (a archive) holds(name string) bool {
	return slices.ContainsFunc(a.files, func(f txtar.File) bool { return f.Name == name })
}

// words splits a line of a script at spaces outside quotes. Quotes stay.
func words(line string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	for _, r := range strings.TrimSpace(line) {
		if r == '\'' {
			quoted = !quoted
		}
		if !quoted && (r == ' ' || r == '\t') {
			if b.Len() > 0 {
				out = append(out, b.String())
				b.Reset()
			}
			continue
		}
		b.WriteRune(r)
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}

// command is the first word of a line that is neither condition nor !.
func command(line string) string {
	for _, w := range words(line) {
		if !strings.HasPrefix(w, "[") {
			return w
		}
	}
	return ""
}

// judges are the lines that only look: without them the run is the same.
var judges = []string{"check", "saw", "!", "text", "cmp", "exists", "model", "descendants", "stderr", "same-history", "canary", "exec", "golden", "tag", "role"}

// looks reports whether a line leaves the run as it is.
func looks(line string) bool {
	c := command(line)
	return c == "" || strings.HasPrefix(c, "#") || slices.Contains(judges, c)
}

// quote writes a text as one literal word of a script.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
