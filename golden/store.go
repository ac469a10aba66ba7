package golden

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/confined"
)

// extension is the file name extension of goldens.
const extension = ".golden"

// Store keeps goldens as <agent>/<scenario>.golden. Dir takes precedence over
// Embedded; either may be missing. Store writes only to Dir. It does not follow
// links in Dir that lead out of it.
type Store struct {
	Dir      string
	Embedded fs.FS
}

// Name returns the path of a golden in a store, with slashes.
func Name(agent, scenario string) string { return agent + "/" + scenario + extension }

// Read returns the golden of a scenario and its source: the path of a file, or
// "embedded:" and a name. If there is no golden, the error wraps
// fs.ErrNotExist. Any other error means that the golden could not be read.
func (s Store) Read(agent, scenario string) (text, source string, err error) {
	name, err := safeName(agent, scenario)
	if err != nil {
		return "", "", err
	}
	if s.Dir != "" {
		file := filepath.Join(s.Dir, filepath.FromSlash(name))
		data, err := confined.ReadBelow(s.Dir, filepath.FromSlash(name))
		if err == nil {
			return normal(data), file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", file, fmt.Errorf("reading the golden of %q: %w", scenario, err)
		}
	}
	if s.Embedded != nil {
		data, err := fs.ReadFile(s.Embedded, name)
		if err == nil {
			return normal(data), "embedded:" + name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "embedded:" + name, fmt.Errorf("reading the golden of %q: %w", scenario, err)
		}
	}
	return "", "", fmt.Errorf("golden of %q for agent %q: %w", scenario, agent, fs.ErrNotExist)
}

// normal undoes git's conversion of line ends on Windows.
func normal(data []byte) string { return strings.ReplaceAll(string(data), "\r\n", "\n") }

// Write writes a golden into Dir atomically.
func (s Store) Write(agent, scenario, text string) error {
	name, err := safeName(agent, scenario)
	if err != nil {
		return err
	}
	if s.Dir == "" {
		return fmt.Errorf("writing the golden of %q: the store has no directory", scenario)
	}
	err = os.MkdirAll(s.Dir, 0o777)
	if err == nil {
		err = s.in(func(root *os.Root) error { return write(root, name, text) })
	}
	if err != nil {
		return fmt.Errorf("writing the golden of %q: %w", scenario, err)
	}
	return nil
}

// Remove removes a golden from Dir. It returns an error if Dir has no such
// golden, even if Embedded has it.
func (s Store) Remove(agent, scenario string) error {
	name, err := safeName(agent, scenario)
	if err == nil {
		err = s.in(func(root *os.Root) error { return root.Remove(name) })
	}
	if err != nil {
		return fmt.Errorf("removing the golden of %q: %w", scenario, err)
	}
	return nil
}

func write(root *os.Root, name, text string) error {
	half := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	err := root.WriteFile(half, []byte(text), 0o644)
	if err == nil {
		err = root.Rename(half, name)
	}
	if err != nil {
		_ = root.Remove(half) // the file may not exist
	}
	return err
}

func (s Store) in(do func(*os.Root) error) error {
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// List returns the sorted ids of the scenarios that have a golden for the agent
// in Dir or Embedded.
func (s Store) List(agent string) []string {
	var all []string
	for _, root := range s.roots() {
		sub, err := fs.Sub(root, agent)
		if err != nil {
			continue
		}
		// A directory that cannot be read counts as empty. Read returns the
		// error if a golden in it is needed.
		_ = fs.WalkDir(sub, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(name, extension) {
				all = append(all, strings.TrimSuffix(name, extension))
			}
			return nil
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s Store) roots() []fs.FS {
	var roots []fs.FS
	if s.Dir != "" {
		roots = append(roots, os.DirFS(s.Dir))
	}
	if s.Embedded != nil {
		roots = append(roots, s.Embedded)
	}
	return roots
}

// safeName returns a golden's path, or an error if it would lie outside the store.
func safeName(agent, scenario string) (string, error) {
	name := Name(agent, scenario)
	if agent == "" || scenario == "" || strings.Contains(agent, "/") || !fs.ValidPath(name) ||
		strings.Contains(name, `\`) {
		return "", fmt.Errorf("scenario %q of agent %q cannot name a golden", scenario, agent)
	}
	return name, nil
}

//go:embed reference reference-acp-v2 reference-ag-ui
var shipped embed.FS

// Shipped returns the goldens of the reference agent for the shipped suites. It
// is a value for Store.Embedded.
func Shipped() fs.FS { return shipped }
