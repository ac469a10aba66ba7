package scenarios

import (
	"maps"
	"os/exec"
	"path/filepath"

	"github.com/acp-test/acp-test/internal/process"
)

// AgentCommand returns a command that runs the agent's program once more, with further arguments and variables, and a
// function that kills the processes that the command leaves behind. If the agent is isolated or is no child process,
// AgentCommand returns a Skipped error.
func (b *Branch) AgentCommand(args, vars []string) (*exec.Cmd, func(), error) {
	r, env := b.run, map[string]string{}
	r.change(func(s *state) { maps.Copy(env, s.setup.env) })
	launch, err := r.engine.Profile.Launch(r.sandbox(env))
	switch {
	case err != nil:
		return nil, nil, err
	case r.engine.Isolate:
		return nil, nil, &Skipped{"the agent is isolated, and its login would not be"}
	case launch.Path == "" || launch.URL != "" || r.engine.Connect != nil || r.engine.share != nil:
		return nil, nil, &Skipped{"the agent is no child process, so its login cannot be started"}
	}
	c := r.engine.command(launch, r.box.Root)
	cmd := exec.Command(c.Path, append(c.Args, args...)...)
	mark := process.TerminalVariable(filepath.Base(r.box.Root) + "/login")
	cmd.Dir, cmd.Env = c.Dir, append(append(process.Attributed(c.Env, c.RunID, r.connection()), vars...), mark)
	return cmd, func() { process.KillCarriers(mark) }, nil
}
