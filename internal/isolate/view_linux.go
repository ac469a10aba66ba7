package isolate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// systemPaths are the parts of the system that every agent can read: programs, libraries and their configuration.
// None of them belongs to a user, and the files in /etc are not secret.
var systemPaths = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu",
	"/snap", "/etc/alternatives", "/etc/ca-certificates*", "/etc/crypto-policies", "/etc/fonts", "/etc/group",
	"/etc/host.conf", "/etc/hostname", "/etc/hosts", "/etc/java*", "/etc/ld.so.*", "/etc/locale*", "/etc/localtime",
	"/etc/magic*", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust",
	"/etc/pki/tls/cert*", "/etc/pki/tls/*.cnf", "/etc/protocols", "/etc/python*", "/etc/resolv.conf", "/etc/services",
	"/etc/shells", "/etc/ssl/cert*", "/etc/ssl/*.cnf", "/etc/timezone"}

var deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// enter restricts this process and those it starts to the files of the view. It creates a new root with copies of the
// mounts. This process must be the first in mount and process namespaces of its own.
func (v *View) enter() error {
	trees, links, err := v.collect()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts apart: %w", err)
	}
	root := v.Write[0]
	if err := mount("tmpfs", root, "mode=755,size=16m"); err != nil {
		return err
	}
	if err := system(root); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.put(root); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
	}
	for _, l := range links {
		if err := os.MkdirAll(filepath.Dir(root+l.at), 0o755); err == nil {
			_ = os.Symlink(l.to, root+l.at) // may fail, if a shown directory contains the link
		}
	}
	for _, dir := range v.Hide {
		if info, err := os.Stat(root + dir); err != nil || !info.IsDir() {
			continue
		}
		if err := mount("tmpfs", root+dir, "mode=555,size=4k"); err != nil {
			return err
		}
	}
	return become(root)
}

// collect copies the mounts of all shown files before the new root covers some of them. It also returns the links
// that lead to these files. If a tree is inside another tree, it comes after that tree.
func (v *View) collect() (trees []*tree, links []link, err error) {
	shown := map[string]*tree{}
	show := func(path string, write bool) error {
		at, more, err := follow(path)
		if errors.Is(err, os.ErrNotExist) && !write {
			return nil
		} else if err != nil {
			return err
		}
		links = append(links, more...)
		if shown[at] == nil || write {
			shown[at] = &tree{path: at, write: write}
		}
		return nil
	}
	read := slices.Clone(v.Read)
	for _, pattern := range systemPaths {
		all, _ := filepath.Glob(pattern)
		read = append(read, all...)
	}
	for _, path := range read {
		err = errors.Join(err, show(path, false))
	}
	for _, path := range slices.Concat(v.Write, deviceFiles) {
		err = errors.Join(err, show(path, true))
	}
	if err != nil {
		return nil, nil, err
	}
	for _, t := range shown {
		above := func(p string) bool { return p != t.path && !shown[p].write && contains(p, t.path) }
		if !t.write && slices.ContainsFunc(slices.Collect(maps.Keys(shown)), above) {
			continue
		}
		if err := t.take(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.path, err)
		}
		trees = append(trees, t)
	}
	slices.SortFunc(trees, func(a, b *tree) int { return cmp.Compare(len(a.path), len(b.path)) })
	return trees, links, nil
}

// become makes a directory the read-only root of this process, and unmounts the old root.
func become(root string) error {
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, root, 0, &readOnly); err != nil {
		return fmt.Errorf("making the root read-only: %w", err)
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	return os.Chdir("/")
}

func mount(kind, at, options string) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if kind == "devpts" {
		flags = unix.MS_NOSUID | unix.MS_NOEXEC
	}
	if err := unix.Mount(kind, at, kind, flags, options); err != nil {
		return fmt.Errorf("mounting %s: %w", kind, err)
	}
	return nil
}

// system mounts the file systems of the kernel, such as /proc, and those in memory.
func system(root string) error {
	for _, m := range []struct{ kind, at, options string }{
		{"proc", "/proc", ""},
		{"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620"},
		{"tmpfs", "/dev/shm", "mode=1777,size=64m"},
		{"tmpfs", "/tmp", "mode=1777,size=256m"},
	} {
		if err := os.MkdirAll(root+m.at, 0o755); err != nil {
			return err
		}
		if err := mount(m.kind, root+m.at, m.options); err != nil {
			return err
		}
	}
	// A process of user 0 could change kernel settings through these files, even without capabilities.
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs",
		"/proc/scsi"} {
		t := &tree{path: root + path}
		if err := t.take(); errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := t.put(""); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, dir := range []string{"/run", "/var", "/home", "/mnt"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
	}
	for at, to := range map[string]string{
		"/dev/ptmx": "pts/ptmx", "/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
		"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2", "/var/tmp": "/tmp", "/var/run": "/run",
	} {
		if err := os.Symlink(to, root+at); err != nil {
			return err
		}
	}
	return nil
}

// tree is a file or directory that the agent sees at its own path, including all mounts below.
type tree struct {
	path  string // absolute path without links
	write bool
	fd    int
	dir   bool
}

// take makes a copy of the tree's mount. The copy is not attached yet.
func (t *tree) take() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return err
	}
	t.dir = info.IsDir()
	if t.fd, err = unix.OpenTree(unix.AT_FDCWD, t.path,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("mounting it: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !t.write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV
	}
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("mounting it with fewer rights: %w", err)
	}
	return nil
}

// put attaches the tree at its path below root. It creates the mount point if it does not exist. It exists if a
// directory above is already attached.
func (t *tree) put(root string) error {
	at := root + t.path
	if _, err := os.Lstat(at); err != nil {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if t.dir {
			err = os.Mkdir(at, 0o755)
		} else {
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	defer unix.Close(t.fd)
	return unix.MoveMount(t.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// link is a symbolic link on the way to a shown file.
type link struct{ at, to string }

// follow resolves the links in a path. It returns the path to which they lead, and the links.
func follow(path string) (at string, links []link, err error) {
	const most = 40 // the kernel's limit
	at = "/"
	rest := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		links = append(links, link{next, to})
		if len(links) > most {
			return "", nil, fmt.Errorf("%s: %w", path, unix.ELOOP)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		at, rest = "/", append(strings.Split(strings.Trim(to, "/"), "/"), rest...)
	}
	return at, links, nil
}
