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
	setupTime  = 2 * time.Minute // default timeout of a set-up step
	setupFiles = 5000            // maximum number of files that the step may leave below HOME
	setupBytes = 64 << 20        // maximum size of all these files together
	setupTail  = 4 << 10         // number of bytes of the step's output that an error shows
)

// standIn is the model's base URL while a set-up step runs. Each agent has its own model server. The URL of that
// server later replaces standIn in the files below HOME.
const standIn = "http://model.invalid"

// prepared contains the files that a set-up step left below HOME, and the sandbox in which the step ran.
type prepared struct {
	at    Sandbox
	files map[string][]byte
}

// Preparation says where and how to run a set-up step.
type Preparation struct {
	Sandbox          // only HostEnv, Env, Pass, Self, Cwd and Temp are used
	Keeper  []string // as in process.Spec
	// Isolate returns the isolation of the step, which is like that of an agent. The step's directories are below
	// root. If Isolate is nil, the step is not isolated from this machine.
	Isolate func(root string, l Launch) (*isolate.Isolation, error)
}

// Prepare runs the set-up step of the profile. It returns a profile whose agents each get a copy of the files that
// the step left below HOME. If the profile has no set-up step, Prepare returns p. The step runs with the agent's
// environment, HOME and working directory, but without a proxy. Prepare ends all processes of the step. It returns an
// error if the step fails, takes longer than Timeouts.Setup or leaves too many or too large files.
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

// setupLaunch returns the program of the set-up step. The program is located like an agent's program and gets the
// agent's environment.
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

// runSetup runs a program and waits for its end, at most for the duration limit. It ends all processes that the
// program started.
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

// tail reads r to its end and returns the last setupTail bytes.
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

// in returns the prepared files, adapted to an agent in sandbox s: in text files, the model URL and the folders of s
// replace those that the set-up step used. It returns an empty map if p is nil.
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
