package mockclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Files configures how the editor answers fs/read_text_file and fs/write_text_file. The zero value reads and writes
// the disk, within the session's cwd and additional directories. A path that leads out of these directories, directly
// or through a symbolic link, gets error -32602 and a Note. The editor answers with error -32603 if the file is not
// regular, if an answer would exceed 64 MiB, or if a read takes longer than ten seconds. The fields must not change
// while an editor uses the Files; the methods may be called at any time.
type Files struct {
	// MissingEmpty makes the editor answer a read of a missing file with an empty text, instead of error -32002.
	MissingEmpty bool
	// ReplaceInvalid replaces invalid UTF-8 in a file with U+FFFD. If it is false, the editor answers a read of such
	// a file with error -32603.
	ReplaceInvalid bool
	// Faults lists errors to answer with. The first fault that matches a request decides.
	Faults []FileFault

	mu      sync.Mutex
	buffers map[string]string
}

// FileFault makes the editor answer requests for matching paths with an error. Read and Write select the requests.
type FileFault struct {
	Path  string // glob over the absolute path (* also matches slashes); "" matches all
	Read  bool
	Write bool
	Error RPCError
}

// Open opens an unsaved buffer for a file. Reads of its absolute path then return text instead of the content on
// disk. When the agent writes the file, the buffer is closed.
func (f *Files) Open(path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buffers == nil {
		f.buffers = map[string]string{}
	}
	f.buffers[filepath.Clean(path)] = text
}

func (f *Files) Discard(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.buffers, filepath.Clean(path))
}

func (f *Files) buffer(path string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.buffers[path]
	return text, ok
}

// faulty answers the request with the error of the first fault that matches. It returns false if none matches.
func (e *Editor) faulty(r *Request, path string, write bool) bool {
	fault, ok := lists.Find(e.files.Faults, func(x FileFault) bool {
		return (x.Write && write || x.Read && !write) && (x.Path == "" || glob.Text(x.Path, path))
	})
	if ok {
		r.respond(func() (any, *RPCError) { return nil, &fault.Error })
	}
	return ok
}

// readFile answers fs/read_text_file (ACP v1, File System). The param line counts from 1, and limit is a number of
// lines. Lines keep their line breaks, so that adjacent ranges join to the original text.
func (e *Editor) readFile(r *Request) {
	at, ok := e.locate(r)
	if !ok || e.faulty(r, at.path, false) {
		return
	}
	line, limit := positive(r.Params.Get("line"), 1), positive(r.Params.Get("limit"), -1)
	text, open := e.files.buffer(at.path)
	if open {
		text = Range(text, line, limit)
	} else {
		ctx, cancel := context.WithTimeoutCause(context.Background(), reading, errSlow)
		defer cancel()
		ok, err := e.access(r, at, func(f file) (err error) {
			text, err = f.read(ctx, line, limit)
			return err
		})
		switch {
		case !ok:
			return
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && e.files.MissingEmpty:
			text = ""
		case errors.Is(err, fs.ErrNotExist):
			r.Fail(codeNotFound, "Resource not found: %s", at.path)
			return
		default:
			r.Fail(codeInternal, "reading %s: %v", at.path, cause(err))
			return
		}
	}
	if !utf8.ValidString(text) {
		if !e.files.ReplaceInvalid {
			r.Fail(codeInternal, "reading %s: the file is not UTF-8 text", at.path)
			return
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	r.Reply(content{text})
}

// reading is the maximum time that the read of a file may take.
const reading = 10 * time.Second

var errSlow = fmt.Errorf("it takes longer than %v", reading)

type content struct {
	Content string `json:"content"`
}

// positive reads a line number or a number of lines. It returns absent for values that the reference implementations
// treat as missing: null, a string or a negative number.
func positive(v wire.Value, absent int) int {
	n, ok := v.Int()
	if !ok || n < 0 || n > 1<<32-1 {
		return absent
	}
	return int(n)
}

// Range returns some lines of a text. line counts from 1 (0 means 1). limit is the maximum number of lines; a
// negative limit means all. Each line keeps its newline. If line is after the end of the text, Range returns "".
func Range(text string, line, limit int) string {
	for n := 1; n < line; n++ {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return ""
		}
		text = text[i+1:]
	}
	if limit < 0 {
		return text
	}
	end := 0
	for range limit {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			return text
		}
		end += i + 1
	}
	return text[:end]
}

// writeFile answers fs/write_text_file. It creates the file if it is missing (ACP v1, File System), and the
// directories above the file.
func (e *Editor) writeFile(r *Request) {
	at, ok := e.locate(r)
	if !ok {
		return
	}
	text := r.Params.Get("content")
	if text.Kind() != wire.String {
		r.Fail(codeInvalidParams, "content is a required string")
		return
	}
	if e.faulty(r, at.path, true) {
		return
	}
	ok, err := e.access(r, at, func(f file) error { return f.root.WriteFile(f.rel, []byte(text.Str()), 0o666) })
	switch {
	case !ok:
	case err == nil:
		e.files.Discard(at.path)
		r.Reply(empty{})
	default:
		r.Fail(codeInternal, "writing %s: %v", at.path, cause(err))
	}
}
