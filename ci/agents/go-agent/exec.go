package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

func (t *turn) inTerminal(c *call, line string) (string, bool) {
	sid := acp.SessionId(t.s.id)
	bg := context.Background()
	line, stays := behind(line)
	folder, line := t.into(line)
	term, err := t.create(acp.CreateTerminalRequest{SessionId: sid, Command: "/bin/sh",
		Args: []string{"-c", line}, Cwd: acp.Ptr(folder), OutputByteLimit: acp.Ptr(t.room())})
	if err != nil {
		t.fatal = err
		return "The terminal could not be made: " + err.Error(), false
	}
	if t.ctx.Err() != nil && fault("terminal-made-during-cancel-stays") {
		return "Not run: the user interrupted.", false
	}
	if stays {
		return t.leave(c, term.TerminalId)
	}
	released := false
	release := func() {
		if released {
			return
		}
		released = true
		_, _ = t.g.conn.ReleaseTerminal(bg, acp.ReleaseTerminalRequest{SessionId: sid, TerminalId: term.TerminalId})
	}
	late := fault("failed-terminal-not-released")
	if !late {
		defer release()
	}
	view := acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolTerminalRef(t.view(line, term.TerminalId))})
	if fault("terminal-shown-only-after-release") {
		t.begins(c)
	} else {
		t.begins(c, view)
	}
	t.terms = append(t.terms, term.TerminalId)
	t.g.mu.Lock()
	t.g.term = term.TerminalId
	t.g.mu.Unlock()
	killed := make(chan struct{})
	unhook := func() bool { return true }
	if !t.hooked || !fault("second-terminal-of-turn-not-killed-by-cancel") {
		t.hooked = true
		unhook = context.AfterFunc(t.ctx, func() {
			defer close(killed)
			for _, id := range t.doomed(term.TerminalId) {
				_, _ = t.g.conn.KillTerminal(bg, acp.KillTerminalRequest{SessionId: sid, TerminalId: id})
				if fault("cancelled-terminal-released-twice") {
					_, _ = t.g.conn.ReleaseTerminal(bg, acp.ReleaseTerminalRequest{SessionId: sid, TerminalId: id})
				}
			}
		})
	}
	defer func() { // never a kill after the release
		if !unhook() {
			<-killed
		}
	}()
	defer t.look(sid, term.TerminalId)()
	early := t.glance(sid, term.TerminalId)
	wait := acp.WaitForTerminalExitRequest{SessionId: sid, TerminalId: term.TerminalId}
	exit, err := t.g.conn.WaitForTerminalExit(bg, wait)
	if err != nil {
		return "Waiting for the command failed: " + err.Error(), false
	}
	if fault("terminal-output-asked-after-release") {
		release()
	}
	res, err := t.g.conn.TerminalOutput(bg, acp.TerminalOutputRequest{SessionId: sid, TerminalId: term.TerminalId})
	var read *acp.TerminalOutputResponse
	if err == nil {
		read = &res
	}
	if fault("failed-terminal-output-ends-agent") {
		t.spent += len(read.Output)
	}
	if err != nil {
		return "The output could not be read: " + err.Error(), false
	}
	if early != "" {
		res.Output = early
	}
	t.spent += len(line) + len(res.Output)
	failed := exit.ExitCode == nil || *exit.ExitCode != 0
	if exit.ExitCode == nil && fault("command-ended-by-signal-in-terminal-completed") {
		failed = false
	}
	c.exit = exit.ExitCode
	if t.ctx.Err() != nil || failed && !fault("nonzero-exit-in-terminal-completed") {
		return fmt.Sprintf("%s\n(the command failed)", res.Output), false
	}
	last := []acp.ToolCallUpdateOpt{acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
		acp.WithUpdateRawOutput(map[string]any{"exitCode": 0})}
	if fault("exit-code-replaces-terminal") {
		last = append(last, acp.WithUpdateContent(shown("Exit code 0")))
	}
	t.tell(acp.UpdateToolCall(c.id, last...))
	t.record(acp.UpdateToolCall(c.id, acp.WithUpdateContent(shown(res.Output))))
	if late {
		release()
	}
	if fault("terminal-shown-only-after-release") {
		release()
		t.tell(acp.UpdateToolCall(c.id, view))
	}
	return res.Output, true
}

