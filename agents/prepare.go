package agents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/internal/workspace"
)

const (
	setupTime  = 2 * time.Minute // maximum time of a set-up step, unless the profile sets one
	setupFiles = 5000            // maximum number of files that it may leave below HOME
	setupBytes = 64 << 20        // maximum size of all these files together
	setupTail  = 4 << 10         // bytes of its output that an error shows
)

// standIn is the model's base URL while a set-up step runs. Each agent has its
// own model server, whose URL replaces it in the files of HOME.
const standIn = "http://model.invalid"

// prepared are the files a set-up step left below HOME, and the sandbox it ran
// in.
type prepared struct {
	at    Sandbox
	files map[string][]byte
}

// Preparation is the environment to run a set-up step in.
type Preparation struct {
	Sandbox          // HostEnv, Env, Pass, Self and Cwd of it
	Keeper  []string // as in process.Spec
	// Isolate isolates the step as an agent is isolated, below the directory
	// root. If nil, the step sees all of this machine.
	Isolate func(root string, l Launch) (*isolate.Isolation, error)
}

// Prepare runs the set-up step of the profile. It returns a profile whose agents
// each get a copy of the files that the step left below HOME; without a step, p
// itself. The step has the environment, HOME and folder of the agent, and no
// proxy. Prepare ends all processes of the step. It returns an error if the step
// fails, takes longer than Timeouts.Setup or leaves too much.
func (p *Profile) Prepare(ctx context.Context, o Preparation) (_ *Profile, err error) {
	if len(p.Setup) == 0 {
		return p, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("the set-up step of profile %s, %s: %w", p.Name, strings.Join(p.Setup, " "), err)
		}
	}()
	id := process.NewRunID()
	temp, err := process.NewTempDir(o.Keeper, o.Temp, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	dirs, err := workspace.MakeDirs(temp.Dir())
	if err != nil {
		return nil, err
	}
	at := o.Sandbox
	at.Work, at.Home, at.Temp, at.LLM, at.Proxy = dirs.Work, dirs.Home, dirs.Temp, standIn, ""
	l, err := p.setupLaunch(at)
	if err != nil {
		return nil, err
	}
	if err := workspace.Write(dirs.Home, l.Files); err != nil {
		return nil, err
	}
	spec := process.Spec{Path: l.Path, Args: l.Args, Env: l.Env, Dir: l.Dir, RunID: id, Keeper: o.Keeper}
	if o.Isolate != nil {
		if spec.Isolation, err = o.Isolate(dirs.Root, l); err != nil {
			return nil, err
		}
	}
	if err := runSetup(ctx, spec, cmp.Or(p.Timeouts.Setup, setupTime)); err != nil {
		return nil, err
	}
	root, err := confined.Open(dirs.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := workspace.Read(ctx, root, filepath.Base(dirs.Home), setupFiles, setupBytes)
	if err != nil {
		return nil, fmt.Errorf("reading what it left below HOME: %w", err)
	}
	q := *p
	q.prepared = &prepared{at: at, files: files}
	return &q, nil
}

// setupLaunch returns the program of the set-up step, found like an agent's
// program and with the agent's environment.
func (p *Profile) setupLaunch(s Sandbox) (Launch, error) {
	step := *p
	step.Command, step.Install, step.literal, step.base = p.Setup, Install{}, false, cmp.Or(p.setupBase, p.base)
	found, err := step.Locate(s)
	if err != nil {
		return Launch{}, err
	}
	l, values, err := p.launch(s)
	l.Path, l.Args = found.Path, expandAll(p.Setup[1:], values, false)
	return l, err
}

// runSetup runs a program to its end, and ends all processes it started.
func runSetup(ctx context.Context, spec process.Spec, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v; raise timeouts.setup of "+
		"the profile", limit))
	defer cancel()
	proc, files, err := process.Start(ctx, spec, func(int, string) {})
	if err != nil {
		return err
	}
	defer files.CloseOurs()
	_ = files.ToStdin.Close()
	said := make(chan []byte, 2)
	for _, from := range []io.Reader{files.FromStdout, files.FromStderr} {
		go func() { said <- tail(from) }()
	}
	var late error
	select {
	case <-proc.Ended():
	case <-ctx.Done():
		late = context.Cause(ctx)
	}
	proc.Kill()
	exit, _ := proc.Wait()
	if late == nil && exit.Code == 0 {
		return nil
	}
	out := strings.TrimSpace(string(bytes.Join([][]byte{<-said, <-said}, nil)))
	if out != "" {
		out = "; it wrote:\n  " + strings.ReplaceAll(strings.ToValidUTF8(out, "\uFFFD"), "\n", "\n  ")
	}
	switch {
	case late != nil:
		return fmt.Errorf("%w%s", late, out)
	case exit.Signal != "":
		return fmt.Errorf("it was ended by %s%s", exit.Signal, out)
	}
	return fmt.Errorf("it ended with status %d%s", exit.Code, out)
}

// tail reads r to its end and returns the last bytes.
func tail(r io.Reader) []byte {
	var kept []byte
	for b := make([]byte, setupTail); ; {
		n, err := r.Read(b)
		kept = append(kept, b[:n]...)
		kept = kept[max(len(kept)-setupTail, 0):]
		if err != nil {
			return kept
		}
	}
}

// in returns the prepared files for an agent in sandbox s. In text files, the
// model URL and folders of s replace those of the set-up step.
func (p *prepared) in(s Sandbox) map[string][]byte {
	all := map[string][]byte{}
	if p == nil {
		return all
	}
	places := strings.NewReplacer(p.at.LLM, s.LLM, p.at.Work, s.Work, p.at.Home, s.Home, p.at.Temp, s.Temp)
	for name, data := range p.files {
		if !bytes.ContainsRune(data, 0) {
			data = []byte(places.Replace(string(data)))
		}
		all[name] = data
	}
	return all
}
