package refagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// inRoots returns the root directory of the session that contains a path, and the path relative to it. It returns an
// error if no root contains the path.
func (s *session) inRoots(path string) (root, rel string, err error) {
	for _, r := range s.roots {
		if rel, err := filepath.Rel(r, path); err == nil && filepath.IsLocal(rel) {
			return r, rel, nil
		}
	}
	return "", "", fmt.Errorf("%s is outside the session's directories", path)
}

// onDisk opens the root that contains a path and calls do with it. do cannot reach files outside of that root, even
// through links.
func (s *session) onDisk(path string, do func(root *os.Root, rel string) error) error {
	dir, rel, err := s.inRoots(path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, rel)
}

// read returns the text of a file. It asks the editor, which has unsaved changes, or reads the disk if the editor
// does not support reading files. line is the first line, counted from 1, and limit the number of lines. If both are
// 0, read returns the whole file.
func (w *work) read(ctx context.Context, path string, line, limit int) (string, error) {
	if _, _, err := w.s.inRoots(path); err != nil {
		return "", err
	}
	if !w.a.capabilities().ReadTextFile || w.a.habits.ReadsDisk {
		content, err := w.s.readDisk(path)
		return lines(content, line, limit), err
	}
	switch {
	case w.a.habits.Whole:
		content, err := w.fetch(ctx, path, 0, 0)
		return lines(content, line, limit), err
	case w.a.habits.Page > 0:
		return w.pages(ctx, path, max(line, 1), limit)
	}
	return w.fetch(ctx, path, line, limit)
}

// pages is like fetch, but requests the lines in several reads. Each read requests twice as many lines as the one
// before.
func (w *work) pages(ctx context.Context, path string, line, limit int) (string, error) {
	var all strings.Builder
	page := w.a.habits.Page
	for got := 0; limit == 0 || got < limit; page *= 2 {
		want := page
		if limit > 0 {
			want = min(want, limit-got)
		}
		content, err := w.fetch(ctx, path, line+got, want)
		if err != nil {
			return "", err
		}
		all.WriteString(content)
		n := strings.Count(content, "\n")
		if got += n; n < want {
			break
		}
	}
	return all.String(), nil
}

// fetch requests a file from the editor. line and limit select a part of the file; 0 omits the parameter.
func (w *work) fetch(ctx context.Context, path string, line, limit int) (string, error) {
	params := object{"sessionId": w.s.id, "path": path}
	if line > 0 {
		params["line"] = line
	}
	if limit > 0 {
		params["limit"] = limit
	}
	var result struct{ Content *string }
	if err := w.a.conn.call(ctx, "fs/read_text_file", w.s.id, params, &result); err != nil {
		return "", err
	}
	if result.Content == nil {
		return "", errors.New("the editor's answer holds no content")
	}
	return *result.Content, nil
}

func (w *work) write(ctx context.Context, path, content string) error {
	if _, _, err := w.s.inRoots(path); err != nil {
		return err
	}
	if w.a.habits.FinalNewline && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if w.a.habits.KeepsFolders {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("the folder %s does not exist: make it first", filepath.Dir(path))
		}
	}
	if w.a.capabilities().WriteTextFile && !w.a.habits.WritesDisk && !w.a.hooks.Anew {
		return w.a.conn.call(ctx, "fs/write_text_file", w.s.id,
			object{"sessionId": w.s.id, "path": path, "content": content}, nil)
	}
	return w.s.onDisk(path, func(root *os.Root, rel string) error {
		if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
			return err
		}
		if w.a.hooks.Anew {
			_ = root.Remove(rel) // the file may not exist, which is fine
		}
		return root.WriteFile(rel, []byte(content), 0o644)
	})
}

func (s *session) readDisk(path string) (content string, err error) {
	err = s.onDisk(path, func(root *os.Root, rel string) error {
		data, err := root.ReadFile(rel)
		content = strings.ToValidUTF8(string(data), "\uFFFD")
		return err
	})
	return content, err
}

// lines returns at most limit lines of a text, beginning with line, which counts from 1. A limit of 0 means all.
func lines(content string, line, limit int) string {
	if line <= 1 && limit <= 0 {
		return content
	}
	all := strings.SplitAfter(content, "\n")
	all = all[min(max(line-1, 0), len(all)):]
	if limit > 0 {
		all = all[:min(limit, len(all))]
	}
	return strings.Join(all, "")
}

// showPath sets the location of a tool call from its argument path.
func showPath(w *work) {
	if p := w.args.str("path"); p != "" {
		w.locations = []location{{Path: w.s.absolute(p), Line: w.args.number("line")}}
	}
}

// showWrite sets the diff that the user sees with the permission request. It reads the old text from the disk,
// because the agent may not read through the editor before the user has allowed the call.
func showWrite(w *work) {
	if showPath(w); w.locations != nil {
		w.content = diffContent(w.path(), w.s.before(w.path()), w.args.str("content"))
	}
}

