// Package workspace records the files of an agent's workspace, finds changes between two records, and creates the
// directories of a run.
package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/confined"
)

// Snapshot records the content of a directory, except .git.
type Snapshot struct {
	files map[string]file
	// Cut is the reason why the snapshot is incomplete; "" if it is complete.
	Cut string
}

// file records one file. text describes the file to people: the content of a small text file, the size and hash of
// other files, or the target of a link. Files with equal sums have equal contents. runs is true if the file's owner
// may execute it.
type file struct {
	text, sum string
	runs      bool
}

const (
	shown    = 64 << 10  // a file's text is kept up to this size
	allShown = 64 << 20  // total size of the texts in one snapshot; other files have hashes
	largest  = 256 << 20 // larger files are not read
	entries  = 100_000   // maximum number of entries in one snapshot
	deepest  = 100       // maximum nesting of directories
	longest  = 10 * time.Second
)

// Take reads the directory sub of a root without following links. An unreadable file is recorded as such. If the
// directory is too large or reading takes too long, Take stops and sets Cut.
func Take(ctx context.Context, root *confined.Root, sub string) (Snapshot, error) {
	s := Snapshot{files: map[string]file{}}
	texts := 0
	err := walk(ctx, root, sub, func(ctx context.Context, rel string, d fs.DirEntry) error {
		if d.IsDir() {
			return nil
		}
		f, err := content(ctx, root, filepath.Join(sub, rel), d.Type())
		if err != nil {
			return err
		}
		if texts += len(f.text); texts > allShown {
			texts, f.text = texts-len(f.text), f.sum
		}
		s.files[rel] = f
		return nil
	})
	if _, ok := errors.AsType[*cutError](err); ok || err != nil && ctx.Err() != nil {
		s.Cut, err = err.Error(), nil
	}
	return s, err
}

// cutError is the reason why a walk ended early.
type cutError struct{ why string }

func (e *cutError) Error() string { return e.why }

