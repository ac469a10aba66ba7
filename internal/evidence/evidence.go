// Package evidence manages the folder to which a run writes its evidence. Other programs of the same user may remove
// or change everything in that folder. The package never follows a link that another program has put there: it
// removes links and files that are in the place of its own files. It also detects which of its files were removed or
// changed.
package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

type Folder struct {
	dir   string // path without symbolic links
	fixed map[string]string

	mu       sync.Mutex
	root     *os.Root
	files    map[string]fs.FileInfo // info of each file after the last write
	replaced bool
}

// Open opens a folder, and creates it if it does not exist. fixed maps names of files to contents: the folder always
// contains these files.
func Open(dir string, fixed map[string]string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{dir: dir, fixed: fixed, root: root, files: map[string]fs.FileInfo{}}, nil
}

// Close closes the folder.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.root.Close()
}

// Replaced reports whether the folder was ever removed or replaced by another program.
func (f *Folder) Replaced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replaced || !f.stands()
}

// stands reports whether the folder itself is still at its pathand not a replacement.
func (f *Folder) stands() bool {
	ours, err1 := f.root.Stat(".")
	there, err2 := os.Lstat(f.dir)
	return err1 == nil && err2 == nil && os.SameFile(ours, there)
}

// restore creates the folder again if another program has removed or replaced it. The caller holds mu.
func (f *Folder) restore() error {
	if f.stands() {
		return nil
	}
	f.replaced = true
	if info, err := os.Lstat(f.dir); err == nil && !info.IsDir() {
		if err := os.Remove(f.dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	f.root.Close()
	f.root = root
	for name, text := range f.fixed {
		file, err := f.fresh(name)
		if err != nil {
			return err
		}
		_, err = io.WriteString(file, text)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// tries is the maximum number of attempts to create a file or folder. Another program may keep removing it.
const tries = 20

// retry calls do until it succeeds, at most tries times, and restores the folder before each call. The caller holds
// mu.
func (f *Folder) retry(do func() error) error {
	var err error
	for range tries {
		if err = f.restore(); err != nil {
			continue
		}
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

// fresh creates and opens a new regular file. It removes whatever is in the place of the file, and whatever is in the
// place of a directory on its path.
func (f *Folder) fresh(name string) (*os.File, error) {
	if err := f.clear(name); err != nil {
		return nil, err
	}
	return f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

// clear prepares a path for a new file: it creates the directories above it, and removes any file at the path itself.
func (f *Folder) clear(name string) error {
	at := ""
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(name)), "/") {
		at = filepath.Join(at, part)
		if info, err := f.root.Lstat(at); err == nil && !info.IsDir() {
			if err := f.root.Remove(at); err != nil {
				return err
			}
		}
		if err := f.root.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return f.root.RemoveAll(name)
}

// Place prepares a path in the folder for a new file and returns the absolute path. It removes a file that is already
// there.
func (f *Folder) Place(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.retry(func() error { return f.clear(name) })
	return filepath.Join(f.dir, name), err
}

// Rename renames a file within the folder. It replaces a file that already has the new name.
func (f *Folder) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.retry(func() error { return f.clear(to) }); err != nil {
		return err
	}
	if err := f.root.Rename(from, to); err != nil {
		return err
	}
	delete(f.files, from)
	info, err := f.root.Lstat(to)
	f.files[to] = info
	return err
}

// Write writes a file of the folder. It replaces a file that already has the name.
func (f *Folder) Write(name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.retry(func() error {
		file, err := f.fresh(name)
		if err != nil {
			return err
		}
		defer file.Close()
		if _, err = io.Copy(file, bytes.NewReader(data)); err == nil {
			f.files[name], err = file.Stat()
		}
		return err
	})
}

// Changed lists the files that other programs have removed, replaced or written
// to.
func (f *Folder) Changed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for name, was := range f.files {
		is, err := f.root.Lstat(name)
		if !f.stands() || err != nil || !os.SameFile(was, is) || is.Size() != was.Size() || changed(was, is) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// File is a file in the folder to which other programs have access while it is written.
type File struct {
	*os.File
	folder *Folder
	name   string
	sum    hash.Hash
	size   int64
}

// Create creates a file and opens it for writing. Finish completes it.
func (f *Folder) Create(name string) (*File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var file *os.File
	err := f.retry(func() (err error) {
		file, err = f.fresh(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{File: file, folder: f, name: name, sum: sha256.New()}, nil
}

// Write appends to the file.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.File.WriteAt(p, f.size)
	f.size += int64(n)
	f.sum.Write(p[:n])
	return n, err
}

// Close does nothing, because Finish closes the file.
func (f *File) Close() error { return nil }

// Errors of Finish.
var (
	// ErrMoved means that the file was removed or replaced, and was then written again.
	ErrMoved = errors.New("another program removed or replaced the file; acp-test wrote it again from its open copy")
	// ErrWritten means that another program wrote to the file.
	ErrWritten = errors.New("another program wrote to the file")
)

// Finish closes the file and checks that no other program touched it. If the file was removed or replaced, Finish
// writes it again and returns ErrMoved. If another program changed the content, Finish returns ErrWritten; before
// that, it calls again to write the content anew, unless again is nil.
func (f *File) Finish(again func(io.Writer) error) error {
	defer f.File.Close()
	info, err := f.File.Stat()
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.NewSectionReader(f.File, 0, f.size))
	switch sound := err == nil && info.Size() == f.size && bytes.Equal(sum.Sum(nil), f.sum.Sum(nil)); {
	case sound && f.inPlace(info):
		return nil
	case sound:
		if err := f.folder.copy(f.name, func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(f.File, 0, f.size))
			return err
		}); err != nil {
			return fmt.Errorf("another program removed or replaced the file, and writing it again failed: %w", err)
		}
		return ErrMoved
	case again == nil:
		return ErrWritten
	}
	if err := f.folder.copy(f.name, again); err != nil {
		return errors.Join(ErrWritten, err)
	}
	return fmt.Errorf("%w; %w", ErrWritten, ErrMoved)
}

// inPlace reports whether the file is still at the path where it was created. If it is, inPlace records the file's
// info for Changed.
func (f *File) inPlace(info fs.FileInfo) bool {
	f.folder.mu.Lock()
	defer f.folder.mu.Unlock()
	there, err := f.folder.root.Lstat(f.name)
	if err != nil || !f.folder.stands() || !os.SameFile(there, info) {
		return false
	}
	f.folder.files[f.name] = there
	return true
}

// copy creates a file and calls write to write its content.
func (f *Folder) copy(name string, write func(io.Writer) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.retry(func() error {
		file, err := f.fresh(name)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := write(file); err != nil {
			return err
		}
		f.files[name], err = file.Stat()
		return err
	})
}
