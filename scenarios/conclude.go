package scenarios

import (
	"slices"
	"strings"
	"time"
)

// NewRun begins a run that no engine makes, such as that of recordings. Conclude
// ends it.
func (p *Protocol) NewRun(tool, command string, agent Agent) Run {
	return Run{Version: 1, Tool: tool, Command: command, Agent: agent, Protocol: p.Version, Started: time.Now()}
}

// NewRun begins a run of the engine's agent.
func (e *Engine) NewRun() Run {
	p := e.Profile
	run := e.Protocol.NewRun(e.Tool, e.Command, Agent{
		Profile: p.Name, Title: p.Shown(), Command: append(slices.Clone(p.Command), e.ExtraArgs...), Wire: p.Model.Wire,
		AdHoc: strings.HasPrefix(p.Source, "command line"),
	})
	if name := e.goldens(); name != p.Name {
		run.Agent.Goldens = name
	}
	run.Seed, run.Out = e.Seed, e.Out
	return run
}

// Conclude fills in what follows from the results of a run that no engine made,
// such as that of a recording: counts, verdict, advice and exit status.
func (run *Run) Conclude() {
	run.sum()
	run.finish()
}
