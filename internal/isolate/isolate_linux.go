package isolate

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// SetAttr makes attr start a process in namespaces of its own, where it keeps
// the user's and the group's number. The right to configure the network there
// goes to the helper, which drops it before it becomes the agent.
func SetAttr(attr *syscall.SysProcAttr) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
}

// Check says why this machine cannot isolate an agent, nil if it can. The
// error wraps ErrUnavailable and says what is missing. helper is as in
// Isolation.
func Check(helper []string) error {
	if len(helper) == 0 {
		return errNoHelper
	}
	cmd := exec.Command(helper[0], helper[1:]...)
	cmd.Env = []string{}
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	SetAttr(cmd.SysProcAttr)
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return fmt.Errorf("%w: %w%s", ErrUnavailable, err, lacking())
}

// lacking names the settings of the system that forbid namespaces.
func lacking() string {
	var found []string
	for _, s := range []struct{ file, bad, name string }{
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"},
		{"/proc/sys/user/max_net_namespaces", "0", "user.max_net_namespaces is 0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns is 1"},
	} {
		if text, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(text)) == s.bad {
			found = append(found, s.name)
		}
	}
	if len(found) == 0 {
		return " (in a container, its seccomp profile may forbid them: " +
			"Docker allows them with --security-opt seccomp=unconfined)"
	}
	return " (" + strings.Join(found, ", ") + ")"
}

// Main is the body of the hidden command that Isolation.Helper names. It opens
// the ports, hands them over and becomes the agent; it returns only if that
// fails. Without words it only tries what it needs.
func Main(words []string) int {
	// The right to configure the network belongs to this thread, and is
	// dropped on it.
	runtime.LockOSThread()
	if err := loopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, "bringing loopback up:", err)
		return 126
	}
	if len(words) == 0 {
		return 0
	}
	if err := becomeIsolated(words); err != nil {
		fmt.Fprintln(os.Stderr, "isolating the agent:", err)
		return 126
	}
	return 0
}

func becomeIsolated(words []string) error {
	h, err := parseHanded(words)
	if err != nil {
		return err
	}
	harness, err := net.Dial("unix", h.socket)
	if err != nil {
		return err
	}
	defer harness.Close()
	if err := handOver(harness.(*net.UnixConn), h.ports); err != nil {
		_, _ = harness.Write([]byte(err.Error())) // which reports it
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping rights: %w", err)
	}
	return syscall.Exec(h.path, h.args, os.Environ())
}

// handOver opens the ports and passes the listeners on. A socket stays in the
// network it was made in, whoever holds it.
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

// receiveFiles takes what handOver passed, or the error it wrote.
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
		return files(fds), fmt.Errorf("%d ports were opened, not %d", len(fds), n)
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
