// Package confined reads and writes files in a directory that a hostile program
// shares: no link leads out of it, only regular files are opened, and no read
// blocks, lasts longer than its context or takes more memory than it may.
package confined

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Limit is how many bytes of one file are kept in memory at most.
const Limit = 64 << 20

// Errors that a file's state causes, wrapped in an *fs.PathError.
var (
	ErrOutside    = errors.New("the path leads out of the directory")
	ErrNotRegular = errors.New("want a regular file")
	ErrTooLarge   = errors.New("the file is too large")
)

// Root is a directory. It stays the one that was opened, also when the program
// puts something else in its place.
type Root struct {
	dir, real string // as named, and without symbolic links
	root      *os.Root
}

// Open opens a directory, which is trusted until then.
func Open(dir string) (*Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &Root{dir, real, root}, nil
}

// Dir is the absolute path of the directory, as it was named.
func (r *Root) Dir() string { return r.dir }

// Close lets go of the directory.
func (r *Root) Close() error { return r.root.Close() }

// Below reports whether the directory is dir or below it, whatever links lead there; "" is above all.
func (r *Root) Below(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if dir == "" || err != nil {
		return dir == ""
	}
	rel, err := filepath.Rel(real, r.real)
	return err == nil && filepath.IsLocal(rel)
}

// Rel returns the path relative to the directory of an absolute path that has no
// other way out than links.
func (r *Root) Rel(path string) (string, bool) {
	for _, base := range []string{r.dir, r.real} {
		if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// follow does something with a file. An os.Root refuses all absolute links, so
// one that stays inside is resolved and tried again, through the root like any
// other path. last says that a link at the end of the path is followed too.
func (r *Root) follow(name string, last bool, do func(name string) error) error {
	err := do(name)
	if !escapes(err) {
		return err
	}
	path, base := filepath.Join(r.real, name), ""
	real, problem := filepath.EvalSymlinks(path)
	if !last || problem != nil { // a file that is not there yet is where its directory is
		path, base = filepath.Split(path)
		real, problem = filepath.EvalSymlinks(path)
	}
	if problem == nil {
		if rel, ok := r.Rel(filepath.Join(real, base)); ok {
			err = do(rel)
		}
	}
	if escapes(err) {
		return &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	return err
}

// escapes tells an os.Root's refusal from other errors. The os package has no
// exported error for it, but its text is documented by its tests.
func escapes(err error) bool {
	path := (*fs.PathError)(nil)
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "escapes from parent")
}

// Lstat describes a file; a link at the end of the path is not followed.
func (r *Root) Lstat(name string) (fs.FileInfo, error) { return r.described(name, false, r.root.Lstat) }

// Stat describes the file that a path leads to.
func (r *Root) Stat(name string) (fs.FileInfo, error) { return r.described(name, true, r.root.Stat) }

func (r *Root) described(name string, last bool, stat func(string) (fs.FileInfo, error)) (info fs.FileInfo, err error) {
	err = r.follow(name, last, func(name string) error {
		info, err = stat(name)
		return err
	})
	return info, err
}

// Readlink returns where a link leads.
func (r *Root) Readlink(name string) (string, error) { return r.root.Readlink(name) }

// ReadDir returns up to limit entries of a directory, in no order. Links on the
// path are not followed out of the root.
func (r *Root) ReadDir(name string, limit int) ([]fs.DirEntry, error) {
	var f *os.File
	err := r.follow(name, true, func(name string) (err error) {
		f, err = r.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(limit)
	if err == io.EOF {
		err = nil
	}
	return entries, err
}

// Open opens a regular file for reading.
func (r *Root) Open(name string) (*os.File, error) {
	return r.open(name, os.O_RDONLY, 0)
}

// open opens a regular file, and nothing else: what is there is looked at before,
// since opening a device can do something, and after, since it can change.
func (r *Root) open(name string, flag int, perm fs.FileMode) (f *os.File, err error) {
	err = r.follow(name, true, func(at string) error {
		if info, err := r.root.Stat(at); err == nil && !info.Mode().IsRegular() {
			return notRegular(name, info.Mode())
		}
		if f, err = r.root.OpenFile(at, flag|nonblock, perm); err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = notRegular(name, info.Mode())
		}
		if err != nil {
			f.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func notRegular(name string, mode fs.FileMode) error {
	what := "a special file"
	switch {
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a FIFO (named pipe)"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it is %s: %w", what, ErrNotRegular)}
}

// ReadFile returns the content of a regular file, up to limit bytes.
func (r *Root) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	return Read(ctx, r, name, func(f *os.File, in io.Reader) ([]byte, error) {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if info.Size() > limit {
			return nil, TooLarge(name, info.Size(), limit)
		}
		data, err := io.ReadAll(io.LimitReader(in, limit+1))
		if err == nil && int64(len(data)) > limit {
			err = TooLarge(name, int64(len(data)), limit)
		}
		return data, err
	})
}

// ReadNamed reads a regular file of at most Limit bytes that the user named, so
// that links may lead anywhere.
func ReadNamed(ctx context.Context, path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	r, err := Open(filepath.Dir(real))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.ReadFile(ctx, filepath.Base(real), Limit)
}

// OpenBelow opens a regular file below a directory that the user named.
func OpenBelow(dir, name string) (*os.File, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Open(name)
}

// ReadBelow reads a regular file of at most Limit bytes below a directory that the
// user named.
func ReadBelow(dir, name string) ([]byte, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.ReadFile(context.Background(), name, Limit)
}

// TooLarge is the error about a file that has at least size bytes where limit
// are read at most.
func TooLarge(name string, size, limit int64) error {
	err := fmt.Errorf("%w: %d bytes or more, want %d at most", ErrTooLarge, size, limit)
	return &fs.PathError{Op: "read", Path: name, Err: err}
}

// Read opens a regular file and calls use with it, and with a reader of it that
// ends with ctx. It returns when ctx ends, even if the system's answer does not
// come: use goes on by itself then, and must touch nothing of its caller's.
func Read[T any](ctx context.Context, r *Root, name string, use func(*os.File, io.Reader) (T, error)) (T, error) {
	return Until(ctx, func() (T, error) {
		f, err := r.Open(name)
		if err != nil {
			var none T
			return none, err
		}
		defer f.Close()
		return use(f, reader{ctx, f})
	})
}

// Until calls do and returns what it does, or the end of ctx if that comes first.
func Until[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

type reader struct {
	ctx context.Context
	in  io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.in.Read(p)
}

// WriteFile writes a regular file and the directories above it, which get the
// permissions of the file and those to be entered.
func (r *Root) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if dir := filepath.Dir(name); dir != "." {
		if err := r.follow(dir, true, func(dir string) error { return r.root.MkdirAll(dir, perm|0o111) }); err != nil {
			return err
		}
	}
	f, err := r.open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Symlink makes a link to target, and the directories above it.
func (r *Root) Symlink(target, name string) error {
	if err := r.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return r.root.Symlink(target, name)
}

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
