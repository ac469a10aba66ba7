package scenarios

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/golden"
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

// snapshot is what a workspace holds: the content of small text files, the
// hash of others, the target of links.
type snapshot map[string]string

// shown is the size up to which a file's text stands in the difference.
const shown = 64 << 10

func takeSnapshot(dir string) (snapshot, error) {
	s := snapshot{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that is gone again, or that we may not read, is no evidence
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			s[rel] = "link to " + target + "\n"
			return nil
		case !d.Type().IsRegular():
			s[rel] = "special file " + d.Type().String() + "\n"
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			s[rel] = "unreadable: " + err.Error() + "\n"
			return nil
		}
		if len(data) > shown || !utf8.Valid(data) {
			sum := sha256.Sum256(data)
			s[rel] = fmt.Sprintf("%d bytes, sha256 %s\n", len(data), hex.EncodeToString(sum[:8]))
			return nil
		}
		s[rel] = string(data)
		return nil
	})
	return s, err
}

// difference is the change from one snapshot to the next, as text for people.
func (s snapshot) difference(after snapshot) string {
	names := map[string]bool{}
	for n := range s {
		names[n] = true
	}
	for n := range after {
		names[n] = true
	}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(names)) {
		old, had := s[n]
		now, has := after[n]
		switch {
		case had && has && old == now:
			continue
		case !had:
			fmt.Fprintf(&b, "new file %s\n", n)
		case !has:
			fmt.Fprintf(&b, "deleted %s\n", n)
		default:
			fmt.Fprintf(&b, "changed %s\n", n)
		}
		b.WriteString(golden.Diff(old, now))
	}
	return b.String()
}
