package isolate

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// SetAttr sets attr so that it starts the helper in user and network namespaces of its own, with the same user and
// group ids. The helper gets the capabilities to set up the namespaces, and drops them before it starts the agent. If
// view is true, the helper also gets namespaces for mounts, processes, System V objects and the host name.
func SetAttr(attr *syscall.SysProcAttr, view bool) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	if view {
		attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SYS_ADMIN)
	}
}

// Check returns an error if this machine cannot cut an agent off from the
// network. The error wraps ErrUnavailable and names the missing feature. helper
// is as in Isolation.
func Check(helper []string) error { return check(helper, nil) }

// CheckView is like Check, and also checks whether this machine can restrict an agent to a View.
func CheckView(helper []string) error {
	dir, err := os.MkdirTemp("", "acp-test-view-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer os.Remove(dir)
	return check(helper, &View{Write: []string{dir}})
}

func check(helper []string, view *View) error {
	if len(helper) == 0 {
		return errNoHelper
	}
	words := handed{View: view}.words(helper)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{}
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	SetAttr(cmd.SysProcAttr, view != nil)
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return fmt.Errorf("%w: %w%s", ErrUnavailable, err, lacking())
}

// lacking names the system settings that forbid namespaces, for an error message.
func lacking() string {
	var found []string
	for _, s := range []struct{ file, bad, name string }{
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"},
		{"/proc/sys/user/max_net_namespaces", "0", "user.max_net_namespaces is 0"},
		{"/proc/sys/user/max_mnt_namespaces", "0", "user.max_mnt_namespaces is 0"},
		{"/proc/sys/user/max_pid_namespaces", "0", "user.max_pid_namespaces is 0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns is 1"},
	} {
		if text, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(text)) == s.bad {
			found = append(found, s.name)
		}
	}
	if len(found) == 0 {
		return " (in a container, its seccomp profile may forbid them: Docker allows them with " +
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined)"
	}
	return " (" + strings.Join(found, ", ") + ")"
}

// Main is the helper of Isolation.Helper. It opens the ports and hands over their listeners. Without a view, its
// process then becomes the agent. With a view, its process is the first of the agent's namespace and starts the
// agent. If it returns, the result is the helper's exit status.
func Main(words []string) int {
	// Linux keeps capabilities per thread, so they must be dropped on the thread that has them.
	runtime.LockOSThread()
	h, err := parseHanded(words)
	if err == nil {
		err = h.start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "isolating the agent:", err)
		return 126
	}
	return 0
}

func (h handed) start() error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("starting the loopback interface: %w", err)
	}
	if h.Path == "" {
		if h.View == nil {
			return nil
		}
		return h.View.enter()
	}
	dir, err := os.Open(filepath.Dir(h.Socket))
	if err != nil {
		return err
	}
	harness, err := net.DialUnix("unix", nil, socketIn(dir, filepath.Base(h.Socket)))
	dir.Close()
	if err != nil {
		return err
	}
	defer harness.Close()
	err = h.arrange(harness)
	if err != nil {
		_, _ = harness.Write([]byte(err.Error())) // the harness reports the error
		return err
	}
	if h.View != nil {
		return lead(h.Path, h.Args)
	}
	return syscall.Exec(h.Path, h.Args, os.Environ())
}

// arrange makes the changes that need capabilities, then drops the capabilities.
func (h handed) arrange(harness *net.UnixConn) error {
	if h.View != nil {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		if err := h.View.enter(); err != nil {
			return fmt.Errorf("hiding the files of this machine: %w", err)
		}
		if err := os.Chdir(dir); err != nil {
			return fmt.Errorf("the agent cannot see its own folder: %w", err)
		}
	}
	if err := dropRights(); err != nil {
		return fmt.Errorf("dropping rights: %w", err)
	}
	return handOver(harness, h.Ports)
}

// dropRights drops all capabilities of this thread. Programs that the thread starts or becomes cannot regain them,
// even as user 0 or with file capabilities.
func dropRights() error {
	for right := uintptr(0); right < 64; right++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel has no higher capabilities
		} else if err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	// A program of user 0 would regain the inheritable capabilities, so clear them.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&header, &rights[0]); err != nil {
		return err
	}
	rights[0].Inheritable, rights[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &rights[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// handOver opens the ports and sends the listeners over the connection. A socket stays in the network namespace in
// which it was created, even if another process uses it.
func handOver(to *net.UnixConn, ports []int) error {
	var fds []int
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			return err
		}
		defer f.Close()
		fds = append(fds, int(f.Fd()))
	}
	_, _, err := to.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	return err
}

// receiveFiles receives the n listeners that handOver sent, or the error that the helper sent instead.
func receiveFiles(c *net.UnixConn, n int) ([]*os.File, error) {
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*max(n, 1)))
	size, rightsSize, _, _, err := c.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, err
	}
	if size != 1 || text[0] != 0 {
		return nil, errors.New(string(text[:size]))
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rightsSize])
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files(fds), err
		}
		fds = append(fds, more...)
	}
	if len(fds) != n {
		return files(fds), fmt.Errorf("the helper opened %d ports, not %d", len(fds), n)
	}
	return files(fds), nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