// walk visits everything below the directory sub of a root, except .git, sorted by name. It returns a *cutError if
// the directory is too large or reading takes too long.
func walk(ctx context.Context, root *confined.Root, sub string,
	visit func(ctx context.Context, rel string, d fs.DirEntry) error) error {
	late := &cutError{fmt.Sprintf("reading it takes longer than %v", longest)}
	ctx, cancel := context.WithTimeoutCause(ctx, longest, late)
	defer cancel()
	left := entries
	var dir func(rel string, depth int) error
	dir = func(rel string, depth int) error {
		if depth > deepest {
			return &cutError{fmt.Sprintf("directories are nested more than %d deep", deepest)}
		}
		list, err := confined.Until(ctx, func() ([]fs.DirEntry, error) {
			return root.ReadDir(filepath.Join(sub, rel), left+1)
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && depth == 0:
			return err
		case len(list) > left:
			return &cutError{fmt.Sprintf("there are more than %d files", entries)}
		}
		// Ignore errors of a directory that is unreadable or has been removed.
		left -= len(list)
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, d := range list {
			if d.IsDir() && d.Name() == ".git" {
				continue
			}
			name := filepath.Join(rel, d.Name())
			err := visit(ctx, name, d)
			if err == fs.SkipDir {
				continue
			}
			if err == nil && d.IsDir() {
				err = dir(name, depth+1)
			}
			if err = cmp.Or(context.Cause(ctx), err); err != nil {
				return err
			}
		}
		return nil
	}
	return dir(".", 0)
}

// content records one file. Its only error is the end of ctx.
func content(ctx context.Context, root *confined.Root, name string, mode fs.FileMode) (file, error) {
	same := func(text string) file { return file{text: text, sum: text} }
	switch {
	case mode&fs.ModeSymlink != 0:
		target, _ := root.Readlink(name)
		return same("link to " + target + "\n"), nil
	case !mode.IsRegular():
		return same("special file " + mode.String() + "\n"), nil
	}
	f, err := confined.Read(ctx, root, name, func(f *os.File, in io.Reader) (file, error) {
		info, err := f.Stat()
		if err != nil {
			return file{}, err
		}
		if info.Size() > largest {
			return same(fmt.Sprintf("%d bytes, more than the %d that are read, changed at %s\n", info.Size(), largest,
				info.ModTime().UTC().Format(time.RFC3339Nano))), nil
		}
		head, err := io.ReadAll(io.LimitReader(in, shown+1))
		if err != nil {
			return file{}, err
		}
		sum := sha256.New()
		_, _ = sum.Write(head) // writing to a hash cannot fail
		rest, err := io.Copy(sum, io.LimitReader(in, largest))
		if err != nil {
			return file{}, err
		}
		size := int64(len(head)) + rest
		read := same(sized(size, sum) + "\n")
		if n := confined.Links(info); n > 1 {
			// A hard link may lead to any file of the user, so do not show its text.
			read.text = fmt.Sprintf("hard link, one of %d names of a file: %s", n, read.sum)
		} else if size <= shown && utf8.Valid(head) {
			read.text = string(head)
		}
		read.runs = info.Mode()&0o100 != 0
		return read, nil
	})
	switch {
	case ctx.Err() != nil:
		return file{}, context.Cause(ctx)
	case err != nil:
		return same("unreadable: " + err.Error() + "\n"), nil
	}
	return f, nil
}

// Sum returns the value that Change.Is has for a file with this content.
func Sum(content []byte) string {
	sum := sha256.New()
	_, _ = sum.Write(content) // writing to a hash cannot fail
	return sized(int64(len(content)), sum)
}

func sized(size int64, sum hash.Hash) string {
	return fmt.Sprintf("%d bytes, sha256 %s", size, hex.EncodeToString(sum.Sum(nil)[:8]))
}

// Change is one file that differs between two snapshots.
type Change struct {
	What          string // one of "new file", "changed", "deleted"
	Path          string
	Before, After string
	// Is is the size and hash of the file after the change, or another description of it; "" if the file was deleted.
	Is string
	// Mode says whether the file can now be executed: "can be executed" or "cannot be executed". It is "" if that did
	// not change.
	Mode string
}

// Changes lists the differences from s to after, by path. If one snapshot is incomplete, files that are only in the
// other snapshot are ignored.
func (s Snapshot) Changes(after Snapshot) []Change {
	all := maps.Clone(s.files)
	maps.Copy(all, after.files)
	var changes []Change
	for _, path := range slices.Sorted(maps.Keys(all)) {
		before, had := s.files[path]
		now, has := after.files[path]
		c := Change{What: "changed", Path: path, Before: before.text, After: now.text, Is: strings.TrimSuffix(now.sum, "\n")}
		if had && has && before.runs != now.runs {
			c.Mode = map[bool]string{true: "can be executed", false: "cannot be executed"}[now.runs]
		}
		switch {
		case had && has && before.sum == now.sum && c.Mode == "", !had && s.Cut != "", !has && after.Cut != "":
			continue
		case !had:
			c.What = "new file"
		case !has:
			c.What = "deleted"
		}
		changes = append(changes, c)
	}
	return changes
}

// Copy copies everything below a root to the new directory to: directories, links, and regular files that are not too
// large. If it leaves files out, it returns an error that names them.
func Copy(ctx context.Context, root *confined.Root, to string) error {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	out, err := confined.Open(to)
	if err != nil {
		return err
	}
	defer out.Close()
	var missing []error
	err = walk(ctx, root, ".", func(ctx context.Context, rel string, d fs.DirEntry) error {
		err := error(nil)
		switch at := filepath.Join(to, rel); {
		case d.IsDir():
			err = os.Mkdir(at, 0o777)
		case d.Type()&fs.ModeSymlink != 0:
			target, _ := root.Readlink(rel)
			err = os.Symlink(target, at)
		default:
			var data []byte
			if data, err = root.ReadFile(ctx, rel, confined.Limit); err == nil {
				perm := fs.FileMode(0o666)
				if info, problem := d.Info(); problem == nil {
					perm |= info.Mode().Perm() & 0o111
				}
				err = out.WriteFile(rel, data, perm)
			}
		}
		if err != nil && len(missing) < 20 {
			missing = append(missing, err)
		}
		return nil
	})
	return errors.Join(append(missing, err)...)
}

// Read returns the regular files below the directory sub of a root, by slash-separated path. It returns an error if
// there are more than most files, or more than limit bytes in total.
func Read(ctx context.Context, root *confined.Root, sub string, most int, limit int64) (map[string][]byte, error) {
	files := map[string][]byte{}
	left := limit
	err := walk(ctx, root, sub, func(ctx context.Context, rel string, d fs.DirEntry) error {
		if !d.Type().IsRegular() {
			return nil
		}
		if len(files) == most {
			return &cutError{fmt.Sprintf("there are more than %d files", most)}
		}
		data, err := root.ReadFile(ctx, filepath.Join(sub, rel), confined.Limit)
		if left -= int64(len(data)); err == nil && left < 0 {
			err = &cutError{fmt.Sprintf("there are more than %d MiB", limit>>20)}
		}
		files[filepath.ToSlash(rel)] = data
		return err
	})
	return files, err
}

// Dirs contains the paths of a run's directories: below Root, the agent's workspace Work, its HOME, and Temp for its
// temporary files. They are outside any repository.
type Dirs struct {
	Root, Work, Home, Temp string
}

// MakeDirs creates the directories of a run in root, which must exist. It resolves links in root, because agents
// report resolved paths.
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

// Write writes files below dir. files maps slash-separated paths to contents. Write returns an error if a path or a
// link leads out of dir. It makes a file executable if the content begins with #!.
func Write(dir string, files map[string][]byte) error {
	root, err := confined.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, ".", files)
}

// WriteIn is like Write, but writes below the directory sub of a root.
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
