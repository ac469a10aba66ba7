package mockclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// root is one directory of a session, which nothing leaves.
type root struct {
	dir  string
	real string // dir without symbolic links
	*os.Root
}

func openRoot(dir string) *root {
	if !filepath.IsAbs(dir) {
		return nil
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	return &root{dir: filepath.Clean(dir), real: real, Root: r}
}

func (r *root) release() { r.Root.Close() }

// within returns the path relative to the root.
func (r *root) within(path string) (string, bool) {
	for _, base := range []string{r.dir, r.real} {
		if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// file is a file the agent may reach.
type file struct {
	root *root
	rel  string
	path string // absolute and clean
}

// locate finds the file a request names, or answers the request.
func (e *Editor) locate(r *Request) (file, bool) {
	session := r.Params.Get("sessionId")
	named := r.Params.Get("path")
	if session.Kind() != wire.String || named.Kind() != wire.String {
		r.Fail(codeInvalidParams, "sessionId and path are required strings")
		return file{}, false
	}
	path := named.Str()
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		r.Fail(codeInvalidParams, "the path %q is not absolute", wire.Clip(path, 300))
		return file{}, false
	}
	roots, known := e.rootsOf(session.Str())
	if !known {
		e.note(session.Str(), Note{
			Code: "unknown-session", Request: r.Entry.Seq, Text: "a file was asked for in a session that is not open",
		})
		r.Fail(codeInvalidParams, "unknown session %q", wire.Clip(session.Str(), 100))
		return file{}, false
	}
	clean := filepath.Clean(path)
	for _, root := range roots {
		if rel, ok := root.within(clean); ok {
			return file{root, rel, clean}, true
		}
	}
	e.refuse(r, path)
	return file{}, false
}

// resolve gives a symbolic link that os.Root refuses a second chance: it may
// be absolute, or lead into another directory of the session, and yet stay
// inside. The file is opened through a Root again, so that nothing is trusted
// that could have changed since.
func (e *Editor) resolve(r *Request, at file) (file, bool) {
	if real, err := filepath.EvalSymlinks(at.path); err == nil {
		roots, _ := e.rootsOf(r.Entry.Session)
		for _, root := range roots {
			if rel, ok := root.within(real); ok {
				return file{root, rel, at.path}, true
			}
		}
	}
	e.refuse(r, r.Params.Get("path").Str())
	return file{}, false
}

// rootsOf are the directories of a session; known is false for one that is not
// open.
func (e *Editor) rootsOf(session string) (roots []*root, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.sessions[session]
	if w == nil || !w.known {
		return nil, false
	}
	return w.roots, true
}

// access does what a request asks for with its file, once more where the path is
// a link that stays inside. ok is false if the path leaves the session; the
// request has its answer then.
func (e *Editor) access(r *Request, at file, do func(file) error) (ok bool, err error) {
	if err = do(at); !escapes(err) {
		return true, err
	}
	if at, ok = e.resolve(r, at); !ok {
		return false, nil
	}
	if err = do(at); escapes(err) {
		e.refuse(r, r.Params.Get("path").Str())
		return false, nil
	}
	return true, err
}

func (e *Editor) refuse(r *Request, path string) {
	e.note(r.Entry.Session, Note{
		Code: "path-refused", Request: r.Entry.Seq, Refused: path, Text: "the path leaves the directories of the session",
	})
	r.Fail(codeInvalidParams, "the path %q is outside the directories of the session", wire.Clip(path, 300))
}

var errNotRegular = errors.New("not a regular file")

// read returns lines of a file without holding more of it than those.
func (p file) read(line, limit int) (string, error) {
	f, err := p.root.OpenFile(p.rel, os.O_RDONLY|openNonblock, 0) // a FIFO must not hold us
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errNotRegular
	}
	if line <= 1 && limit < 0 {
		raw, err := io.ReadAll(f)
		return string(raw), err
	}
	in := bufio.NewReaderSize(f, 64<<10)
	for n := 1; n < line; n++ {
		if err := skipLine(in); err == io.EOF {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	if limit < 0 {
		raw, err := io.ReadAll(in)
		return string(raw), err
	}
	var out bytes.Buffer
	for range limit {
		part, err := in.ReadBytes('\n')
		out.Write(part)
		if err == io.EOF {
			break
		} else if err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}

func (p file) write(text string) error {
	if dir := filepath.Dir(p.rel); dir != "." {
		if err := p.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if info, err := p.root.Stat(p.rel); err == nil && !info.Mode().IsRegular() {
		return errNotRegular
	}
	f, err := p.root.OpenFile(p.rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|openNonblock, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// escapes tells an os.Root's refusal from other errors. The os package has no
// exported error for it, but its text is documented by its tests.
func escapes(err error) bool {
	path := (*fs.PathError)(nil)
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "escapes from parent")
}

// cause is the error without the relative path, which means nothing to an agent.
func cause(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return fmt.Errorf("%w", err)
}
