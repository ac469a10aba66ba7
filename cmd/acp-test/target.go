package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios/language"
)

// target holds the flags that choose the agent under test and its environment.
type target struct {
	agent, settings, fault string
	url                    string // URL of the agent
	liberties              []string
	command                []string // the words after --
	profile, auth          string
	env, passEnv, headers  []string
	over                   string
	sabotage               sabotageFlag
}

// of registers the flags that choose the agent under test.
func (t *target) of(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.agent, "agent", "", "the agent, by the `NAME` or file of its profile (default reference)")
	f.StringVar(&t.settings, "settings", "", "take agents from an editor's settings.json `FILE`")
	f.StringVar(&t.fault, "fault", "", "give the reference agent the deliberate fault `NAME`")
	completeWords(c, "fault", faultNames)
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents)
}

// environment registers --env and --pass-env.
func (t *target) environment(f *pflag.FlagSet, env string) {
	f.StringArrayVar(&t.env, "env", nil, "set a variable in the agent's environment, `K=V` (repeatable)"+env)
	f.StringSliceVar(&t.passEnv, "pass-env", nil,
		"pass a variable of this environment to the agent, by `NAME` (repeatable)")
}

// network registers the flags for agents that are reached over a network.
func (t *target) network(f *pflag.FlagSet) {
	f.StringVar(&t.url, "url", "",
		"the `URL` of an agent on a network: http or https, for ACP also ws or wss; with a command after -- "+
			"it may contain $PORT (a free port), or begin with $PRINTED (the URL that it prints) or ws:$PRINTED")
	f.StringVar(&t.over, "over", "",
		"connect over stdio (the default), `http` or ws; the last two need an agent whose profile has listen")
	f.StringArrayVar(&t.headers, "header", nil,
		"send a header with each HTTP request to the agent, `NAME:VALUE` (repeatable); VALUE may use $VARIABLES")
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	t.of(c)
	f.StringSliceVar(&t.liberties, "liberty", nil,
		"give the reference agent a legal habit of other agents, by `NAME` (repeatable)")
	completeWords(c, "liberty", libertyNames)
	t.network(f)
	t.sabotage.flag(c, "change messages between agent and editor, by a `NAME` from acp-test help sabotage or a FILE, "+
		"to see whether the run reports it")
	t.environment(f, "; $LLM is the model's base URL, $KEY a key for it")
	f.StringVar(&t.profile, "profile", "",
		"take environment, HOME, login and tools of the command after -- from this profile, or none "+
			"(default: the profile that matches the command, or the name that the agent gives in initialize)")
	f.StringVar(&t.auth, "auth-method", "", "log in with the method of this `ID` before the first session")
}

// check returns an error if a flag about the agent under test has a malformed value.
func (t *target) check() error {
	if err := oneOf("--over", "binding", t.over, language.Bindings); t.over != "" && err != nil {
		return err
	}
	for _, header := range t.headers {
		name, _, ok := strings.Cut(header, ":")
		if err := agents.CheckHeader(name); err != nil || !ok {
			return fmt.Errorf("--header %q: NAME:VALUE is expected", header)
		}
	}
	for _, name := range t.passEnv {
		if strings.Contains(name, "=") {
			return fmt.Errorf("--pass-env %q: expected the NAME of a variable; to set a value, use --env", name)
		}
	}
	if err := agents.CheckURL(t.url); t.url != "" && err != nil {
		return fmt.Errorf("--url: %w, such as http://127.0.0.1:8000/agent", err)
	}
	return checkPairs("--env", t.env)
}

// variables returns the variables that --env sets.
func (t *target) variables() map[string]string {
	env := map[string]string{}
	for _, kv := range t.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}

// faulty returns the --fault arguments for the reference agent, or nil without --fault. It returns an error if the
// agent under test is not the reference agent, or if the fault does not exist.
func (t *target) faulty(of protocol, p *agents.Profile) ([]string, error) {
	switch {
	case t.fault == "":
		return nil, nil
	case p.Name != of.reference || len(t.command) > 0:
		return nil, fmt.Errorf("--fault %s: only the reference agent has deliberate faults, not %s", t.fault, p.Name)
	}
	a := reference{fault: t.fault}
	if p.URL != "" {
		a.ways()
	}
	return []string{"--fault", t.fault}, differs(of.Name, a.fault, nil)
}
