package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/workspace"
)

func open(t *testing.T, dir string) *confined.Root {
	t.Helper()
	root, err := confined.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	take := func() workspace.Snapshot {
		t.Helper()
		s, err := workspace.Take(t.Context(), open(t, dir), ".")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write("same", "s")
	write("gone", "g")
	write("text", "a")
	write("large", strings.Repeat("x", 70<<10))
	write(".git/index", "i")
	before := take()
	write("text", "b")
	write("large", strings.Repeat("y", 70<<10))
	write(".git/index", "j")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "new", "link")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range before.Changes(take()) {
		after, _, _ := strings.Cut(c.After, ",")
		got = append(got, c.What+" "+filepath.ToSlash(c.Path)+": "+strings.TrimSpace(after))
	}
	want := []string{"deleted gone: ", "changed large: 71680 bytes", "new file new/link: link to /etc/passwd",
		"changed text: b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if _, err := workspace.Take(t.Context(), open(t, dir), "none"); err == nil {
		t.Error("a directory that is not there can be read")
	}
}

// What an agent may leave: nothing of it is read, and none of it makes a change
// of what is the same.
func TestHostile(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := open(t, dir)
	must(os.WriteFile(filepath.Join(dir, "mine"), []byte("text"), 0o600))
	before, err := workspace.Take(t.Context(), root, ".")
	must(err)
	must(os.WriteFile(outside, []byte("hunter2"), 0o600))
	must(os.Link(outside, filepath.Join(dir, "hard")))
	must(os.Link(filepath.Join(dir, "mine"), filepath.Join(dir, "mine too")))
	must(os.Symlink(filepath.Dir(outside), filepath.Join(dir, "away")))
	must(os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600))
	must(os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
	after, err := workspace.Take(t.Context(), root, ".")
	must(err)
	var got []string
	for _, c := range before.Changes(after) {
		text, _, _ := strings.Cut(c.After, ",")
		if names, rest, ok := strings.Cut(c.After, ": "); ok && c.Path != "sparse" {
			text = names + " " + strings.TrimSpace(rest[:strings.Index(rest, ",")])
		}
		got = append(got, c.Path+": "+strings.TrimSpace(text))
	}
	want := []string{"away: link to " + filepath.Dir(outside), "hard: hard link, one of 2 names of a file 7 bytes",
		"mine too: hard link, one of 2 names of a file 4 bytes", "sparse: 1099511627776 bytes"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if _, err := workspace.Take(t.Context(), root, "away"); !errors.Is(err, confined.ErrOutside) {
		t.Errorf("a link that leads out is a workspace: %v", err)
	}
}

func TestCut(t *testing.T) {
	dir := t.TempDir()
	root := open(t, dir)
	for _, name := range []string{"a", "z"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := workspace.Take(t.Context(), root, ".")
	if err := os.MkdirAll(filepath.Join(dir, "m"+strings.Repeat("/m", 101)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	after, err := workspace.Take(t.Context(), root, ".")
	if err != nil || after.Cut != "directories are nested more than 100 deep" {
		t.Errorf("%v, cut %q", err, after.Cut)
	}
	if c := before.Changes(after); len(c) != 0 {
		t.Errorf("what was not looked at is told: %q", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := workspace.Take(ctx, root, "."); err != nil || s.Cut != "context canceled" {
		t.Errorf("%v, cut %q", err, s.Cut)
	}
}

func TestCopy(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"large", "sub/x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "large"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Copy(t.Context(), open(t, dir), to); !errors.Is(err, confined.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "sub", "x")); err != nil || string(text) != "sub/x" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(to, "large")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is too large is copied: %v", err)
	}
}

// ended is a context that ended after it was last asked.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

func TestEnded(t *testing.T) {
	if _, err := workspace.Take(ended{context.Background()}, open(t, t.TempDir()), "."); err != nil {
		t.Errorf("a workspace that was looked at whole: %v", err)
	}
}

// A list that a stranger wrote: what leads out of the folder, or into a repository, is not
// restored.
func TestRestoreHostile(t *testing.T) {
	dir, text := t.TempDir(), "text"
	lacking, err := workspace.Restore(dir, []workspace.Listed{
		{Path: "a/b", Text: &text}, {Path: "good", Link: "a/b"}, {Path: "a/up", Link: "../good"},
		{Path: "here", Link: "."},
		{Path: "away", Link: "/etc"}, {Path: "up", Link: ".."}, {Path: "detour", Link: "a/../../x"},
		{Path: "here/new/x", Link: "../../.."}, {Path: "a/here", Link: "."}, {Path: "a/here/new/x", Link: "../../../y"},
		{Path: "here/new/y", Link: "../../y"}, {Path: ".git/config", Text: &text},
		{Path: "a/.GIT./hooks/x", Text: &text},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lacking) != 8 {
		t.Errorf("got %q", lacking)
	}
	for name, there := range map[string]bool{"good": true, "a/up": true, "here": true, "away": false, "up": false,
		"detour": false, "new/x": false, "new/y": false, "a/new/x": false, ".git": false, "a/.GIT.": false} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := workspace.Restore(dir, []workspace.Listed{{Path: "../x", Text: &text}}); !errors.Is(err,
		confined.ErrOutside) {
		t.Errorf("got %v", err)
	}
}
