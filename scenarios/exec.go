package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/transcript"
)

func compileExec(l *Line) Step {
	l.Need(0, "a program")
	l.Starts("acp-test runs a program with your rights")
	return func(ctx context.Context, b *Branch) error {
		var argv []string
		for _, w := range l.Rest {
			s, err := b.Expand(w)
			if err != nil {
				return l.Fault(err)
			}
			argv = append(argv, s)
		}
		return b.run.exec(ctx, b, l, argv)
	}
}

// exec runs the user's own check: any program, with the user's environment.
func (r *run) exec(ctx context.Context, b *Branch, l *Line, argv []string) error {
	wait, cancel := r.StepTimeout(ctx, 0)
	defer cancel()
	var in bytes.Buffer
	var out head
	if err := r.t.Save(&in); err != nil {
		return err
	}
	c := exec.CommandContext(wait, argv[0], argv[1:]...)
	if strings.Contains(argv[0], "/") {
		c.Path = r.InWork(argv[0])
		c.Err = nil
	}
	c.Dir, c.Stdin, c.Stdout, c.Stderr = r.box.Work, &in, &out, &out
	c.WaitDelay = time.Second
	id := ""
	if s := b.Session(); s != nil {
		id = s.ID
	}
	mark := process.TerminalVariable(fmt.Sprintf("%s/exec/%d", filepath.Base(r.box.Root), l.Number))
	defer process.KillCarriers(mark)
	c.Env = append(process.Attributed(r.engine.Host, filepath.Base(r.box.Root), r.connection()), mark,
		"WORK="+r.box.Work, "HOME="+r.box.Home, "ACP_TEST_SESSION="+id)
	err := r.runToEnd(c)
	r.changedByOthers(ctx)
	var exit *exec.ExitError
	switch {
	case err == nil:
		r.Did(l)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wait.Err() != nil:
		return b.Back(l, true, "an end of "+argv[0], context.Cause(wait).Error())
	case errors.As(err, &exit):
		return b.Back(l, true, argv[0]+" to end with status 0",
			fmt.Sprintf("%v\n%s", err, transcript.Clip(out.kept.String(), 2000)))
	}
	return l.Fault(fmt.Errorf("running %s: %w", argv[0], err))
}

// mostOutput is the maximum number of bytes of a program's output that are kept.
const mostOutput = 1 << 20

// head keeps the first mostOutput bytes of the data written to it.
type head struct{ kept bytes.Buffer } // not embedded, because io.Copy would then bypass Write

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.kept.Write(p[:min(len(p), max(mostOutput-h.kept.Len(), 0))])
	return len(p), nil
}

// runToEnd runs a program and kills the processes that it leaves behind.
func (r *run) runToEnd(c *exec.Cmd) error {
	process.Lead(c)
	if err := process.StartChild(c, c.Start); err != nil {
		return err
	}
	defer process.EndChild(c)
	defer process.KillLed(c)
	return c.Wait()
}
