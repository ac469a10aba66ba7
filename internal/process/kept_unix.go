//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/pipe"
)

// kept is an agent that runs under a keeper.
type kept struct {
	post  *post
	agent int
	run   string
	conn  int
	// patience is the maximum time that the keeper may take to end the processes that the agent left behind.
	patience time.Duration

	ordering sync.Mutex // guards released
	released bool       // the keeper no longer serves this agent
	asking   sync.Mutex // allows one List or Signal at a time
	answers  chan report

	over      chan struct{} // closed when the agent has ended
	done      chan struct{} // closed when the agent and all its descendants have ended
	mu        sync.Mutex    // guards the following fields
	exit      Exit
	survivors []Info
	left      []Info    // processes that could not be killed
	killing   sync.Once // starts the check on the keeper after the first Kill
	unfit     bool      // the keeper may not serve another agent
	forced    bool      // the keeper did not answer, so force did the keeper's work
	stopped   bool      // the keeper had been stopped by a signal
}

func startKept(ctx context.Context, keeper []string, remove, trim string, s spawn, files *pipe.Set) (Process, error) {
	p, err := hire(keeper)
	if err != nil {
		return nil, err
	}
	k := &kept{
		post: p, run: s.RunID, conn: s.Conn, answers: make(chan report, 1), over: make(chan struct{}),
		done: make(chan struct{}), exit: Exit{Code: -1, Error: "the keeper died", Keeper: "died"}, unfit: true,
	}
	// Ignore the error: if the write fails, no report follows, and the error of reading says more.
	_ = p.send(order{Charge: &charge{Run: s.RunID, Conn: s.Conn, Remove: remove, Trim: trim}, Spawn: &s},
		files.Stdin, files.Stdout, files.Stderr)
	_ = p.conn.SetReadDeadline(time.Now().Add(starting))
	stop := context.AfterFunc(ctx, func() { _ = p.conn.SetReadDeadline(time.Unix(1, 0)) })
	first, err := readReport(p.in)
	if !stop() { // ctx has ended, but the agent may already run
		_ = p.send(order{Kill: true})
		k.release()
		return nil, context.Cause(ctx)
	}
	if err == nil && first.Kind == "failed" {
		err = errors.New(first.Error)
	} else if err != nil {
		err = fmt.Errorf("the keeper %q ended without a report (%w); it must be a command that calls KeeperMain", keeper, err)
	}
	if err != nil {
		k.release()
		return nil, err
	}
	_ = p.conn.SetReadDeadline(time.Time{})
	k.agent, k.patience, k.unfit = first.PID, s.Linger+killingTime+answering, false
	go k.listen(p.in)
	return k, nil
}

func (k *kept) order(o order) error {
	k.ordering.Lock()
	defer k.ordering.Unlock()
	if k.released {
		return ErrExited
	}
	return k.post.send(o)
}

func (k *kept) listen(in *bufio.Reader) {
	defer close(k.done)
	over := sync.OnceFunc(func() { close(k.over) })
	defer over()
	for {
		r, err := readReport(in)
		k.mu.Lock()
		switch {
		case err != nil && k.forced:
			k.exit.Error = "the keeper did not answer"
		case err != nil && !errors.Is(err, io.EOF):
			k.exit.Error = err.Error()
		case r.Kind == "exited" && r.Exit != nil:
			k.exit = *r.Exit
			k.exit.Keeper = ""
		case r.Kind == "survivors":
			k.survivors = r.Processes
		case r.Kind == "gone":
			k.left = r.Processes
		}
		k.mu.Unlock()
		switch {
		case err != nil || r.Kind == "gone":
			return
		case r.Kind == "exited":
			over()
		case r.Kind == "list" || r.Kind == "signalled":
			select {
			case k.answers <- r:
			default: // no caller waits for this answer
			}
		}
	}
}

func (k *kept) ask(o order) (report, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	select {
	case <-k.answers: // drop a late answer to an earlier request
	default:
	}
	if err := k.order(o); err != nil {
		return report{}, err
	}
	patience := time.NewTimer(answering)
	defer patience.Stop()
	select {
	case r := <-k.answers:
		return r, nil
	case <-k.done:
	case <-patience.C:
		k.spoil()
		return report{}, ErrKeeper
	}
	select { // maybe the signal ended the agent
	case r := <-k.answers:
		return r, nil
	default:
		return report{}, ErrExited
	}
}

func (k *kept) PID() int { return k.agent }

func (k *kept) Signal(s syscall.Signal, group bool) error {
	r, err := k.ask(order{Signal: s, Group: group})
	if err != nil {
		return err
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// spoil makes sure that the keeper serves no other agent.
func (k *kept) spoil() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unfit = true
}

// Kill orders the keeper to kill the agent. If the keeper does not react, Kill does this work itself.
func (k *kept) Kill() {
	k.spoil()
	_ = k.order(order{Kill: true})
	k.killing.Do(func() {
		go func() {
			select {
			case <-k.done:
			case <-k.over: // the keeper is working
			case <-time.After(answering):
				k.insist()
			}
		}()
	})
}

// insist does the keeper's work. It is for a keeper that does not answer, for example because the agent stopped it.
func (k *kept) insist() {
	stopped := Stopped(k.post.pid())
	k.mu.Lock()
	k.forced, k.unfit, k.stopped = true, true, k.stopped || stopped
	k.mu.Unlock()
	left := k.force()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = append(k.left, left...)
}

func (k *kept) Descendants() []Info {
	r, err := k.ask(order{List: true})
	if err != nil {
		return nil
	}
	return r.Processes
}

func (k *kept) Ended() <-chan struct{} { return k.over }

func (k *kept) Wait() (Exit, []Info) {
	select {
	case <-k.done:
	case <-k.over:
		// If the keeper works, it reports within k.patience that no process is left.
		select {
		case <-k.done:
		case <-time.After(k.patience):
			k.insist()
			<-k.done
		}
	}
	k.mu.Lock()
	died := k.exit.Keeper != ""
	if k.stopped {
		k.exit.Keeper = "was stopped"
	}
	k.mu.Unlock()
	var left []Info
	if died { // the keeper died, so nothing else kills the processes
		k.spoil()
		k.post.clearGroup()
		left = append(sweepRun(k.run, k.conn), KillOrphans()...)
	}
	k.release()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.exit, outlived(k.survivors, append(k.left, left...))
}

// release ends the keeper's responsibility for this agent. If the agent left nothing behind, the keeper can serve
// another agent. The keeper does not remove the run's directory, because the harness is alive and does that.
func (k *kept) release() {
	k.ordering.Lock()
	k.released = true
	k.ordering.Unlock()
	k.mu.Lock()
	fit := !k.unfit && len(k.survivors)+len(k.left) == 0
	k.mu.Unlock()
	k.post.release(fit)
}