func showEdit(w *work) {
	if showPath(w); w.locations != nil {
		old := w.args.str("old")
		w.content = diffContent(w.path(), &old, w.args.str("new"))
	}
}

// path returns the path of the file that the tool call concerns.
func (w *work) path() string { return w.locations[0].Path }

// before returns the text of a file on the disk, or nil if it cannot be read.
func (s *session) before(path string) *string {
	content, err := s.readDisk(path)
	if err != nil {
		return nil
	}
	return &content
}

func readFile(ctx context.Context, w *work) error {
	content, err := w.read(ctx, w.path(), w.args.number("line"), w.args.number("limit"))
	if err != nil {
		return err
	}
	if most := w.a.habits.ReadLimit; most > 0 && len(content) > most {
		content = fmt.Sprintf("the file is too large to read at once: it has more than %d bytes", most)
		if !w.a.habits.LimitIsResult {
			return errors.New(content)
		}
	}
	w.say(content)
	return nil
}

func writeFile(ctx context.Context, w *work) error {
	path, content := w.path(), w.args.str("content")
	before := w.s.before(path)
	if before != nil && w.a.habits.KeepsFiles {
		return fmt.Errorf("%s already exists: edit it instead", path)
	}
	if w.a.habits.ReadsBefore {
		if now, err := w.read(ctx, path, 0, 0); err == nil {
			before = &now
		}
	}
	if err := w.write(ctx, path, content); err != nil {
		return err
	}
	w.content = diffContent(path, before, content)
	w.result = fmt.Sprintf("Wrote %d bytes to %s.", len(content), path)
	return nil
}

// original returns the text of a file that the agent is to change. It refuses a file with bytes that are no UTF-8,
// because writing the text would change them too. In its text they are U+FFFD, so it also refuses a file that has this
// character.
func (w *work) original(ctx context.Context, path string) (string, error) {
	text, err := w.read(ctx, path, 0, 0)
	if err == nil && strings.ContainsRune(text, utf8.RuneError) {
		err = fmt.Errorf("%s is not a text in UTF-8", path)
	}
	return text, err
}

func editFile(ctx context.Context, w *work) error {
	path, old := w.path(), w.args.str("old")
	before, err := w.original(ctx, path)
	if err != nil {
		return err
	}
	switch n := strings.Count(before, old); {
	case old == "" || n == 0:
		return errors.New("the old text is not in the file")
	case n > 1:
		return fmt.Errorf("the old text is in the file %d times", n)
	}
	after := strings.Replace(before, old, w.args.str("new"), 1)
	if ctx.Err() != nil {
		return errCancelled
	}
	if err := w.write(ctx, path, after); err != nil {
		return err
	}
	w.content, w.result = diffContent(path, &before, after), "Edited "+path+"."
	return nil
}

func deleteFile(_ context.Context, w *work) error {
	w.result = "Deleted " + w.path() + "."
	return w.s.onDisk(w.path(), (*os.Root).Remove)
}

func moveFile(_ context.Context, w *work) error {
	from, to := w.path(), w.s.absolute(w.args.str("to"))
	return w.s.onDisk(from, func(root *os.Root, rel string) error {
		target, err := filepath.Rel(root.Name(), to)
		if err != nil || !filepath.IsLocal(target) {
			return fmt.Errorf("%s is not in the same directory tree", to)
		}
		w.locations = append(w.locations, location{Path: to})
		w.result = "Moved " + from + " to " + to + "."
		return root.Rename(rel, target)
	})
}

// patchFile applies a patch to a file. The patch's lines that begin with a space or - are the old text. The lines
// that begin with a space or + are the new text, which replaces it.
func patchFile(ctx context.Context, w *work) error {
	path, before := w.path(), ""
	if w.s.before(path) != nil {
		var err error
		if before, err = w.original(ctx, path); err != nil {
			return err
		}
	}
	var old, after strings.Builder
	for line := range strings.Lines(w.args.str("patch")) {
		if line[0] != '+' {
			old.WriteString(line[1:])
		}
		if line[0] != '-' {
			after.WriteString(line[1:])
		}
	}
	if !strings.Contains(before, old.String()) {
		return errors.New("the patch does not fit the file")
	}
	text := strings.Replace(before, old.String(), after.String(), 1)
	if err := w.write(ctx, path, text); err != nil {
		return err
	}
	w.content, w.result = diffContent(path, &before, text), "Patched "+path+"."
	return nil
}

// lookUp reads files through the editor, only for the sake of the requests: it ignores their contents and missing
// files.
func (a *agent) lookUp(ctx context.Context, s *session, files []string) {
	if !a.capabilities().ReadTextFile {
		return
	}
	for _, name := range files {
		path := filepath.Join(s.cwd, name)
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			path = filepath.Join(a.options.Getenv("HOME"), rest)
		}
		if filepath.IsAbs(path) {
			_ = a.conn.call(ctx, "fs/read_text_file", s.id, object{"sessionId": s.id, "path": path}, nil)
		}
	}
}
