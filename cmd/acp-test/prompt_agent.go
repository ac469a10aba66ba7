package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/prompt"
	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transport"
)

// ownAgent returns the agent that the command line selects, or else the agent in acp-test.yaml. stop ends the model
// server, if --llm or the reference agent needed one.
func (h *host) ownAgent(o *prompting, work string) (a prompt.Agent, stop func(), err error) {
	stop = func() {}
	p, env, err := h.chosen(o)
	if err != nil {
		return a, stop, err
	}
	o.mode, o.model = cmp.Or(o.mode, p.OwnMode), p.OwnModel
	home, _ := h.getenv("HOME")
	box := agents.Sandbox{Work: work, Home: home, Temp: os.TempDir(), Self: h.self, Cwd: h.cwd, HostEnv: h.env}
	model, err := h.modelFor(o, p, box)
	if err != nil {
		return a, stop, err
	}
	if model != nil {
		box.LLM, stop = model.URL(), func() { _ = model.Close() }
	}
	l, err := p.Launch(box)
	if err != nil {
		return a, stop, err
	}
	if env == nil || model != nil {
		env = own(p, l.Env, model != nil)
	}
	for _, kv := range o.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	whole := replaced(h.env, env)
	if bin := filepath.Dir(l.Path); filepath.Base(bin) == ".bin" {
		// The program may be a script whose interpreter is installed in the same folder.
		path, _ := (&host{env: whole}).getenv("PATH")
		whole = replaced(whole, map[string]string{"PATH": bin + string(filepath.ListSeparator) + path})
	}
	a = prompt.Agent{Name: p.Shown(), Start: cmp.Or(max(o.startTimeout, 0), max(p.Timeouts.Start, 0), 20*time.Second)}
	if l.URL != "" {
		if err := o.overWeb(p); err != nil {
			stop()
			return a, nil, err
		}
		if p.Protocol != agui.Name {
			a.Reach = remote.At(l.URL, l.Headers)
		} else {
			o.at = endpoint.At(l.URL)
			o.at.Header = l.Headers
		}
		if l.Path == "" {
			a.Command.Env = whole
			return a, stop, nil
		}
	}
	a.Command = transport.Command{Path: l.Path, Args: l.Args, Env: whole, Dir: l.Dir, Keeper: []string{h.self, "keeper"}}
	return a, stop, nil
}

// overWeb returns an error if the user gave a flag that does not work with an AG-UI endpoint.
func (o *prompting) overWeb(p *agents.Profile) error {
	if p.Protocol != agui.Name {
		return nil
	}
	for _, flag := range o.given {
		if !strings.Contains(web, " "+flag+" ") {
			return fmt.Errorf("--%s works only with ACP agents: an AG-UI endpoint gets one text", flag)
		}
	}
	return nil
}

// builtIn is the model script of the reference agent. It is used if the user names no other model.
//
//go:embed templates/model.yaml
var builtIn []byte

// modelFor starts a model server in place of a provider. It serves the script of --llm, or the built-in script if the
// agent is a reference agent that has no other model. In all other cases modelFor returns nil.
func (h *host) modelFor(o *prompting, p *agents.Profile, box agents.Sandbox) (*fakellm.Server, error) {
	name, src := o.llm, builtIn
	if name == "" {
		url, _ := h.getenv(refagent.EnvBaseURL)
		given := slices.ContainsFunc(o.env, func(kv string) bool {
			return strings.HasPrefix(kv, refagent.EnvBaseURL+"=")
		})
		if p.Name != "reference" && p.Name != "reference-ag-ui" || url != "" || given {
			return nil, nil
		}
		name = "the model of the reference agent"
	} else {
		var err error
		if src, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("--llm: %w", err)
		}
	}
	here := strings.NewReplacer("$$", "$", "$WORK", box.Work, "$HOME", box.Home)
	script, err := fakellm.ParseScript(name, src, func(s string) (string, error) { return here.Replace(s), nil })
	if err != nil {
		return nil, err
	}
	config, err := scenarios.ModelOf(p)
	if err != nil {
		return nil, err
	}
	config.Script = script
	model, err := fakellm.Start(config)
	if err != nil {
		return nil, err
	}
	return model, openGates(model, script)
}