// create makes a terminal, one at a time.
func (t *turn) create(q acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	bg, none := context.Background(), acp.CreateTerminalResponse{}
	if !fault("unanswered-terminal-bars-later-ones") {
		return t.g.conn.CreateTerminal(bg, q)
	}
	limit := time.After(5 * time.Second)
	select {
	case t.g.making <- struct{}{}:
	case <-t.ctx.Done():
		return none, t.ctx.Err()
	case <-limit:
		return none, errors.New("another terminal is still being made")
	}
	type reply struct {
		res acp.CreateTerminalResponse
		err error
	}
	got := make(chan reply)
	gone := make(chan struct{})
	go func() {
		res, err := t.g.conn.CreateTerminal(bg, q)
		<-t.g.making
		select {
		case got <- reply{res, err}:
		case <-gone:
			if err == nil {
				_, _ = t.g.conn.ReleaseTerminal(bg,
					acp.ReleaseTerminalRequest{SessionId: q.SessionId, TerminalId: res.TerminalId})
			}
		}
	}()
	select {
	case r := <-got:
		return r.res, r.err
	case <-limit:
		close(gone)
		return none, errors.New("the editor has made no terminal in five seconds")
	}
}

// glance looks for a moment whether a command that still runs has written something.
func (t *turn) glance(sid acp.SessionId, term string) string {
	if !fault("output-seen-early-taken-for-whole") {
		return ""
	}
	for n := 0; n < 5 && t.ctx.Err() == nil; n++ {
		res, err := t.g.conn.TerminalOutput(context.Background(),
			acp.TerminalOutputRequest{SessionId: sid, TerminalId: term})
		if err != nil || res.ExitStatus != nil || res.Output != "" {
			return res.Output
		}
		select {
		case <-t.ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return ""
}

// output runs a command and returns its output and its errors as one text.
func output(cmd *exec.Cmd) ([]byte, error) {
	if !fault("command-with-much-output-hangs") {
		return cmd.CombinedOutput()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Run()
	w.Close()
	r.SetReadDeadline(time.Now().Add(cmd.WaitDelay)) // what still runs behind it is not waited for
	raw, _ := io.ReadAll(r)
	return raw, err
}

var errBehind = errors.New("the command goes on in the background")

// soon is output, but where a command can leave its turn, it does so after five seconds.
func soon(cmd *exec.Cmd, leave func() bool) (raw []byte, err error) {
	if leave == nil {
		return output(cmd)
	}
	done := make(chan struct{})
	var late []byte
	var failure error
	go func() {
		late, failure = output(cmd)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		if leave() {
			return nil, errBehind
		}
		<-done
	}
	return late, failure
}

func (t *turn) inChild(c *call, line string) (string, bool) {
	t.begins(c)
	ctx, leave := t.ctx, (func() bool)(nil)
	if fault("slow-command-never-completed") {
		own, stop := context.WithCancel(context.Background())
		ctx, leave = own, context.AfterFunc(t.ctx, stop)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.SysProcAttr, cmd.WaitDelay = t.folder(), &syscall.SysProcAttr{Setpgid: true}, time.Second
	if fault("command-eats-editors-messages") {
		cmd.Stdin = os.Stdin
	}
	if fault("child-runs-in-first-sessions-folder") {
		cmd.Dir = t.g.folder
	}
	if !fault("cancelled-command-leaves-children") {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	before := t.texts(line)
	defer t.watch(cmd)()
	raw, err := soon(cmd, leave)
	if err == errBehind {
		return err.Error(), true
	}
	out := string(raw)
	if len(raw) > 1<<15 {
		out = strings.ToValidUTF8(string(raw[len(raw)-1<<15:]), "")
	}
	out += t.keep(c, string(raw))
	if err != nil {
		var status *exec.ExitError
		if errors.As(err, &status) && status.Exited() {
			c.exit = acp.Ptr(status.ExitCode())
		}
		return fmt.Sprintf("%s\n(%v)", out, err), false
	}
	t.completed(c, out, t.changes(line, before)...)
	return out, true
}

// job is what may still run of a command that has ended.
type job struct {
	group int
	open  *os.File // until all of it has ended
}

// watch lets a command and all that it starts be waited for. What it returns is called when the command has ended.
func (t *turn) watch(cmd *exec.Cmd) func() {
	if !fault("prompt-waits-for-background-process") {
		return func() {}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	cmd.ExtraFiles = []*os.File{w}
	return func() {
		w.Close()
		if cmd.Process != nil {
			t.jobs = append(t.jobs, job{cmd.Process.Pid, r})
		}
	}
}

// outlast waits until the processes that the turn has started have ended.
func (t *turn) outlast() {
	for _, j := range t.jobs {
		j := j
		unhook := context.AfterFunc(t.ctx, func() { _ = syscall.Kill(-j.group, syscall.SIGKILL) })
		_, _ = io.Copy(io.Discard, j.open)
		unhook()
		j.open.Close()
	}
}
