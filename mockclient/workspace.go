package mockclient

import (
	"path/filepath"
	"slices"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// workspace is what the editor knows about one session.
type workspace struct {
	id        string
	known     bool // opened by a session method, not just named
	roots     []*confined.Root
	prompts   map[int]bool // Seqs of prompts without an answer
	cancelled map[int]bool // those of them that were cancelled
}

func (e *Editor) workspace(id string) *workspace {
	w := e.sessions[id]
	if w == nil {
		w = &workspace{id: id, prompts: map[int]bool{}, cancelled: map[int]bool{}}
		e.sessions[id] = w
	}
	return w
}

// openWorkspace sets the directories of a session. A directory that cannot be
// opened holds no files.
func (e *Editor) openWorkspace(id string, dirs []string) {
	w := e.workspace(id)
	w.close()
	w.known = true
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		if r, err := confined.Open(dir); err == nil {
			w.roots = append(w.roots, r)
		}
	}
}

func (w *workspace) close() {
	for _, r := range w.roots {
		r.Close()
	}
	w.roots = nil
}

// directoriesOf are the directories that the params of a session method name.
func directoriesOf(params wire.Value) []string {
	var dirs []string
	if cwd := params.Get("cwd"); cwd.Kind() == wire.String {
		dirs = append(dirs, cwd.Str())
	}
	for dir := range params.Get("additionalDirectories").Items() {
		if dir.Kind() == wire.String {
			dirs = append(dirs, dir.Str())
		}
	}
	return dirs
}

func sortBySeq(entries []transcript.Entry) {
	slices.SortFunc(entries, func(a, b transcript.Entry) int { return a.Seq - b.Seq })
}