// chosen returns the agent's profile. If an editor's settings define the agent, it also returns the environment from
// these settings, else nil.
func (h *host) chosen(o *prompting) (*agents.Profile, map[string]string, error) {
	if o.settings != "" {
		p, env, err := fromSettings(o.settings, o.agent)
		if err == nil && len(o.command) > 0 {
			p = p.WithCommand(o.command)
		}
		return p, env, err
	}
	name, command := o.agent, o.command
	if name == "" && len(command) == 0 && o.url == "" {
		def, err := findConfig(h.cwd)
		if err != nil {
			return nil, nil, err
		}
		name, command = def.Agent, def.Command
	}
	if name == "" && len(command) == 0 && o.url == "" {
		return nil, nil, errors.New("prompt: no agent is named; give its command after --, a profile with --agent " +
			"(--agent reference has a model built in), or an editor's settings.json with --settings")
	}
	if o.url == "" && o.over == "" && len(o.headers) == 0 {
		p, err := h.profile(name, "", command)
		return p, nil, err
	}
	to := options{target: o.target}
	to.agent, to.command = name, command
	of, err := to.speaks(h)
	if h.protocol == "" && strings.HasPrefix(o.url, "http") {
		of, err = aguiV1(), nil // for an ACP agent, the URL would have another scheme
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := to.subject(h, of)
	return p, nil, err
}

// fromSettings returns an entry of agent_servers and its environment, without expanding variables. If name is "", it
// returns the first entry that has a command.
func fromSettings(file, name string) (*agents.Profile, map[string]string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--settings: %w", err)
	}
	list, skipped, err := agents.ParseSettings(file, src)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, p := range list {
		if name == "" || name == p.Title || name == p.Name {
			return p, p.Own, nil
		}
		names = append(names, p.Title)
	}
	switch {
	case len(list)+len(skipped) == 0:
		return nil, nil, fmt.Errorf("%s: it has no agent_servers", file)
	case name == "":
		return nil, nil, fmt.Errorf("%s: no entry in agent_servers can be started%s", file, because(skipped))
	}
	has := ""
	if len(names) > 0 {
		has = "; it has " + strings.Join(names, ", ")
	}
	return nil, nil, fmt.Errorf("%s: it has no agent %q%s%s%s", file, name, mistake.Meant(name, names), has,
		because(skipped))
}

// mcpServers returns the MCP servers in an editor's settings, in the format of the mcpServers field of a session
// request.
func mcpServers(file string, absolute func(string) string) ([]any, error) {
	if file == "" {
		return nil, nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--settings: %w", err)
	}
	list, err := agents.ParseServers(file, src)
	if err != nil {
		return nil, err
	}
	var servers []any
	for _, s := range list {
		pairs := []mockclient.EnvVariable{}
		for _, p := range s.Pairs {
			pairs = append(pairs, mockclient.EnvVariable{Name: p[0], Value: p[1]})
		}
		if s.URL != "" {
			servers = append(servers, mockclient.HTTPServer{Type: s.Type, Name: s.Name, URL: s.URL, Headers: pairs})
			continue
		}
		program, err := exec.LookPath(s.Command)
		if err != nil {
			return nil, fmt.Errorf("%s: the MCP server %s: %w", file, s.Name, err)
		}
		servers = append(servers, mockclient.MCPServer{Name: s.Name, Command: absolute(program),
			Args: append([]string{}, s.Args...), Env: pairs})
	}
	return servers, nil
}

// inTest matches references to variables that exist only in a test.
var inTest = lazy.Regexp(`\$(LLM|WORK|HOME|TMP)\b`)

// own returns the part of a profile's environment that applies outside of tests. It omits keys, which are dummies,
// and values that use test variables. With a local model it returns the whole environment.
func own(p *agents.Profile, expanded []string, model bool) map[string]string {
	env := map[string]string{}
	values := &host{env: expanded}
	for k, v := range p.Env {
		if !model && (agents.Secret(k) || inTest().MatchString(strings.ReplaceAll(v, "$$", ""))) {
			continue
		}
		env[k], _ = values.getenv(k)
	}
	return env
}

// replaced returns an environment with some variables changed or added.
func replaced(env []string, with map[string]string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		_, again := with[k]
		return again
	})
	return append(out, assignments(with)...)
}

// assignments returns variables as NAME=VALUE, sorted.
func assignments(env map[string]string) []string {
	return lists.Map(slices.Sorted(maps.Keys(env)), func(k string) string { return k + "=" + env[k] })
}
