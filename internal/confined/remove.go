package confined

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// removing is how long RemoveAll takes at most.
const removing = time.Minute

// RemoveAll removes a directory with all that is in it, read-only or not, as
// os.RemoveAll does. However deep the directories are, it opens one at a time:
// what is in one is moved up before it is removed. It follows no link. The error
// is os.ErrDeadlineExceeded if it takes too long.
func RemoveAll(dir string) error {
	before, err := os.Lstat(dir)
	if err != nil || !before.IsDir() {
		return os.RemoveAll(dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return os.RemoveAll(dir)
	}
	defer root.Close()
	if now, err := root.Stat("."); err != nil || !os.SameFile(before, now) {
		return os.RemoveAll(dir) // a link by now
	}
	end := time.Now().Add(removing)
	if err = empty(root, end); err == nil {
		err = os.Remove(dir)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return os.RemoveAll(dir)
}

// empty removes everything in a root.
func empty(root *os.Root, end time.Time) error {
	for {
		list, err := some(root, ".")
		if err != nil || len(list) == 0 {
			return err
		}
		for _, d := range list {
			if d.IsDir() {
				err = raise(root, d.Name(), end)
			}
			if err == nil {
				err = root.Remove(d.Name())
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if time.Now().After(end) {
				return fmt.Errorf("removing %s: %w", root.Name(), os.ErrDeadlineExceeded)
			}
		}
	}
}

// raise removes the files of a directory in a root, and moves its directories to
// the root.
func raise(root *os.Root, dir string, end time.Time) error {
	_ = root.Chmod(dir, 0o700) // if it fails, so does what follows
	for time.Now().Before(end) {
		list, err := some(root, dir)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, d := range list {
			name := filepath.Join(dir, d.Name())
			if d.IsDir() {
				_ = root.Chmod(name, 0o700)
				err = root.Rename(name, "removed-"+rand.Text())
			} else {
				err = root.Remove(name)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return fmt.Errorf("removing %s: %w", root.Name(), os.ErrDeadlineExceeded)
}

// some returns some entries of a directory, none if it is empty.
func some(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(1000)
	if err == io.EOF {
		err = nil
	}
	return list, err
}
