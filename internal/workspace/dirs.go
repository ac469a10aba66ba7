package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/acp-test/acp-test/internal/confined"
)

// Dirs are the directories of one run, outside any repository: the agent's
// workspace, its HOME and its temporary files, below Root.
type Dirs struct {
	Root, Work, Home, Temp string
}

// MakeDirs makes the directories of a run in root, which is there. Links in root
// are resolved, since agents report resolved paths.
func MakeDirs(root string) (*Dirs, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("resolving the run's directory: %w", err)
	}
	d := &Dirs{root, filepath.Join(root, "work"), filepath.Join(root, "home"), filepath.Join(root, "tmp")}
	for _, dir := range []string{d.Work, d.Home, d.Temp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("making the run's directory: %w", err)
		}
	}
	return d, nil
}

// Write writes files below dir, which must not be left through a name or a link.
// A file that begins with #! can be executed.
func Write(dir string, files map[string][]byte) error {
	root, err := confined.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, ".", files)
}

// WriteIn writes files below the directory sub of a root, as Write does.
func WriteIn(root *confined.Root, sub string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(files[name], []byte("#!")) {
			mode = 0o755
		}
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("writing %s: %w", name, confined.ErrOutside)
		}
		if err := root.WriteFile(filepath.Join(sub, filepath.FromSlash(name)), files[name], mode); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
