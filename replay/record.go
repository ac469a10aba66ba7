package replay

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Proxy connects an editor to an agent and records the traffic. In, Out, Log and Agent are required.
type Proxy struct {
	// Agent is the command that starts the agent. Without a keeper, the agent may outlive a proxy that is killed.
	Agent transport.Command
	// In and Out are connected to the editor. Err receives the agent's stderr. If In and Out implement io.Closer, the
	// proxy closes them when the agent closes its side.
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Log receives everything that is forwarded. A crash loses no entry only if Log writes through
	// (transcript.Options.Through).
	Log *transcript.Transcript
	// Home is the user's home directory. It is recorded so that a replay can replace it.
	Home string
	// NoFiles omits the files of the workspace from the recording. Model means that the recording contains the model's
	// replies.
	NoFiles, Model bool
	// Signals are forwarded to the agent.
	Signals <-chan os.Signal
	// Live, if set, receives one line for each finding of the rules, immediately.
	Live io.Writer
	// Found, if set, is called with each finding of the rules, immediately.
	Found func(rules.Finding)
	// Judge holds the rules for Live and Found.
	Judge Judge
}

// drained is the timeout for the pipes of an agent that has exited to reach their end.
const drained = 2 * time.Second

// Run forwards all traffic until the agent and its descendants have exited, and returns how the agent ended. It may
// return while a read of In is still blocked. When ctx ends, it kills the agent. It returns an error if the agent
// could not be started or the log is incomplete.
func (p *Proxy) Run(ctx context.Context) (transport.Exit, error) {
	p.Log.Event(0, transcript.Note, transcript.Places, "", workspace.Manifest{Work: p.Agent.Dir, Home: p.Home,
		Model: p.Model})
	listed := p.list(ctx)
	agent, err := transport.StartPiped(ctx, p.Log, 0, p.Agent)
	if err != nil {
		return transport.Exit{Code: -1}, err
	}
	stop := context.AfterFunc(ctx, agent.Kill)
	defer stop()
	over := make(chan struct{})
	defer close(over)
	go p.passSignals(agent, over)
	judge := p.judge()

	b := &book{t: p.Log}
	in := &pump{book: b, from: transcript.Editor, r: p.In, w: agent.Stdin}
	go func() {
		if in.run() {
			agent.StdinClosed()
		} else {
			closeIf(p.In) // the agent no longer reads; closing tells the editor
		}
		agent.Stdin.Close()
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		errs := make(chan struct{})
		go func() {
			defer close(errs)
			(&chunks{t: p.Log, r: agent.Stderr, w: p.Err}).run()
		}()
		out := &pump{book: b, from: transcript.Agent, r: agent.Stdout, w: p.Out}
		if out.run() {
			closeIf(p.Out)
		} else {
			agent.Stdout.Close() // nobody reads it any longer; closing tells the agent
		}
		<-errs
	}()
	exit, survivors := agent.Wait()
	select {
	case <-ended:
	case <-time.After(drained):
		agent.Stdout.Close()
		agent.Stderr.Close()
		<-ended
	}
	agent.Stdout.Close()
	agent.Stderr.Close()
	b.wait()
	listed()
	agent.Exited(exit, survivors)
	judge()
	if err := p.Log.Err(); err != nil {
		return exit, fmt.Errorf("the recording is incomplete: %w", err)
	}
	return exit, nil
}

// list logs the files of the workspace, unless NoFiles is set. wait waits until that is done.
func (p *Proxy) list(ctx context.Context) (wait func()) {
	if p.NoFiles || p.Judge.Protocol == nil {
		return func() {}
	}
	m := workspace.Manifest{Home: p.Home, Model: p.Model}
	for _, kv := range p.Agent.Env {
		name, _, _ := strings.Cut(kv, "=")
		m.Env = append(m.Env, name)
	}
	return List(ctx, p.Log, p.Judge.Protocol, m, workspace.Whole)
}

// List logs the files of the workspace as soon as a session names it. It works in the background and delays no frame.
// It completes the manifest m; most limits the number and size of the files. The returned function waits until the
// files are logged.
func List(ctx context.Context, log *transcript.Transcript, p Protocol, m workspace.Manifest,
	most workspace.Limits) (wait func()) {
	var wg sync.WaitGroup
	var once sync.Once
	log.Observe(func(e transcript.Entry) {
		if e.Source != transcript.Editor || e.Kind != transcript.Request {
			return
		}
		if dir := p.Facts(e).Dir; filepath.IsAbs(dir) {
			once.Do(func() {
				wg.Go(func() { log.Event(0, transcript.Note, transcript.Places, "", listed(ctx, dir, m, most)) })
			})
		}
	})
	return wg.Wait
}

// listed returns a manifest with the files of a workspace. It lists no files if dir is a home directory or the root
// of a disk.
func listed(ctx context.Context, dir string, m workspace.Manifest, most workspace.Limits) workspace.Manifest {
	m.Work, m.Listed = dir, true
	root, err := confined.Open(dir)
	switch {
	case filepath.Clean(dir) == filepath.Clean(m.Home), filepath.Dir(dir) == dir:
		m.Cut = "the folder is a home or the root of a disk, so acp-test does not list its files"
	case err != nil:
		m.Cut = err.Error()
	default:
		defer root.Close()
		m.Files, m.Cut = workspace.List(ctx, root, ".", most)
	}
	return m
}

func closeIf(x any) {
	if c, ok := x.(io.Closer); ok {
		c.Close()
	}
}

func (p *Proxy) passSignals(agent *transport.Piped, over <-chan struct{}) {
	for {
		select {
		case s, ok := <-p.Signals:
			if !ok {
				return
			}
			if sig, ok := s.(syscall.Signal); ok {
				_ = agent.Signal(sig) // an agent that has exited needs no signal
			}
		case <-over:
			return
		}
	}
}

// judge runs the rules in a separate goroutine, so that they delay no frame. finish stops it after the last entry.
func (p *Proxy) judge() (finish func()) {
	if p.Live == nil && p.Found == nil {
		return func() {}
	}
	wake, quit, done := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	p.Log.Observe(func(transcript.Entry) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	checker := p.Judge.Rules.NewChecker(rules.Config{Severity: p.Judge.Severity})
	next, told := 1, 0
	look := func() {
		for e := range p.Log.From(next) {
			checker.Observe(e)
			next = e.Seq + 1
			told = p.tell(checker.Findings(), told)
		}
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-wake:
				look()
			case <-quit:
				look()
				p.tell(checker.Finish(rules.End{Clean: true}), told)
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// tell passes the findings all[n:] to p.Live and p.Found, as far as these are set. It returns len(all), which is n
// for the next call.
func (p *Proxy) tell(all []rules.Finding, n int) int {
	for _, f := range all[n:] {
		if p.Live != nil {
			fmt.Fprintf(p.Live, "acp-test: %s of the %s: %s: %s (%s)\n", f.Class, f.Side, f.Rule,
				printable.Line(f.Message, 500), numbers(f.Entries))
		}
		if p.Found != nil {
			p.Found(f)
		}
	}
	return len(all)
}

func numbers(seqs []int) string {
	return strings.Join(lists.Map(seqs, func(n int) string { return fmt.Sprintf("#%d", n) }), " ")
}
