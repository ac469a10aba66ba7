package mockclient

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Snapshot is the state of a directory: paths, relative and with slashes, to
// what they hold.
type Snapshot map[string]FileState

// FileState is one file, directory or link of a Snapshot.
type FileState struct {
	Mode   string `json:"mode"` // as in ls -l
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // of regular files
	Link   string `json:"link,omitempty"`   // target of a symbolic link
}

// TakeSnapshot reads a directory without following links. What cannot be read
// has no hash.
func TakeSnapshot(dir string) (Snapshot, error) {
	s := Snapshot{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path == dir {
			return err
		}
		rel, relErr := filepath.Rel(dir, path)
		if relErr != nil {
			return relErr
		}
		if err != nil { // an unreadable directory is there all the same
			return nil
		}
		info, err := d.Info()
		if err != nil { // gone while we looked
			return nil
		}
		state := FileState{Mode: info.Mode().String()}
		switch {
		case info.Mode().IsRegular():
			state.Size = info.Size()
			state.SHA256 = hashOf(path)
		case info.Mode()&fs.ModeSymlink != 0:
			state.Link, _ = os.Readlink(path)
		}
		s[filepath.ToSlash(rel)] = state
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the workspace: %w", err)
	}
	return s, nil
}

func hashOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FileChange is one path that differs between two snapshots.
type FileChange struct {
	Path   string     `json:"path"`
	What   string     `json:"what"` // "created", "changed" or "deleted"
	Before *FileState `json:"before,omitempty"`
	After  *FileState `json:"after,omitempty"`
}

// Changes lists what differs from before to after, by path.
func Changes(before, after Snapshot) []FileChange {
	changes := []FileChange{}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		now := after[path]
		was, ok := before[path]
		switch {
		case !ok:
			changes = append(changes, FileChange{Path: path, What: "created", After: &now})
		case was != now:
			changes = append(changes, FileChange{Path: path, What: "changed", Before: &was, After: &now})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[path]; !ok {
			was := before[path]
			changes = append(changes, FileChange{Path: path, What: "deleted", Before: &was})
		}
	}
	slices.SortStableFunc(changes, func(a, b FileChange) int {
		if a.Path < b.Path {
			return -1
		} else if a.Path > b.Path {
			return 1
		}
		return 0
	})
	return changes
}
