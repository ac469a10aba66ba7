// Package workspace says what changed in a directory.
package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"
)

// Snapshot is what a directory holds, without .git: the content of small text
// files, the hash of others, the target of links, by relative path.
type Snapshot map[string]string

// shown is the size up to which a file's text is kept.
const shown = 64 << 10

// Take reads a directory without following links. A file that cannot be looked
// at is left out.
func Take(dir string) (Snapshot, error) {
	s := Snapshot{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil:
			return nil // a file that is gone again, or that we may not read, is no evidence
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil {
			s[rel] = content(path, d.Type())
		}
		return err
	})
	return s, err
}

func content(path string, mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		return "link to " + target + "\n"
	case !mode.IsRegular():
		return "special file " + mode.String() + "\n"
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "unreadable: " + err.Error() + "\n"
	}
	if len(data) > shown || !utf8.Valid(data) {
		sum := sha256.Sum256(data)
		return fmt.Sprintf("%d bytes, sha256 %s\n", len(data), hex.EncodeToString(sum[:8]))
	}
	return string(data)
}

// Change is one file that differs between two snapshots.
type Change struct {
	What          string // "new file", "changed" or "deleted"
	Path          string
	Before, After string
}

// Changes lists what differs from s to after, by path.
func (s Snapshot) Changes(after Snapshot) []Change {
	all := maps.Clone(s)
	maps.Copy(all, after)
	var changes []Change
	for _, path := range slices.Sorted(maps.Keys(all)) {
		c := Change{"changed", path, s[path], after[path]}
		if _, had := s[path]; !had {
			c.What = "new file"
		} else if _, has := after[path]; !has {
			c.What = "deleted"
		} else if c.Before == c.After {
			continue
		}
		changes = append(changes, c)
	}
	return changes
}
