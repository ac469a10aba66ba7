package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lazy"
)

// Manifest describes, for a replay, where an agent runs and which files exist when it starts.
type Manifest struct {
	Work string `json:"work"`
	Home string `json:"home,omitempty"`
	Temp string `json:"temp,omitempty"`
	// Listed is true if Files and HomeFiles were listed.
	Listed bool `json:"listed,omitempty"`
	// Files and HomeFiles are the files in Work and Home, with slash-separated paths.
	Files     []Listed `json:"files,omitempty"`
	HomeFiles []Listed `json:"homeFiles,omitempty"`
	// Env contains the names of the agent's environment variables. Set contains, with their values, the variables
	// that belong to the session and not to the user's machine.
	Env []string          `json:"env,omitempty"`
	Set map[string]string `json:"set,omitempty"`
	// Model is true if the recording contains the agent's requests to the model.
	Model bool `json:"model,omitempty"`
	// Chance is true if the agent's messages are partly random: the scenario says
	// "golden off".
	Chance bool `json:"chance,omitempty"`
	// Cut is the reason why the list of files is incomplete; "" if it is complete.
	Cut string `json:"cut,omitempty"`
}

// Listed is a file of a manifest. Its content is in Text, Base64 or Link. If none of them is set, the content was
// left out, and Left is the reason.
type Listed struct {
	Path   string  `json:"path"`
	Text   *string `json:"text,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
	Link   string  `json:"link,omitempty"`
	Exec   bool    `json:"exec,omitempty"`
	Size   int64   `json:"size,omitempty"`
	SHA256 string  `json:"sha256,omitempty"`
	Left   string  `json:"left,omitempty"`
	// Profile is true if the file comes from the agent's profile.
	Profile bool `json:"profile,omitempty"`
}

// Limits contains the limits for a list of files. Text is the maximum number of bytes of one file's content, and
// Texts of all contents together. Files is the maximum number of files.
type Limits struct{ Text, Texts, Files int }

// Whole is for a list from which a replay restores the files. Brief is for a scripted agent, which does not read the
// files.
var (
	Whole = Limits{512 << 10, 2 << 20, 2000}
	Brief = Limits{shown, 256 << 10, 500}
)

// private matches names of files that usually contain secrets.
var private = lazy.Regexp(`(?i)^(\.env(\..*)?|.*\.(pem|key|p12|pfx|kdbx)|id_(rsa|dsa|ecdsa|ed25519)|` +
	`\.netrc|\.npmrc|\.pypirc|credentials(\.json)?)$`)

// Private reports whether a file has a name that is usual for files with secrets.
func Private(name string) bool { return private().MatchString(path.Base(name)) }

// List lists the files of the directory sub of a root, without .git and installed packages. cut is the reason why the
// list is incomplete, or "".
func List(ctx context.Context, root *confined.Root, sub string, most Limits) (files []Listed, cut string) {
	texts := 0
	err := walk(ctx, root, sub, func(ctx context.Context, rel string, d fs.DirEntry) error {
		switch {
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".venv"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case len(files) == most.Files:
			return &cutError{fmt.Sprintf("there are more than %d files", most.Files)}
		}
		f := Listed{Path: filepath.ToSlash(rel)}
		name := filepath.Join(sub, rel)
		if d.Type()&fs.ModeSymlink != 0 {
			f.Link, _ = root.Readlink(name)
		} else if err := f.read(ctx, root, name, d, most, &texts); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		cut = err.Error()
	}
	return files, cut
}

// read sets the content of a file, or the reason why it is left out. Its only error is the end of ctx.
func (f *Listed) read(ctx context.Context, root *confined.Root, name string, d fs.DirEntry, most Limits,
	texts *int) error {
	if !d.Type().IsRegular() {
		f.Left = "it is not a regular file"
		return nil
	}
	info, err := d.Info()
	if err != nil {
		f.Left = err.Error()
		return nil
	}
	f.Size, f.Exec = info.Size(), info.Mode()&0o100 != 0
	switch {
	case Private(f.Path):
		f.Left = "it may hold secrets"
	case f.Size > int64(most.Text):
		f.Left = fmt.Sprintf("it has more than %d bytes", most.Text)
	case *texts+int(f.Size) > most.Texts:
		f.Left = fmt.Sprintf("together the files have more than %d bytes", most.Texts)
	}
	if f.Left != "" {
		return nil
	}
	data, err := confined.Read(ctx, root, name, func(_ *os.File, in io.Reader) ([]byte, error) {
		return io.ReadAll(io.LimitReader(in, int64(most.Text)))
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		f.Left = err.Error()
		return nil
	}
	*texts += len(data)
	if utf8.Valid(data) {
		text := string(data)
		f.Text = &text
	} else {
		f.Base64 = data
	}
	sum := sha256.Sum256(data)
	f.SHA256 = hex.EncodeToString(sum[:8])
	return nil
}

// Git reports whether a path is inside a .git folder. List leaves these files out, because the settings in them can
// name programs to run.
func Git(name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(name, func(c rune) bool { return c == '/' || c == '\\' }),
		func(part string) bool { return strings.EqualFold(strings.TrimRight(part, ". "), ".git") })
}

// Restore writes listed files below dir. It cannot restore files whose content is unknown, and does not create links
// that lead out of dir or files in .git. lacking has a sentence about each file that it left out.
func Restore(dir string, files []Listed) (lacking []string, err error) {
	contents, links := map[string][]byte{}, []Listed{}
	for _, f := range files {
		switch {
		case Git(f.Path):
			lacking = append(lacking, f.Path+" is not restored: the settings of a repository may name programs")
		case f.Link != "":
			links = append(links, f)
		case f.Text != nil:
			contents[f.Path] = []byte(*f.Text)
		case f.Base64 != nil:
			contents[f.Path] = f.Base64
		case f.Left != "":
			lacking = append(lacking, fmt.Sprintf("the recording lacks %s: %s", f.Path, f.Left))
		}
	}
	if err := Write(dir, contents); err != nil {
		return nil, err
	}
	root, err := confined.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, f := range links {
		made, err := link(root, f)
		if err != nil {
			return nil, fmt.Errorf("restoring %s: %w", f.Path, err)
		}
		if !made {
			lacking = append(lacking, fmt.Sprintf("the link %s is not restored: it leads out of the folder, to %s", f.Path,
				f.Link))
		}
	}
	return lacking, nil
}

// link creates a link if its target is below the root, and reports whether it did. It refuses a target with a detour
// such as x/../y, because the detour would lead elsewhere if x became a link.
func link(root *confined.Root, f Listed) (made bool, err error) {
	target, name := filepath.FromSlash(f.Link), filepath.FromSlash(f.Path)
	if filepath.IsAbs(target) || filepath.Clean(target) != target || !filepath.IsLocal(name) ||
		!filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
		return false, nil
	}
	if err := root.Symlink(target, name); err != nil {
		return false, err
	}
	if _, err := root.Stat(name); errors.Is(err, confined.ErrOutside) {
		return false, os.Remove(filepath.Join(root.Dir(), name))
	}
	return true, nil
}
