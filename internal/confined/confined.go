// Package confined reads and writes files in a directory to which a hostile program can also write. It follows no
// link out of the directory and opens only regular files. No read blocks, lasts longer than its context, or exceeds
// its memory limit.
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

// Limit is the maximum number of bytes of one file that are kept in memory.
const Limit = 64 << 20

// Errors that depend on a path or its file. They are wrapped in an *fs.PathError.
var (
	ErrOutside    = errors.New("the path leads out of the directory")
	ErrNotRegular = errors.New("want a regular file")
	ErrTooLarge   = errors.New("the file is too large")
)

// Root is an open directory. It refers to the same directory even if a program puts another directory at the path.
type Root struct {
	dir, real string // path as given, and path without symbolic links
	root      *os.Root
}

// Open opens a directory, following links in its path. No hostile program may have had access to the directory before
// this call.
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

// Dir returns the absolute path of the directory as it was given to Open.
func (r *Root) Dir() string { return r.dir }

// Close closes the directory.
func (r *Root) Close() error { return r.root.Close() }

// Below reports whether the root directory is dir or is below dir, after links are resolved. It returns true if dir
// is "".
func (r *Root) Below(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if dir == "" || err != nil {
		return dir == ""
	}
	rel, err := filepath.Rel(real, r.real)
	return err == nil && filepath.IsLocal(rel)
}

// Rel returns an absolute path relative to the directory. ok is false if the path is outside of the directory. Links
// are not resolved.
func (r *Root) Rel(path string) (string, bool) {
	for _, base := range []string{r.dir, r.real} {
		if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// follow calls do with the path of a file. An os.Root refuses every absolute link. If do fails for that reason,
// follow resolves the link and, if it stays inside the directory, calls do with the resolved path. If last is true,
// follow also resolves a link at the end of the path.
func (r *Root) follow(name string, last bool, do func(name string) error) error {
	err := do(name)
	if !escapes(err) {
		return err
	}
	path, base := filepath.Join(r.real, name), ""
	real, problem := filepath.EvalSymlinks(path)
	if !last || problem != nil { // a missing file: resolve only its directory
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

// escapes reports whether an error says that os.Root refused a path. Package os exports no error value for this, so
// escapes compares the text; a test checks that the text is still the same.
func escapes(err error) bool {
	path := (*fs.PathError)(nil)
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "escapes from parent")
}

// Lstat returns the info of a fileand does not follow a link at the end of the path.
func (r *Root) Lstat(name string) (fs.FileInfo, error) { return r.described(name, false, r.root.Lstat) }

// Stat returns the info of a file. It follows links that stay in the directory.
func (r *Root) Stat(name string) (fs.FileInfo, error) { return r.described(name, true, r.root.Stat) }

func (r *Root) described(name string, last bool, stat func(string) (fs.FileInfo, error)) (info fs.FileInfo, err error) {
	err = r.follow(name, last, func(name string) error {
		info, err = stat(name)
		return err
	})
	return info, err
}

// Readlink returns the target of a link.
func (r *Root) Readlink(name string) (string, error) { return r.root.Readlink(name) }

// ReadDir returns up to limit entries of a directory, in no particular order. It does not follow links out of the
// root.
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

// open opens only a regular file. It checks the file before opening it, because opening a device can have effects. It
// checks the file again after opening it, because another program may have replaced it.
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

// ReadFile returns the content of a regular file. It returns ErrTooLarge if the file has more than limit bytes.
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

// ReadNamed reads a regular file of at most Limit bytes that the user named.
// Links may lead anywhere.
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

// TooLarge returns the error for a file that has at least size bytes, which is more than limit.
func TooLarge(name string, size, limit int64) error {
	err := fmt.Errorf("%w: %d bytes or more, want at most %d", ErrTooLarge, size, limit)
	return &fs.PathError{Op: "read", Path: name, Err: err}
}

// Read opens a regular file and calls use with it and a reader that ends with ctx. It returns when ctx ends, even if
// a system call blocks. use may then still be running, so use must not access variables of its caller.
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

// Until calls do and returns its result, or the cause of ctx if ctx ends first. In that case, do is still running.
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

// WriteFile writes a regular file and creates the directories above it. New directories get the file's permissions
// plus the permission to enter them.
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

// Symlink makes a link to target, and creates the directories above the link.
func (r *Root) Symlink(target, name string) error {
	if err := r.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return r.root.Symlink(target, name)
}

// removing is the maximum time that RemoveAll takes.
const removing = time.Minute

// RemoveAll removes a directory with all its content, like os.RemoveAll, but also if directories are read-only. It
// can remove directories of any depth: it moves the subdirectories of a directory up before it removes that
// directory. It follows no link. It returns os.ErrDeadlineExceeded if it takes longer than a minute.
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
		return os.RemoveAll(dir) // by now a link
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

// empty removes everything in a root directory. It stops at the time end.
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

// raise empties a directory in the root: it removes the directory's files and moves its subdirectories to the root.
func raise(root *os.Root, dir string, end time.Time) error {
	_ = root.Chmod(dir, 0o700) // if it fails, so does the next call
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

// some returns up to 1000 entries of a directory. It returns none only if the directory is empty.
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
