package scenarios

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/workspace"
)

// sandbox is the directory of one run, outside any repository: the agent's
// workspace, its HOME and its temporary files.
type sandbox struct {
	root, work, home, temp string
}

// newSandbox makes the directories below parent, "" for the system's place for
// temporary files.
func newSandbox(parent string) (*sandbox, error) {
	root, err := os.MkdirTemp(parent, "acp-test-run-")
	if err != nil {
		return nil, fmt.Errorf("making the run's directory: %w", err)
	}
	// Agents report resolved paths; ours must be the same.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("resolving the run's directory: %w", err)
	}
	s := &sandbox{root, filepath.Join(root, "work"), filepath.Join(root, "home"), filepath.Join(root, "tmp")}
	for _, d := range []string{s.work, s.home, s.temp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, fmt.Errorf("making the run's directory: %w", err)
		}
	}
	return s, nil
}

func (s *sandbox) remove() error { return os.RemoveAll(s.root) }

// writeFiles writes files below dir, which must not be left through a name.
func writeFiles(dir string, files map[string][]byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if d := filepath.Dir(name); d != "." {
			if err := root.MkdirAll(d, 0o755); err != nil {
				return fmt.Errorf("writing %s: %w", name, err)
			}
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(files[name], []byte("#!")) {
			mode = 0o755
		}
		if err := root.WriteFile(name, files[name], mode); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// difference is the change from one snapshot to the next, as text for people.
func difference(before, after workspace.Snapshot) string {
	var b strings.Builder
	for _, c := range before.Changes(after) {
		fmt.Fprintf(&b, "%s %s\n%s", c.What, c.Path, golden.Diff(c.Before, c.After))
	}
	return b.String()
}
