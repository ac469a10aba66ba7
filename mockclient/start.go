package mockclient

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// Command says how to run an agent as a process.
type Command struct {
	// Path of the program: a name is looked up in the PATH of this process, a
	// relative path is taken from its working directory.
	Path string
	Args []string // without the program's name
	// Env is the whole environment; nothing is inherited. ACP_TEST_RUN and
	// ACP_TEST_CONN are added.
	Env []string
	Dir string // working directory; "" is that of this process
	// Keeper is the command line of the keeper, such as {"acp-test",
	// "keeper"}; see KeeperMain. Without one, a harness that is killed may
	// leave descendants of the agent behind, and so may an agent whose
	// descendants leave its process group and clear their environment.
	Keeper []string
	// RemoveOnExit is a directory the keeper removes if this process dies
	// without calling Stop. After Stop the directory is the caller's.
	RemoveOnExit string
	// TrimOnExit is a file of lines, by its absolute path, which the keeper
	// ends with a whole line if this process dies without calling Stop: a
	// process that is killed while it writes leaves half of one.
	TrimOnExit string
	// RunID attributes processes to the run. "" makes one up.
	RunID string
	// Grace is the time for each step of Stop; 0 means 2 s.
	Grace time.Duration
	// Linger is how long descendants may take to end by themselves after the
	// agent did, before they count as survivors and are killed; 0 means 1 s.
	Linger time.Duration
	// Isolation starts the agent without any network but its doors; nil leaves
	// it the network of this machine.
	Isolation *Isolation
	// MaxLine is the longest line kept whole, in bytes; 0 means 256 MiB.
	MaxLine int
}

// Variables that attribute a process to a run, to one agent of it, and to the
// editor's own terminals.
const (
	envRun      = "ACP_TEST_RUN"
	envConn     = "ACP_TEST_CONN"
	envTerminal = "ACP_TEST_TERMINAL"
)

// Start runs an agent as the connection conn of the run that t logs. ctx bounds
// the start alone.
func Start(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Agent, error) {
	agent, err := start(ctx, t, conn, c)
	if err != nil {
		return nil, fmt.Errorf("starting agent %q: %w", c.Path, err)
	}
	return agent, nil
}

func start(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Agent, error) {
	p, files, err := launch(ctx, t, conn, &c)
	if err != nil {
		return nil, err
	}
	a := newAgent(t, conn, files.inW, files.outR, c.Grace)
	a.runID = c.RunID
	a.run(p, files.errR, c.MaxLine, func() {
		files.outR.Close()
		files.errR.Close()
	})
	return a, nil
}

// launch starts the process with pipes of its own and appends its start. It
// fills in what the command leaves open.
func launch(ctx context.Context, t *transcript.Transcript, conn int, c *Command) (process, *pipes, error) {
	path, err := lookup(c.Path)
	if err != nil {
		return nil, nil, err
	}
	if c.RunID == "" {
		c.RunID = newRunID()
	}
	if c.Linger <= 0 {
		c.Linger = time.Second
	}
	env := append(without(c.Env, envRun, envConn, envTerminal), envRun+"="+c.RunID, envConn+"="+strconv.Itoa(conn))

	var files pipes
	if err := files.make(); err != nil {
		return nil, nil, err
	}
	s := spawn{
		Path: path, Args: append([]string{c.Path}, c.Args...), Env: env, Dir: c.Dir,
		RunID: c.RunID, Conn: conn, Linger: c.Linger,
	}
	var isolated *hall
	if c.Isolation != nil {
		if isolated, err = openHall(c.Isolation, &s); err != nil {
			files.closeTheirs()
			files.closeOurs()
			return nil, nil, err
		}
		defer isolated.close()
	}
	var p process
	if c.Keeper != nil {
		p, err = startKept(ctx, c.Keeper, c.RemoveOnExit, c.TrimOnExit, s, &files)
	} else {
		p, err = startBare(s, &files)
	}
	files.closeTheirs()
	if isolated != nil && err != nil {
		if why := CanIsolate(c.Isolation.Helper); why != nil {
			err = why
		}
	}
	if err != nil {
		files.closeOurs()
		return nil, nil, err
	}
	t.Event(conn, transcript.Process, transcript.Started, "", started{PID: p.pid(), Path: path, Args: c.Args, Dir: c.Dir, Run: c.RunID, Keeper: c.Keeper != nil, Isolated: isolated != nil})
	if isolated != nil {
		if err := isolated.receive(ctx); err != nil {
			// Whatever the helper became, it is no agent to speak to.
			p.kill()
			files.closeOurs()
			p.wait()
			return nil, nil, err
		}
	}
	return p, &files, nil
}

