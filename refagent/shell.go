package refagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// outputLimit is the number of bytes that are kept from the end of a command's output.
const outputLimit = 256 << 10

type exitStatus struct {
	ExitCode *int    `json:"exitCode"`
	Signal   *string `json:"signal"`
}

func (e exitStatus) err() error {
	switch {
	case e.Signal != nil && *e.Signal != "":
		return fmt.Errorf("the command was ended by %s", *e.Signal)
	case e.ExitCode != nil && *e.ExitCode != 0:
		return fmt.Errorf("the command ended with exit status %d", *e.ExitCode)
	}
	return nil
}

// runShell runs a command in a terminal of the editor. If the editor has no terminals, the agent runs the command
// itself.
func runShell(ctx context.Context, w *work) error {
	var status exitStatus
	var output string
	var err error
	switch {
	case w.a.v2() && !w.a.habits.OwnShell:
		status, output, err = w.inOwnTerminal(ctx)
	case w.a.capabilities().Terminal && !w.a.habits.OwnShell:
		status, output, err = w.inTerminal(ctx)
	default:
		status, output, err = w.inProcess(ctx, io.Discard)
		if err == nil && output != "" {
			w.content = textContent(output)
		}
	}
	if err != nil {
		return err
	}
	raw := object{"output": output}
	if status.ExitCode != nil {
		raw["exitCode"] = *status.ExitCode
	}
	if status.Signal != nil {
		raw["signal"] = *status.Signal
	}
	w.rawOutput = raw
	if err := status.err(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	w.result = output
	return nil
}

// inTerminal runs a command in a terminal of the editor: it creates the terminal, waits for the command, gets the
// output and releases the terminal. If the turn is cancelled, it kills the command.
func (w *work) inTerminal(ctx context.Context) (status exitStatus, output string, err error) {
	conn, id := w.a.conn, w.s.id
	var created struct{ TerminalID string }
	create := object{"sessionId": id, "command": "sh", "args": []string{"-c", w.args.str("command")},
		"cwd": w.s.cwd, "outputByteLimit": outputLimit}
	if words := strings.Fields(w.args.str("command")); w.a.habits.Direct && len(words) > 0 && plainWords(words) {
		create["command"], create["args"] = words[0], words[1:]
	}
	if err := ctx.Err(); err != nil {
		return status, "", fmt.Errorf("creating a terminal: %w", err)
	}
	creating := conn.begin("terminal/create", id, create)
	if err := creating.awaitEvenSo(ctx, &created); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			go w.releaseLate(creating)
		}
		return status, "", fmt.Errorf("creating a terminal: %w", err)
	}
	terminal := object{"sessionId": id, "terminalId": created.TerminalID}
	// From here on, the terminal must be released, even if the turn is cancelled.
	defer func() {
		release := func() { _ = conn.callEvenSo(ctx, "terminal/release", id, terminal, nil) }
		if w.a.habits.Later {
			go release()
			return
		}
		release()
	}()

	if ctx.Err() == nil {
		w.progress([]toolContent{{Type: "terminal", TerminalID: created.TerminalID}})
	}
	if w.a.habits.Polls {
		return w.poll(ctx, terminal)
	}
	waiting := conn.begin("terminal/wait_for_exit", id, terminal)
	err = waiting.await(ctx, &status)
	if ctx.Err() != nil {
		if err != nil {
			_ = conn.callEvenSo(ctx, "terminal/kill", id, terminal, nil) // ignore an error: release kills too
			_ = waiting.awaitGrace(&status)
		}
		return status, "", errCancelled
	}
	if err != nil {
		return status, "", fmt.Errorf("waiting for the command: %w", err)
	}
	var out struct{ Output string }
	if err := conn.call(ctx, "terminal/output", id, terminal, &out); err != nil {
		return status, "", fmt.Errorf("reading the command's output: %w", err)
	}
	if w.a.habits.Kills {
		_ = conn.call(ctx, "terminal/kill", id, terminal, nil) // has no effect on a command that has ended
	}
	return status, out.Output, nil
}

// releaseLate waits for the response to a terminal/create that was cancelled, and releases the terminal that the editor
// created even so.
func (w *work) releaseLate(creating *call) {
	var created struct{ TerminalID string }
	if creating.await(context.Background(), &created) == nil {
		_ = w.a.conn.callEvenSo(context.Background(), "terminal/release", w.s.id,
			object{"sessionId": w.s.id, "terminalId": created.TerminalID}, nil)
	}
}

// plainWords reports whether a command consists only of plain words, so that it needs no shell.
func plainWords(words []string) bool {
	return !strings.ContainsFunc(strings.Join(words, ""), func(r rune) bool {
		return !strings.ContainsRune("/._-,:+@", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// pollEvery is the delay between two polls of a terminal.
const pollEvery = 20 * time.Millisecond

// poll requests a terminal's output again and again until the command has ended.
func (w *work) poll(ctx context.Context, terminal object) (status exitStatus, output string, err error) {
	for {
		var out struct {
			Output     string
			ExitStatus *exitStatus
		}
		err := w.a.conn.call(ctx, "terminal/output", w.s.id, terminal, &out)
		if ctx.Err() == nil && err != nil {
			return status, "", fmt.Errorf("reading the command's output: %w", err)
		}
		if ctx.Err() == nil && out.ExitStatus != nil {
			return *out.ExitStatus, out.Output, nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			_ = w.a.conn.callEvenSo(ctx, "terminal/kill", w.s.id, terminal, nil)
			return status, "", errCancelled
		}
	}
}

// inProcess runs a command as a process of the agent, and also writes its output to show. If ctx ends, it kills the
// command's process group.
func (w *work) inProcess(ctx context.Context, show io.Writer) (status exitStatus, output string, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", w.args.str("command"))
	cmd.Dir = w.s.cwd
	var out tail
	both := io.MultiWriter(&out, show)
	cmd.Stdout, cmd.Stderr = both, both
	inOwnGroup(cmd)
	// The editor must have read that the command is running before the command can have any effect.
	w.a.conn.out.drain(ctx, 0)
	cmd.WaitDelay = linger / 4
	if w.a.hooks.Command != nil {
		w.a.hooks.Command(cmd)
	}
	err = cmd.Run()
	endGroup(cmd) // for background processes of the command
	if ctx.Err() != nil {
		return status, "", errCancelled
	}
	if cmd.ProcessState == nil {
		return status, "", fmt.Errorf("starting the command: %w", err)
	}
	status = exitOf(cmd.ProcessState)
	return status, out.String(), nil
}

// tail is a writer that keeps the last outputLimit bytes.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - outputLimit; over > 0 {
		_, _ = io.CopyN(io.Discard, &t.buf, int64(over))
	}
	return len(p), nil
}

// String returns the text that was kept. It removes an incomplete character at its beginning.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf.Bytes()
	for len(b) > 0 && t.buf.Len() == outputLimit && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
