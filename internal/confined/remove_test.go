package confined_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/internal/confined"
)

func TestRemoveAll(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), "dir"), filepath.Join(t.TempDir(), "kept")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(outside, nil, 0o600))
	must(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	must(os.MkdirAll(filepath.Join(dir, "empty"), 0o700))
	must(os.WriteFile(filepath.Join(dir, "a", "b", "c"), nil, 0o400))
	must(os.Symlink(filepath.Dir(outside), filepath.Join(dir, "a", "link")))
	must(os.Chmod(filepath.Join(dir, "a", "b"), 0o500))
	must(os.Chmod(filepath.Join(dir, "a"), 0o500))
	must(confined.RemoveAll(dir))
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	must(confined.RemoveAll(dir))
	must(os.Symlink(filepath.Dir(outside), dir))
	must(confined.RemoveAll(dir))
	if _, err := os.Lstat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	// Deeper than a process may have files open, and than a path may be long.
	deep := t.TempDir()
	t.Chdir(deep)
	must(os.Mkdir("top", 0o700))
	must(os.Chdir("top"))
	for range 3_000 {
		must(os.Mkdir("d", 0o700))
		must(os.Chdir("d"))
	}
	must(os.Chdir(deep))
	must(confined.RemoveAll(filepath.Join(deep, "top")))
	if left, _ := filepath.Glob(filepath.Join(deep, "*")); len(left) > 0 {
		t.Errorf("left: %.100s", strings.Join(left, " "))
	}
}
