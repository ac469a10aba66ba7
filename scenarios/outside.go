package scenarios

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/scenarios/results"
)

// trapped reports whether connections to other machines are refused and logged. It is false for a launcher that may
// have to download the agent.
func (e *Engine) trapped() bool { return !e.NoTrap && !e.Profile.Fetches() }

// setTrap starts the proxy that agents are configured to use. For an isolated agent, this proxy connects only to the
// run's model server. Otherwise the proxy would break the isolation.
func (r *run) setTrap() (err error) {
	if !r.engine.trapped() {
		return nil
	}
	var reach []string
	if r.engine.Isolate {
		reach = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(r.model.Port()))}
	}
	r.trap, err = fakellm.StartTrap(r.t, reach...)
	return err
}

// proxy returns the URL of the trap, or "" if none was started.
func (r *run) proxy() string {
	if r.trap == nil {
		return ""
	}
	return r.trap.URL()
}

// isolation returns the isolation of the agent, or nil if the engine does not isolate agents. An isolated agent can
// use the servers and directories of this run, and the tools that it needs.
func (r *run) isolation(launch agents.Launch) (*isolate.Isolation, error) {
	if !r.engine.Isolate {
		return nil, nil
	}
	ports := []isolate.Port{{Number: r.model.Port(), Serve: r.model.Serve}}
	if r.trap != nil {
		ports = append(ports, isolate.Port{Number: r.trap.Port(), Serve: r.trap.Serve})
	}
	more, err := r.client.Ports()
	if err != nil {
		return nil, err
	}
	return r.engine.isolation(r.box.Root, launch, append(ports, more...)...)
}

// isolation returns an isolation for an agent whose directories are below root. The agent can reach only the given
// ports.
func (e *Engine) isolation(root string, launch agents.Launch, ports ...isolate.Port) (*isolate.Isolation, error) {
	if e.Self == "" {
		return nil, errors.New("isolating the agent: the engine's field Self, the path of this program, is not set")
	}
	i := &isolate.Isolation{Helper: []string{e.Self, "isolate"}, Dir: root, Ports: ports}
	if e.NetworkOnly != "" {
		return i, nil
	}
	variable := func(list []string, name string) (value string) {
		for _, kv := range list {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				value = v
			}
		}
		return value
	}
	tools := isolate.Tools(variable(e.Host, "HOME"), launch.Path, slices.Concat(launch.Args, launch.Tools),
		filepath.SplitList(variable(launch.Env, "PATH")))
	i.View = &isolate.View{
		Write: []string{root},
		Read:  slices.Concat(tools, e.Readable, []string{e.Self}),
		Hide:  []string{e.Out},
	}
	return i, nil
}

// strangeTools returns a finding for each tool of the profile that the script called although the agent did not offer
// it to its model.
func (r *run) strangeTools() (out []results.Finding) {
	for _, s := range r.model.Strange() {
		instead := "; it offers " + strings.Join(s.Offered, ", ")
		if s.Like != "" {
			instead = fmt.Sprintf("; its tool for that is %q", s.Like)
		}
		out = append(out, results.Finding{Rule: results.ToolOfferedRule, Class: results.Lint, Point: s.Neutral,
			Message: fmt.Sprintf("tools.%s of the profile is %q, but the agent offers no such tool%s.", s.Neutral,
				s.Name, instead)})
	}
	return out
}

// egress returns a finding for each host that the agent tried to reach through the proxy.
func (r *run) egress() []results.Finding {
	var out []results.Finding
	at := map[string]int{}
	for e := range r.t.All() {
		if e.Kind != fakellm.Egress {
			continue
		}
		v := e.JSON()
		host := v.Get("host").Str()
		i, seen := at[host]
		if !seen {
			i = len(out)
			at[host] = i
			out = append(out, results.Finding{Rule: results.EgressRule, About: host, Class: results.Lint,
				Message: "The agent tried to reach " + host + ", and acp-test's proxy refused.",
				Detail: fmt.Sprintf("%s %s%s; the proxy sees no connections that bypass it", v.Get("method").Str(), host,
					v.Get("path").Str())})
		}
		out[i].Entries = append(out[i].Entries, e.Seq)
		out[i].Count = len(out[i].Entries)
	}
	for i := range out {
		if out[i].Count == 1 {
			out[i].Count = 0
		}
		out[i].Tail = r.around(out[i].Entries)
	}
	return out
}
