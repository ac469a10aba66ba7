//go:build unix

package mockclient

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/acp-test/acp-test/internal/process"
)

const (
	mostPrinted = 16 << 10        // maximum number of bytes that TypeInto returns
	settled     = time.Second     // a command that has been quiet for so long waits for input
	silence     = 5 * time.Second // the same before its first output
)

// TypeInto runs a command in a terminal of 24 rows and 500 columns and types texts into it. It types the first one when
// the command has been quiet for a second after its first output, or has printed nothing for five seconds. The others
// follow, one each second. If ctx ends before the command does, TypeInto kills the command's process group. end is
// called when the command has ended, and must kill the processes that the command left behind. TypeInto returns the
// first 16 KiB of the output, the number of texts that it typed, and the error of cmd.Wait or the cause of ctx.
func TypeInto(ctx context.Context, cmd *exec.Cmd, end func(), texts ...string) (printed string, typed int, err error) {
	var screen *os.File
	if err := process.StartChild(cmd, func() (err error) {
		screen, err = pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 500},
			&syscall.SysProcAttr{Setsid: true, Setctty: true})
		return err
	}); err != nil {
		return "", 0, err
	}
	defer process.EndChild(cmd)
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stop := context.AfterFunc(ctx, kill)
	var mu sync.Mutex // guards out
	var out bytes.Buffer
	news, ended, read, wrote := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for n, err := screen.Read(buf); err == nil; n, err = screen.Read(buf) {
			mu.Lock()
			out.Write(buf[:min(n, mostPrinted-out.Len())])
			mu.Unlock()
			select {
			case news <- struct{}{}:
			default:
			}
		}
	}()
	go func() {
		defer close(wrote)
		for wait := time.After(silence); typed < len(texts); {
			select {
			case <-ended:
				return
			case <-news:
				if typed == 0 {
					wait = time.After(settled)
				}
			case <-wait:
				_, _ = screen.WriteString(texts[typed]) // the command may have ended
				typed++
				wait = time.After(settled)
			}
		}
	}()
	err = cmd.Wait()
	if !stop() {
		err = context.Cause(ctx)
	}
	close(ended)
	kill()
	end()
	<-wrote
	select {
	case <-read:
	case <-time.After(time.Second): // a process that was not found keeps the terminal open
	}
	screen.Close()
	mu.Lock()
	defer mu.Unlock()
	return out.String(), typed, err
}
