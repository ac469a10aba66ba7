package mockclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// file is a file that the agent may access.
type file struct {
	root *confined.Root
	rel  string
	path string // absolute and clean
}

// locate returns the file that a request names. If the agent may not access the file, locate answers the request with
// an error and returns false.
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
		if rel, ok := root.Rel(clean); ok {
			return file{root, rel, clean}, true
		}
	}
	e.refuse(r, path)
	return file{}, false
}

// resolve handles a symbolic link that leads out of its root: the link may lead into another directory of the
// session. If it does, resolve returns the file in that root. The caller must open the file through the returned
// root, because the link may change at any time. Otherwise, resolve answers the request with an error and returns
// false.
func (e *Editor) resolve(r *Request, at file) (file, bool) {
	if real, err := filepath.EvalSymlinks(at.path); err == nil {
		roots, _ := e.rootsOf(r.Entry.Session)
		for _, root := range roots {
			if rel, ok := root.Rel(real); ok {
				return file{root, rel, at.path}, true
			}
		}
	}
	e.refuse(r, r.Params.Get("path").Str())
	return file{}, false
}

// rootsOf returns the directories of a session. known is false if the session is
// not open.
func (e *Editor) rootsOf(session string) (roots []*confined.Root, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.sessions[session]
	if w == nil || !w.known {
		return nil, false
	}
	e.openLater(w, true)
	return w.roots, true
}

// access calls do with the file. If the path is a link to another directory of the session, it calls do again with
// the resolved file. If the path leads out of the session's directories, access answers the request with an error,
// and ok is false.
func (e *Editor) access(r *Request, at file, do func(file) error) (ok bool, err error) {
	if err = do(at); !errors.Is(err, confined.ErrOutside) {
		return true, err
	}
	if at, ok = e.resolve(r, at); !ok {
		return false, nil
	}
	if err = do(at); errors.Is(err, confined.ErrOutside) {
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

// read returns lines of a file, as Range does for a text. It keeps only these lines in memory. It returns an error if
// ctx ends, or if the lines exceed confined.Limit bytes.
func (p file) read(ctx context.Context, line, limit int) (string, error) {
	return confined.Read(ctx, p.root, p.rel, func(f *os.File, file io.Reader) (string, error) {
		info, err := f.Stat()
		if err == nil && info.Size() > confined.Limit && line <= 1 && limit < 0 {
			err = confined.TooLarge(p.rel, info.Size(), confined.Limit)
		}
		if err != nil {
			return "", err
		}
		in := bufio.NewReaderSize(file, 64<<10)
		for n := 1; n < line; n++ {
			if _, err := takeLine(in, nil); err == io.EOF {
				return "", nil
			} else if err != nil {
				return "", err
			}
		}
		var out bytes.Buffer
		for n := 0; n != limit; n++ {
			if large, err := takeLine(in, &out); large {
				return "", confined.TooLarge("the lines", int64(out.Len()), confined.Limit)
			} else if err == io.EOF {
				break
			} else if err != nil {
				return "", err
			}
		}
		return out.String(), nil
	})
}

// takeLine reads a line and appends it to out, unless out is nil. If out would exceed confined.Limit, it stops and
// large is true.
func takeLine(in *bufio.Reader, out *bytes.Buffer) (large bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if out != nil {
			if out.Len()+len(part) > confined.Limit {
				return true, nil
			}
			out.Write(part)
		}
		if err != bufio.ErrBufferFull {
			return false, err
		}
	}
}

// cause returns the error without the path, which is relative and would confuse an agent.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return fmt.Errorf("%w", err)
}

// workspace contains the editor's state of one session.
type workspace struct {
	id        string
	known     bool // the session was opened by a session method or announced
	parent    *workspace
	roots     []*confined.Root
	unopened  []string     // directories that could not be opened yet
	prompts   map[int]bool // Seqs of prompts without a response
	cancelled map[int]bool // Seqs of cancelled prompts without a response
}

func (e *Editor) workspace(id string) *workspace {
	w := e.sessions[id]
	if w == nil {
		w = &workspace{id: id, prompts: map[int]bool{}, cancelled: map[int]bool{}}
		e.sessions[id] = w
	}
	return w
}

// adopt handles a session/update that announces a child session. The child gets the directories of its parent
// session, whatever directories it names itself.
func (e *Editor) adopt(f transcript.Entry) {
	u := f.JSON().Path("params.update")
	child := u.Get("sessionId").Str()
	if !u.Get("sessionUpdate").Is("subagent_update") || child == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	parent := e.sessions[f.Session]
	if w := e.workspace(child); parent == nil || !parent.known || w.known || child == f.Session {
		return
	}
	dirs := lists.Map(parent.roots, func(r *confined.Root) string { return r.Dir() })
	e.openWorkspace(child, slices.Concat(dirs, parent.unopened))
	e.sessions[child].parent = parent
}

// family reports whether session is equal to of or is a descendant of it. The caller holds mu.
func (e *Editor) family(session, of string) bool {
	for w := e.sessions[session]; w != nil; w = w.parent {
		if w.id == of {
			return true
		}
	}
	return session == of
}

// openWorkspace sets the directories of a session. It skips relative paths, and directories that are not below
// Options.Within. A directory that cannot be opened is tried again when the agent asks for a file.
func (e *Editor) openWorkspace(id string, dirs []string) {
	w := e.workspace(id)
	w.close()
	w.known = true
	w.unopened = lists.Where(dirs, filepath.IsAbs)
	e.openLater(w, false)
}

// openLater opens those directories of w.unopened that exist now. late means that the agent has sent a request since
// the session was opened, so the agent may have created the path. openLater then gives up a symbolic link.
func (e *Editor) openLater(w *workspace, late bool) {
	w.unopened = slices.DeleteFunc(w.unopened, func(dir string) bool {
		info, err := os.Lstat(dir)
		switch {
		case err != nil:
			return false
		case late && info.Mode()&fs.ModeSymlink != 0:
			return true
		}
		r, err := confined.Open(dir)
		switch {
		case err != nil:
			return false
		case r.Below(e.opts.Within):
			w.roots = append(w.roots, r)
		default:
			r.Close()
		}
		return true
	})
}

func (w *workspace) close() {
	for _, r := range w.roots {
		r.Close()
	}
	w.roots, w.unopened = nil, nil
}

// directoriesOf returns the directories in the params of a session method: cwd and additionalDirectories.
func directoriesOf(params wire.Value) []string {
	var dirs []string
	if cwd := params.Get("cwd"); cwd.Kind() == wire.String {
		dirs = append(dirs, cwd.Str())
	}
	return append(dirs, texts(params.Get("additionalDirectories"))...)
}

// texts returns the strings in a list, and ignores other elements.
func texts(list wire.Value) []string {
	text := lists.Having(list.Items(), func(v wire.Value) bool { return v.Kind() == wire.String })
	return lists.Map(text, wire.Value.Str)
}
