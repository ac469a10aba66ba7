package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/internal/workspace"
)

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
		s, err := workspace.Take(dir)
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
	want := []string{"deleted gone: ", "changed large: 71680 bytes", "new file new/link: link to /etc/passwd", "changed text: b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if _, err := workspace.Take(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there can be read")
	}
}