type started struct {
	PID    int      `json:"pid,omitempty"`
	Path   string   `json:"path,omitempty"`
	Args   []string `json:"args,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	Run    string   `json:"run,omitempty"`
	Keeper bool     `json:"keeper,omitempty"`
	// Isolated: without a network but the doors.
	Isolated bool `json:"isolated,omitempty"`
}

// spawn is one process to start, in the form the keeper is told.
type spawn struct {
	Path   string
	Args   []string // with the program's name
	Env    []string
	Dir    string
	RunID  string
	Conn   int
	Linger time.Duration
	// Isolate starts it in namespaces of its own.
	Isolate bool
}

// pipes are the three pipes of an agent. Pipes and never a pty: a pty would
// change bytes and mix stdout with stderr.
type pipes struct {
	inR, inW, outR, outW, errR, errW *os.File
}

func (p *pipes) make() (err error) {
	for _, ends := range [][2]**os.File{{&p.inR, &p.inW}, {&p.outR, &p.outW}, {&p.errR, &p.errW}} {
		if *ends[0], *ends[1], err = os.Pipe(); err != nil {
			p.closeOurs()
			p.closeTheirs()
			return err
		}
	}
	return nil
}

func (p *pipes) closeOurs()   { closeAll(p.inW, p.outR, p.errR) }
func (p *pipes) closeTheirs() { closeAll(p.inR, p.outW, p.errW) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func lookup(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(found)
}

func newRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// without returns env without the variables named.
func without(env []string, names ...string) []string {
	kept := make([]string, 0, len(env)+2)
next:
	for _, kv := range env {
		for _, name := range names {
			if strings.HasPrefix(kv, name+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}

// InProcess runs an agent inside this process: serve reads the editor's frames
// from in, writes its own to out, and should return at end of file or when ctx
// ends. Its error is the agent's exit. Everything else is as with Start, except
// that there is no process to kill: SIGTERM and SIGKILL end ctx and both pipes,
// and a serve that does not return within 5 s of that is left behind.
func InProcess(t *transcript.Transcript, conn int, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *Agent {
	in, out := newPipe(), newPipe()
	ctx, cancel := context.WithCancel(context.Background())
	l := &local{cancel: cancel, in: in, out: out, done: make(chan struct{}), lost: make(chan struct{})}
	a := newAgent(t, conn, in, out, 0)
	t.Event(conn, transcript.Process, transcript.Started, "", started{Path: "in-process"})
	go l.serve(ctx, serve)
	a.run(l, nil, 0, out.closeRead)
	return a
}

type local struct {
	cancel context.CancelFunc
	in     *pipe
	out    *pipe
	once   sync.Once
	done   chan struct{}
	lost   chan struct{} // closed when serve was killed and did not return
	exit   Exit
}

func (l *local) serve(ctx context.Context, serve func(context.Context, io.Reader, io.Writer) error) {
	defer close(l.done)
	defer l.out.Close()
	defer l.in.closeRead()
	defer func() {
		if r := recover(); r != nil {
			l.exit = Exit{Code: 2, Error: fmt.Sprintf("panic: %v", r)}
		}
	}()
	// The agent must not close our pipes through a type assertion, and has no
	// use for more than reading and writing.
	err := serve(ctx, struct{ io.Reader }{l.in}, struct{ io.Writer }{l.out})
	if err != nil {
		l.exit = Exit{Code: 1, Error: err.Error()}
	}
}

func (l *local) pid() int { return 0 }

func (l *local) signal(s syscall.Signal, _ bool) error {
	if s != syscall.SIGTERM && s != syscall.SIGKILL && s != syscall.SIGINT {
		return fmt.Errorf("an in-process agent takes no signals")
	}
	l.kill()
	return nil
}

func (l *local) kill() {
	l.once.Do(func() {
		l.cancel()
		l.in.closeRead()
		l.out.Close()
		time.AfterFunc(5*time.Second, func() { close(l.lost) })
	})
}

func (l *local) descendants() []Process { return nil }

func (l *local) ended() <-chan struct{} { return l.done }

func (l *local) wait() (Exit, []Process) {
	select {
	case <-l.done:
	case <-l.lost:
		return Exit{Code: -1, Error: "the in-process agent did not return when it was killed"}, nil
	}
	l.cancel()
	return l.exit, nil
}
