package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// Write writes files below dir, which must not be left through a name. A file
// that begins with #! can be executed.
func Write(dir string, files map[string][]byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path, mode := filepath.FromSlash(name), fs.FileMode(0o644)
		if bytes.HasPrefix(files[name], []byte("#!")) {
			mode = 0o755
		}
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := root.WriteFile(path, files[name], mode); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
