package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/jsonc"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp/prompt"
	"github.com/acp-test/acp-test/transport"
)

// ownAgent is the agent that the command line chooses, else acp-test.yaml.
func (h *host) ownAgent(o *prompting, work string) (prompt.Agent, error) {
	p, env, err := h.chosen(o)
	if err != nil {
		return prompt.Agent{}, err
	}
	home, _ := h.getenv("HOME")
	box := agents.Sandbox{Work: work, Home: home, Temp: os.TempDir(), Self: h.self, Cwd: h.cwd, HostEnv: h.env}
	l, err := p.Launch(box)
	if err != nil {
		return prompt.Agent{}, err
	}
	if env == nil {
		env = own(p, l.Env)
	}
	for _, kv := range o.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	whole := replaced(h.env, env)
	if bin := filepath.Dir(l.Path); filepath.Base(bin) == ".bin" {
		// The program may be a script for the interpreter installed beside it.
		path, _ := (&host{env: whole}).getenv("PATH")
		whole = replaced(whole, map[string]string{"PATH": bin + string(filepath.ListSeparator) + path})
	}
	a := prompt.Agent{Name: p.Shown(), Start: cmp.Or(max(o.startTimeout, 0), max(p.Timeouts.Start, 0), 20*time.Second)}
	a.Command = transport.Command{Path: l.Path, Args: l.Args, Env: whole, Dir: l.Dir, Keeper: []string{h.self, "keeper"}}
	return a, nil
}

// chosen is the profile of the agent, and its environment if that of the
// profile is not it.
func (h *host) chosen(o *prompting) (*agents.Profile, map[string]string, error) {
	if o.settings != "" {
		p, env, err := fromSettings(o.settings, o.agent)
		if err == nil && len(o.command) > 0 {
			p = p.WithCommand(o.command)
		}
		return p, env, err
	}
	name, command := o.agent, o.command
	if name == "" && len(command) == 0 {
		def, err := findConfig(h.cwd)
		if err != nil {
			return nil, nil, err
		}
		name, command = def.Agent, def.Command
	}
	if name == "" && len(command) == 0 {
		return nil, nil, errors.New("prompt: no agent is named; give its command after --, a profile with --agent, or an " +
			"editor's settings.json with --settings")
	}
	p, err := h.profile(name, "", command)
	return p, nil, err
}

// fromSettings is an entry of agent_servers with its environment as it stands
// there: the one of a name, or the first that names a command.
func fromSettings(file, name string) (*agents.Profile, map[string]string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--settings: %w", err)
	}
	list, skipped, err := agents.ParseSettings(file, src)
	if err != nil {
		return nil, nil, err
	}
	order, envs := serversOf(src)
	var names []string
	for _, key := range order {
		for _, p := range list {
			if p.Title != key {
				continue
			}
			if name == "" || name == key || name == p.Name {
				return p, envs[key], nil
			}
			names = append(names, key)
		}
	}
	switch {
	case len(order) == 0:
		return nil, nil, fmt.Errorf("%s: it has no agent_servers", file)
	case name == "":
		return nil, nil, fmt.Errorf("%s: none of its agent_servers can be started%s", file, because(skipped))
	}
	return nil, nil, fmt.Errorf("%s: it has no agent %q%s; it has %s%s", file, name, meant(name, names),
		strings.Join(names, ", "), because(skipped))
}

// serversOf reads from settings that are known to be well what a profile does
// not keep: the order of the agents and their environment.
func serversOf(src []byte) (order []string, envs map[string]map[string]string) {
	type variables struct{ Env map[string]string }
	var doc struct {
		Servers json.RawMessage `json:"agent_servers"`
	}
	_ = json.Unmarshal(jsonc.ToJSON(src), &doc)
	envs = map[string]map[string]string{}
	in := json.NewDecoder(bytes.NewReader(doc.Servers))
	_, _ = in.Token() // the opening brace
	for in.More() {
		key, err := in.Token()
		name, ok := key.(string)
		var server struct {
			variables
			Command json.RawMessage
		}
		if err != nil || !ok || in.Decode(&server) != nil {
			break
		}
		var nested variables // an older spelling has it under command
		_ = json.Unmarshal(server.Command, &nested)
		env := map[string]string{}
		maps.Copy(env, nested.Env)
		maps.Copy(env, server.Env)
		if envs[name] == nil {
			order = append(order, name)
		}
		envs[name] = env
	}
	return order, envs
}

// Variables that point into a test.
var inTest = regexp.MustCompile(`\$(LLM|WORK|HOME|TMP)\b`)

// own is what counts of a profile's environment outside of tests: no keys, for
// they are dummies, and nothing that points into a test.
func own(p *agents.Profile, expanded []string) map[string]string {
	env := map[string]string{}
	values := &host{env: expanded}
	for k, v := range p.Env {
		if agents.Secret(k) || inTest.MatchString(strings.ReplaceAll(v, "$$", "")) {
			continue
		}
		env[k], _ = values.getenv(k)
	}
	return env
}

// replaced is an environment with some variables changed or added.
func replaced(env []string, with map[string]string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		_, again := with[k]
		return again
	})
	for _, k := range slices.Sorted(maps.Keys(with)) {
		out = append(out, k+"="+with[k])
	}
	return out
}
