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

// Proxy stands between an editor and an agent, and records both. In, Out, Log and Agent are required.
type Proxy struct {
	// Agent is the command of the agent. Without a keeper the agent may outlive a proxy that is killed.
	Agent transport.Command
	// In and Out are the editor's side, Err receives the agent's stderr. If In and Out are closers, they are closed
	// when the agent closes its side.
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Log receives everything that passes. To lose nothing in a crash it must write through
	// (transcript.Options.Through).
	Log *transcript.Transcript
	// Home is the user's home directory, recorded for a replay elsewhere.
	Home string
	// NoFiles leaves the files of the workspace out of the recording. Model says that the recording contains the
	// model's replies.
	NoFiles, Model bool
	// Signals are passed on to the agent.
	Signals <-chan os.Signal
	// Live, if set, receives one line for each finding of the rules, as soon as it is known.
	Live io.Writer
	// Found, if set, is called with each finding, as soon as it is known.
	Found func(rules.Finding)
	// Judge holds the rules for Live and Found.
	Judge Judge
}

// drained is how long the pipes of an agent that is gone may take to end.
const drained = 2 * time.Second

// Run passes everything on until the agent and its descendants are gone, and returns how the agent ended. It does not
// wait for a read of In that does not return. When ctx ends, the agent is killed. The error is why the agent could not
// be started, or why the log is incomplete.
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
			closeIf(p.In) // the agent reads no more, and the editor must notice that
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
			agent.Stdout.Close() // no one reads it any more, and the agent must notice that
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

// list lists the files of the workspace in the log, unless the recording leaves them out.
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

// List logs the files of the workspace once a session names it. It does not delay frames. m is the manifest to
// complete; most limits the list. The returned function waits for the list.
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

// listed returns a manifest with the files of a workspace. A home, or the root of a disk, is not listed.
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
				_ = agent.Signal(sig) // an agent that is gone needs no signal
			}
		case <-over:
			return
		}
	}
}

// judge runs the rules in their own goroutine, so that they delay nothing. The returned function ends it after the
// last entry.
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

// tell prints the findings after the first n to p.Live and passes them to p.Found, if these are set. It returns
// len(all), the n of the next call.
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
