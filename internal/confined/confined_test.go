//go:build unix

package confined_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
)

// furnish makes a directory with all that a hostile program leaves.
func furnish(t *testing.T) (*confined.Root, string) {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	must(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	must(os.WriteFile(at("file"), []byte("text"), 0o600))
	must(os.Mkdir(at("sub"), 0o700))
	must(syscall.Mkfifo(at("fifo"), 0o600))
	for name, target := range map[string]string{
		"in": "file", "in-absolute": at("file"), "sub/up": "../file", "to-sub": at("sub"), "to-fifo": "fifo",
		"out": filepath.Join(outside, "secret"), "out-dir": outside, "environ": "/proc/self/environ",
		"zero": "/dev/zero",
		"up":   "../" + filepath.Base(outside), "loop": "loop", "loop-a": at("loop-b"), "loop-b": at("loop-a"),
		"none": "nowhere",
	} {
		must(os.Symlink(target, at(name)))
	}
	must(os.WriteFile(at("sparse"), nil, 0o600))
	must(os.Truncate(at("sparse"), 1<<40))
	t.Chdir(dir) // the name of a socket is short
	socket, err := net.Listen("unix", "socket")
	must(err)
	t.Cleanup(func() { socket.Close() })
	root, err := confined.Open(dir)
	must(err)
	t.Cleanup(func() { root.Close() })
	return root, outside
}

func TestReadFile(t *testing.T) {
	root, _ := furnish(t)
	for name, want := range map[string]error{
		"file": nil, "in": nil, "in-absolute": nil, "sub/up": nil, "to-sub/up": nil, "sub/../file": nil,
		"fifo": confined.ErrNotRegular, "to-fifo": confined.ErrNotRegular, "socket": confined.ErrNotRegular,
		"sub": confined.ErrNotRegular, ".": confined.ErrNotRegular,
		"out": confined.ErrOutside, "out-dir/secret": confined.ErrOutside, "environ": confined.ErrOutside,
		"zero": confined.ErrOutside, "up": confined.ErrOutside, "up/secret": confined.ErrOutside,
		"../x":   confined.ErrOutside,
		"loop-a": confined.ErrOutside, "sparse": confined.ErrTooLarge,
		"none": fs.ErrNotExist, "nothing": fs.ErrNotExist,
	} {
		text, err := root.ReadFile(t.Context(), name, confined.Limit)
		if !errors.Is(err, want) || want == nil && string(text) != "text" {
			t.Errorf("%s: %.20q, %v, want %v", name, text, err, want)
		}
		if want != nil && (len(text) > 0 && !errors.Is(err, confined.ErrTooLarge) ||
			!strings.Contains(err.Error(), name)) {
			t.Errorf("%s: %.20q, %v", name, text, err)
		}
	}
	if _, err := root.ReadFile(t.Context(), "loop", confined.Limit); err == nil {
		t.Error("a loop of links is a file")
	}
	if _, err := root.ReadFile(t.Context(), "file", 3); !errors.Is(err, confined.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := root.ReadFile(t.Context(), "fifo", 3); !strings.Contains(err.Error(), "a FIFO (named pipe)") {
		t.Errorf("%v", err)
	}
}

// A device can be made by root only, and a device is a link away for everybody.
func TestDevice(t *testing.T) {
	root, err := confined.Open("/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.ReadFile(t.Context(), "zero", 10); !errors.Is(err, confined.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
	if err := root.WriteFile("null", nil, 0o600); !errors.Is(err, confined.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
}

func TestDeadline(t *testing.T) {
	root, _ := furnish(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	n, err := confined.Read(ctx, root, "sparse", func(_ *os.File, in io.Reader) (int64, error) {
		return io.Copy(io.Discard, in)
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	// What hangs in the system is left behind.
	hangs := make(chan struct{})
	defer close(hangs)
	if _, err = confined.Until(ctx, func() (int, error) { <-hangs; return 0, nil }); err == nil {
		t.Error("it did not hang")
	}
}

func TestWriteFile(t *testing.T) {
	root, outside := furnish(t)
	for name, want := range map[string]error{
		"file": nil, "in": nil, "in-absolute": nil, "new/x/y": nil, "to-sub/new": nil,
		"fifo": confined.ErrNotRegular, "sub": confined.ErrNotRegular, "out": confined.ErrOutside,
		"out-dir/secret": confined.ErrOutside, "out-dir/new/x": confined.ErrOutside, "../x": confined.ErrOutside,
	} {
		if err := root.WriteFile(name, []byte("new"), 0o600); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "secret" {
		t.Errorf("outside: %q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
		t.Error("something was made outside")
	}
}

// The root stays what it was when it was opened.
func TestReplaced(t *testing.T) {
	root, outside := furnish(t)
	dir := root.Dir()
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir + "-moved")
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	if text, err := root.ReadFile(t.Context(), "secret", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := root.ReadFile(t.Context(), "file", 100); string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestLookAt(t *testing.T) {
	root, _ := furnish(t)
	for name, want := range map[string]error{
		"out": nil, "fifo": nil, "loop": nil, "out-dir/secret": confined.ErrOutside, "to-sub/up": nil,
		"nothing": fs.ErrNotExist,
	} {
		if _, err := root.Lstat(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if info, err := root.Stat("to-sub"); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := root.ReadDir("out-dir", 10); err == nil {
		t.Error("a directory outside is listed")
	}
	if _, err := root.ReadDir("fifo", 10); err == nil {
		t.Error("a FIFO is a directory")
	}
	text, err := confined.ReadNamed(t.Context(), filepath.Join(root.Dir(), "out"))
	if err != nil || string(text) != "secret" {
		t.Errorf("a link of the user's: %q, %v", text, err)
	}
	if _, err := confined.ReadNamed(t.Context(), filepath.Join(root.Dir(), "fifo")); !errors.Is(err,
		confined.ErrNotRegular) {
		t.Errorf("a FIFO of the user's: %v", err)
	}
}
