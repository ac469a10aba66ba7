//go:build unix

package mockclient

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/acp-test/acp-test/internal/process"
)

// mostPrinted is the maximum number of bytes that TypeInto returns.
const mostPrinted = 16 << 10

// TypeInto runs a command in a terminal of 24 rows and 80 columns. It types the first text when the command has printed
// something, or after two seconds. Each second after that, it types the next text, and at last the last one again. It
// returns the first 16 KiB of the output, and the error of cmd.Wait. If ctx ends first, TypeInto kills the command's
// process group and returns the cause.
func TypeInto(ctx context.Context, cmd *exec.Cmd, texts ...string) (printed string, err error) {
	var screen *os.File
	if err := process.StartChild(cmd, func() (err error) {
		screen, err = pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 80},
			&syscall.SysProcAttr{Setsid: true, Setctty: true})
		return err
	}); err != nil {
		return "", err
	}
	defer process.EndChild(cmd)
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	began, ended := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-began:
		case <-time.After(2 * time.Second):
		case <-ended:
		}
		for i := 0; ; i++ {
			_, _ = screen.WriteString(texts[min(i, len(texts)-1)]) // the command may have ended
			select {
			case <-time.After(time.Second):
			case <-ended:
				return
			}
		}
	}()
	read := make(chan struct{})
	var out bytes.Buffer
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for n, err := screen.Read(buf); err == nil; n, err = screen.Read(buf) {
			if out.Len() == 0 {
				close(began)
			}
			out.Write(buf[:min(n, mostPrinted-out.Len())])
		}
	}()
	err = cmd.Wait()
	close(ended)
	select { // remaining processes may keep the terminal open
	case <-read:
	case <-time.After(200 * time.Millisecond):
	}
	screen.Close()
	<-read
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}
