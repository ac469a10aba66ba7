//go:build unix

package mockclient

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// startReal runs a command on a pty. The command is the leader of a process session. Its environment contains the
// run, by which the keeper finds its processes to kill them, and the terminal, by which the editor does.
func (l *ledger) startReal(r *Request, t *terminal, words []string, dir string, env []string) {
	if !slices.ContainsFunc(l.opts.Allow, func(pattern string) bool { return glob.Text(pattern, t.Command) }) {
		r.e.note(t.Session, Note{
			Code: "command-refused", Request: r.Entry.Seq, Refused: t.Command,
			Text: "the command is not among those the test allows",
		})
		r.Fail(codeInvalidParams, "the command %q is not allowed here", wire.Clip(t.Command, 200))
		return
	}
	mark := process.TerminalVariable(l.a.RunID() + "/" + strconv.Itoa(l.a.Conn()) + "/" + strconv.Itoa(r.Entry.Seq))
	cmd := &exec.Cmd{Args: words, Dir: dir}
	cmd.Env = append(process.Attributed(slices.Concat(l.opts.Env, env), l.a.RunID(), l.a.Conn()), mark)
	var err error
	if cmd.Path, err = lookIn(cmd.Env, dir, words[0]); err != nil {
		r.Fail(codeNotFound, "no such command: %s", wire.Clip(words[0], 200))
		return
	}
	size := pty.Winsize{Rows: l.opts.Rows, Cols: l.opts.Cols}
	if size.Rows == 0 || size.Cols == 0 {
		size = pty.Winsize{Rows: 24, Cols: 80}
	}
	var screen *os.File
	if err := process.StartChild(cmd, func() (err error) {
		screen, err = pty.StartWithAttrs(cmd, &size, &syscall.SysProcAttr{Setsid: true, Setctty: true})
		return err
	}); err != nil {
		r.Fail(codeInternal, "starting %q: %v", wire.Clip(words[0], 200), err)
		return
	}
	l.add(t)
	l.event(t, transcript.TermStarted, termEvent{Command: words[0], Args: words[1:], Dir: dir, PID: cmd.Process.Pid})
	var once sync.Once
	t.free = func() { once.Do(func() { screen.Close() }) }
	exited := make(chan struct{})
	t.kill = func() {
		select {
		case <-exited:
		default: // not waited for yet, so the pid is still valid
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		process.KillCarriers(mark)
	}
	read := make(chan struct{})
	l.waits.Go(func() {
		defer close(read)
		buf := make([]byte, 32<<10)
		for {
			n, err := screen.Read(buf)
			if n > 0 {
				l.print(t, buf[:n])
			}
			if err != nil { // EIO: no process has the other end open
				return
			}
		}
	})
	l.waits.Go(func() {
		err := cmd.Wait()
		close(exited)
		process.EndChild(cmd)
		select { // remaining processes may keep the pty open
		case <-read:
		case <-time.After(200 * time.Millisecond):
		}
		how := process.ExitOf(err, cmd)
		l.exited(t, statusOf(how.Code, how.Signal))
	})
	r.Reply(created{t.ID})
}

// lookIn searches a program in the PATH in env, not in the PATH of this process.
func lookIn(env []string, dir, name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return exec.LookPath(name)
	}
	for i := len(env) - 1; i >= 0; i-- { // the last definition counts
		if list, ok := strings.CutPrefix(env[i], "PATH="); ok {
			for _, in := range filepath.SplitList(list) {
				if found, err := exec.LookPath(filepath.Join(in, name)); err == nil && filepath.IsAbs(found) {
					return found, nil
				}
			}
			break
		}
	}
	return "", exec.ErrNotFound
}
