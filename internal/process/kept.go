package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/pipe"
)

// The harness and its keeper speak JSON Lines: orders on the keeper's fd 3,
// reports on its fd 4. The first order starts the agent. End of file of the
// orders is the death of the harness.

type order struct {
	Spawn  *spawn         `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"`
	Group  bool           `json:",omitempty"`
	Kill   bool           `json:",omitempty"`
	List   bool           `json:",omitempty"`
	Quit   bool           `json:",omitempty"`
}

type report struct {
	Kind      string // started, failed, exited, survivors, gone, list, signalled
	PID       int    `json:",omitempty"`
	Error     string `json:",omitempty"`
	Exit      *Exit  `json:",omitempty"`
	Processes []Info
}

// kept is an agent that runs under a keeper.
type kept struct {
	cmd     *exec.Cmd
	orders  *os.File
	reports *os.File
	agent   int
	run     string
	conn    int
	// patience is how long the keeper may take from the agent's end to that of what
	// it left behind.
	patience time.Duration

	ordering sync.Mutex
	asking   sync.Mutex // one List or Signal at a time
	answers  chan report

	over      chan struct{} // the agent has ended
	done      chan struct{} // and so has all that it left behind
	mu        sync.Mutex    // guards what follows
	exit      Exit
	survivors []Info
	left      []Info    // what could not be killed
	killing   sync.Once // the keeper has been told to kill
	forced    bool      // the keeper did not answer, and was made to
	stopped   bool      // something had stopped it
}

// How long a keeper may take to answer. It has nothing else to do: one that takes
// longer has been stopped.
const (
	answering = time.Second
	starting  = 20 * time.Second
)

func startKept(ctx context.Context, keeper []string, remove, trim string, s spawn, files *pipe.Set) (Process, error) {
	if len(keeper) == 0 {
		return nil, errors.New("the keeper's command line is empty")
	}
	k, err := startKeeper(keeper, keeperArgs{run: s.RunID, conn: s.Conn, remove: remove, trim: trim}, files)
	if err != nil {
		return nil, err
	}
	// A failed write shows as the end of the reports, which says more.
	_ = k.order(order{Spawn: &s})
	_ = k.reports.SetReadDeadline(time.Now().Add(starting))
	stop := context.AfterFunc(ctx, func() { _ = k.reports.SetReadDeadline(time.Unix(1, 0)) })
	in := bufio.NewReader(k.reports)
	first, err := readReport(in)
	if !stop() { // the agent may run already
		_ = k.order(order{Kill: true})
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
	_ = k.reports.SetReadDeadline(time.Time{})
	k.agent, k.patience = first.PID, s.Linger+killingTime+answering
	go k.listen(in)
	return k, nil
}

// startKeeper starts a keeper with the agent's pipes as its own 0, 1 and 2.
// files may be nil.
func startKeeper(keeper []string, args keeperArgs, files *pipe.Set) (*kept, error) {
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer orderR.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		orderW.Close()
		return nil, err
	}
	defer reportW.Close()
	cmd := exec.Command(keeper[0], append(append([]string{}, keeper[1:]...), args.words()...)...)
	cmd.Env = []string{} // nothing of ours may change how it behaves
	if files != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = files.Stdin, files.Stdout, files.Stderr
	}
	cmd.ExtraFiles = []*os.File{orderR, reportW}
	cmd.SysProcAttr = keeperAttr()
	if err := StartChild(cmd, cmd.Start); err != nil {
		orderW.Close()
		reportR.Close()
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	return &kept{
		cmd: cmd, run: args.run, conn: args.conn, orders: orderW, reports: reportR, answers: make(chan report, 1),
		over: make(chan struct{}), done: make(chan struct{}),
		exit: Exit{Code: -1, Error: "the keeper died", Keeper: "died"},
	}, nil
}

func (k *kept) order(o order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	k.ordering.Lock()
	defer k.ordering.Unlock()
	_ = k.orders.SetWriteDeadline(time.Now().Add(answering)) // not all systems have one
	_, err = k.orders.Write(append(line, '\n'))
	return err
}

func readReport(in *bufio.Reader) (report, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return report{}, err
	}
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return report{}, fmt.Errorf("a report of the keeper: %w", err)
	}
	return r, nil
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
			default: // nobody asks any more
			}
		}
	}
}

// ErrKeeper is the error of a request that a keeper does not answer.
var ErrKeeper = errors.New("the keeper of the agent's processes does not answer: something has stopped it")

func (k *kept) ask(o order) (report, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	select {
	case <-k.answers: // to what was asked before, and nobody waited for
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
		return report{}, ErrKeeper
	}
	select { // what the agent did in answer to a signal may be to end
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

// Kill tells the keeper to, and sees to it that it happens.
func (k *kept) Kill() {
	_ = k.order(order{Kill: true})
	k.killing.Do(func() {
		go func() {
			select {
			case <-k.done:
			case <-k.over: // the keeper is at work
			case <-time.After(answering):
				k.insist()
			}
		}()
	})
}

// insist does the work of a keeper that does not answer: it may have been stopped.
func (k *kept) insist() {
	stopped := Stopped(k.cmd.Process.Pid)
	k.mu.Lock()
	k.forced, k.stopped = true, k.stopped || stopped
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
		// The keeper says so within what it takes it to kill, or never.
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
	if died { // and with it who would have killed
		k.clearGroup()
		left = append(sweepRun(k.run, k.conn), KillOrphans()...)
	}
	k.release()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.exit, outlived(k.survivors, append(k.left, left...))
}

// outlived is the list of survivors, of which some may be left.
func outlived(survivors, left []Info) []Info {
	var all []Info
	for _, s := range survivors {
		if !slices.ContainsFunc(left, func(l Info) bool { return l.PID == s.PID }) {
			all = append(all, s)
		}
	}
	return append(all, left...)
}

// clearGroup ends the group of a keeper that did not, since it was killed.
func (k *kept) clearGroup() {
	g := openGroup(k.cmd.Process.Pid)
	g.killAll()
	g.remove()
}

// release lets the keeper go. It does not remove the directory: the harness
// lives, and the directory is its own.
func (k *kept) release() {
	_ = k.order(order{Quit: true})
	k.orders.Close()
	stubborn := time.AfterFunc(answering, func() { _ = k.cmd.Process.Kill() })
	_ = k.cmd.Wait() // its status says nothing the reports did not
	stubborn.Stop()
	EndChild(k.cmd)
	k.clearGroup()
	k.reports.Close()
}

// keeperArgs are the words after the keeper's command line. They are words and
// not an order, so that a keeper whose harness dies before the first order
// still knows what to remove.
type keeperArgs struct {
	run    string
	conn   int // -1: a guard, which keeps a directory and no agent
	remove string
	trim   string
}

func (k keeperArgs) words() []string {
	return []string{"--run", k.run, "--conn", strconv.Itoa(k.conn), "--remove", k.remove, "--trim", k.trim}
}

func parseKeeperArgs(args []string) (k keeperArgs, err error) {
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "--run":
			k.run = args[i+1]
		case "--conn":
			k.conn, err = strconv.Atoi(args[i+1])
		case "--remove":
			k.remove = args[i+1]
		case "--trim":
			k.trim = args[i+1]
		default:
			err = fmt.Errorf("unknown word %q", args[i])
		}
		if err != nil {
			return k, err
		}
	}
	if k.run == "" || len(args)%2 != 0 {
		return k, errors.New("the keeper is started by acp-test itself")
	}
	return k, nil
}
