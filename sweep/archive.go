package sweep

import (
	"slices"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/scenarios/script"
)

// Archive is a scenario in its parts: sweeping rewrites scenarios, so that what it
// finds is a file that anybody can read, run and change.
type Archive struct {
	Lines []*script.Line
	Model string // llm.yaml, "" if there is none
	Files []script.ArchiveFile
}

// Split takes a scenario apart.
func Split(text []byte) Archive {
	f, _ := script.Parse("", text)
	out := Archive{Lines: f.Lines}
	for len(out.Lines) > 0 && out.Lines[len(out.Lines)-1].Kind == script.Blank {
		out.Lines = out.Lines[:len(out.Lines)-1]
	}
	for _, part := range f.Files {
		if part.Name == "llm.yaml" {
			out.Model = string(part.Data)
		} else {
			out.Files = append(out.Files, part)
		}
	}
	return out
}

// Text returns the scenario as a file.
func (a Archive) Text() []byte {
	f := &script.File{Lines: a.Lines, Files: a.Files}
	if a.Model != "" {
		model := script.ArchiveFile{File: txtar.File{Name: "llm.yaml", Data: []byte(a.Model)}}
		f.Files = append([]script.ArchiveFile{model}, a.Files...)
	}
	return script.Format(f)
}

// Holds reports whether the archive holds a file of the workspace.
func (a Archive) Holds(name string) bool {
	return slices.ContainsFunc(a.Files, func(f script.ArchiveFile) bool { return f.Name == name })
}
