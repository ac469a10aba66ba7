package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// probing is a scenario with one turn. It shows the agent's features and how the agent reaches its model.
//
//go:embed templates/probe.txt
var probing string

// shown is what acp-test learned about an agent in a probe.
type shown struct {
	profile  *agents.Profile // the profile that the agent ran with
	known    *agents.Profile // shipped profile of the same agent, or nil
	greeting wire.Value      // the result of initialize
	asked    *fakellm.Asked  // the agent's model request, or nil if it reached no model
	refused  bool            // the agent wanted a login
	hosts    []string        // hosts that the agent wanted to reach
	why      string          // why the turn did not end, or ""
}

// probe learns how to run an agent. It plays one turn. If the agent demands a login, it plays another turn with a
// login. In a last turn, the agent gets only the environment that it needs.
func (h *host) probe(ctx context.Context, p *agents.Profile) (shown, error) {
	try := func(p *agents.Profile) (s shown, err error) {
		if s, err = h.turn(ctx, p, "mcp canary stdio\n"); err == nil && s.why != "" && !s.refused && s.greeting.Exists() {
			s, err = h.turn(ctx, p, "") // perhaps the agent accepts no MCP server
		}
		return s, err
	}
	if known := agents.Recognize(p.Command); known != nil {
		s, err := try(p.Dressed(known))
		s.known = known
		return s, err
	}
	s, err := try(p.Marked())
	if err != nil {
		return s, err
	}
	if known := agents.RecognizeInfo(s.greeting.Path("agentInfo.name").Str()); known != nil {
		s, err = try(p.Dressed(known))
		s.known = known
		return s, err
	}
	if s.greeting.Path("agentCapabilities.providers").Kind() == wire.Object {
		if with, err := try(p.Provided()); err != nil || with.asked != nil {
			return with, err
		}
	}
	if s, err = s.loggedIn(ctx, p, try); err != nil {
		return s, err
	}
	if p = s.profile; s.asked == nil || s.asked.Run == "" {
		return s, nil
	}
	fewer, err := try(p.Reaching(s.asked.Run))
	if err == nil && fewer.asked != nil && fewer.why == s.why {
		s = fewer
	}
	return s, err
}

// loggedIn returns s if the agent demanded no login. Otherwise it repeats the probe with each login method until one
// works.
func (s shown) loggedIn(
	ctx context.Context, p *agents.Profile, try func(*agents.Profile) (shown, error),
) (shown, error) {
	for m := range s.methods() {
		if !s.refused || ctx.Err() != nil {
			break
		}
		if m.Get("type").Is("terminal") {
			continue
		}
		with, err := try(p.Marked().WithAuth(m.Get("id").Str()))
		if err != nil {
			return s, err
		}
		if !with.refused && with.asked != nil {
			s, p = with, p.WithAuth(with.profile.Auth)
		}
	}
	s.profile = p
	return s, nil
}

// methods yields the login methods that the agent offers.
func (s shown) methods() func(yield func(wire.Value) bool) {
	return s.greeting.Get("authMethods").Items()
}

// turn plays one turn with an agent and returns the facts that the agent showed in it.
func (h *host) turn(ctx context.Context, p *agents.Profile, setup string) (s shown, err error) {
	s.profile = p
	out, err := os.MkdirTemp("", "acp-test-init-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(out)
	protocol := acp.V1()
	sc, err := protocol.Parse("init/turn", "turn.txtar", fmt.Appendf(nil, probing, setup))
	if err != nil {
		return s, err
	}
	secrets := h.secrets()
	e := scenarios.Engine{Protocol: protocol, Profile: p, Self: h.self, Tool: tool(), Cwd: h.cwd, Host: h.env, Out: out,
		Secrets: secrets, Redact: replay.Redaction{Protocol: acpV1().recordings, Known: secrets}.Func}
	if err := e.Prepare(ctx); err != nil {
		return s, err
	}
	res := e.RunAll(ctx, []*scenarios.Scenario{sc}, scenarios.Plan{Jobs: 1}).Results
	if len(res) != 1 {
		return s, ctx.Err()
	}
	if s.why = res[0].Reason; s.why == "" && res[0].Failure != nil {
		s.why = res[0].Failure.Error()
	}
	f, err := os.Open(filepath.Join(out, "init", "turn", "transcript.jsonl"))
	if err != nil {
		return s, nil // the turn did not begin; s.why has the reason
	}
	defer f.Close()
	t, err := transcript.Load(f, nil)
	if err != nil {
		return s, err
	}
	for e := range t.All() {
		s.hear(e)
	}
	return s, nil
}

// authRequired is the JSON-RPC error code with which an agent asks for a login.
const authRequired = -32000

// hear stores what an entry of the transcript shows about the agent.
func (s *shown) hear(e transcript.Entry) {
	v := e.JSON()
	switch {
	case e.Kind == fakellm.Egress:
		s.hosts = append(s.hosts, v.Get("host").Str())
	case e.Kind == transcript.ModelRequest:
		a, ok := fakellm.ReadAsked(e)
		if ok && (s.asked == nil || len(a.Offered) > len(s.asked.Offered)) {
			s.asked = &a
		}
	case e.Source != transcript.Agent:
	case v.Get("result").Get("protocolVersion").Exists():
		s.greeting = v.Get("result")
	default:
		code, _ := v.Path("error.code").Int()
		s.refused = s.refused || code == authRequired
	}
}

// name returns the agent's own name, with its version.
func (s shown) name() string {
	info := s.greeting.Get("agentInfo")
	name := cmp.Or(info.Get("title").Str(), info.Get("name").Str())
	return strings.TrimSpace(name + " " + info.Get("version").Str())
}

// String returns the learned facts in one line.
func (s shown) String() string {
	about := "the agent"
	if name := s.name(); name != "" {
		about = oneLine(name)
	}
	switch {
	case s.known != nil && s.asked != nil:
		return fmt.Sprintf("learned: %s matches the profile %s of acp-test", about, s.known.Name)
	case s.asked != nil:
		tools := fmt.Sprintf("%d tools", len(s.asked.Offered))
		if len(s.asked.Offered) == 1 {
			tools = "one tool"
		}
		return fmt.Sprintf("learned: %s uses wire format %s and offers its model %s", about, s.asked.Wire, tools)
	case !s.greeting.Exists():
		return "learned nothing: the agent did not complete initialize; its error is shown below and in the profile"
	}
	return fmt.Sprintf("learned: %s did not reach the model; the profile says what is missing", about)
}

// profileText returns the part of an agent's profile that follows its command. It contains the learned values, and a
// comment for each missing one.
func (s shown) profileText() string {
	var b strings.Builder
	say := func(format string, args ...any) {
		for line := range strings.Lines(fmt.Sprintf(format, args...)) {
			fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\n"))
		}
	}
	if s.known != nil {
		say("From the profile %s of acp-test, without its goldens and known failures:\nthey belong to one version.",
			s.known.Name)
		b.WriteString(agents.ShippedText(s.known.Name))
	} else {
		s.environment(&b, say)
		s.tools(&b, say)
	}
	s.login(&b, say)
	if s.known == nil {
		fmt.Fprintf(&b, "timeouts: {start: %v}\n", s.profile.Timeouts.Start)
	}
	if can := capabilities("", s.greeting.Get("agentCapabilities")); len(can) > 0 {
		say("The agent advertises these capabilities: %s.", strings.Join(can, ", "))
	}
	if s.why != "" {
		say("incomplete: the agent's first turn failed: %s", oneLine(s.why))
	}
	say("To accept today's failures, run acp-test run --baseline-write FILE and name it here:\n" +
		"known-failures: FILE")
	return b.String()
}

// environment writes the variables that make the agent use the model server.
func (s shown) environment(b *strings.Builder, say func(string, ...any)) {
	if s.profile.Providers {
		say("acp-test sets the agent's model with providers/set.")
		b.WriteString("providers: true\n")
		return
	}
	switch {
	case s.asked != nil && len(s.profile.Env) < fewVariables:
		say("The agent found its model with these variables.")
	case s.asked != nil:
		say("One of these variables leads the agent to its model.")
	case len(s.hosts) > 0:
		slices.Sort(s.hosts)
		say("missing: the agent did not reach the fake model, $LLM, but tried to reach %s.\nSet the address in "+
			"another variable, or in a file of its HOME (home:).", strings.Join(slices.Compact(s.hosts), ", "))
	default:
		say("missing: the agent did not reach the fake model, $LLM. Set the address in another\n" +
			"variable, or in a file of its HOME (home:).")
	}
	b.WriteString("env:\n")
	for _, k := range slices.Sorted(maps.Keys(s.profile.Env)) {
		fmt.Fprintf(b, "  %s: %s\n", k, s.profile.Env[k])
	}
}

// fewVariables separates a chosen environment from a guessed one: an ad-hoc command gets more variables than this.
const fewVariables = 10

// tools writes the wire format of the agent's model. It then maps each neutral tool to the agent's tool of the same
// purpose.
func (s shown) tools(b *strings.Builder, say func(string, ...any)) {
	if s.asked == nil {
		say("missing: model and tools; acp-test learns them once the agent reaches the model.")
		return
	}
	fmt.Fprintf(b, "model: {wire: %s}\n", s.asked.Wire)
	if len(s.asked.Offered) == 0 {
		say("missing: the agent offers its model no tools, so scenarios that need one are skipped.")
		return
	}
	b.WriteString("# The agent's tools that scenarios need, matched by name and schema.\ntools:\n")
	var lacking []string
	rest := slices.Clone(s.asked.Offered)
	found := func(name string) {
		rest = slices.DeleteFunc(rest, func(o string) bool { return o == name })
	}
	for _, neutral := range agents.NeutralTools() {
		if neutral.Name == "mcp" {
			if name := s.asked.MCPTool("canary", canary.Tool); name != "" {
				found(strings.NewReplacer("$server", "canary", "$tool", canary.Tool).Replace(name))
				fmt.Fprintf(b, "  mcp: {name: %s}\n", flow(name))
				continue
			}
		} else if t, ok := s.asked.Tool(neutral.Name, neutral.Args); ok {
			found(t.Name)
			fmt.Fprintf(b, "  %s: {name: %s, args: %s}\n", neutral.Name, flow(t.Name), flow(t.Args))
			continue
		}
		lacking = append(lacking, neutral.Name)
	}
	if len(lacking) > 0 {
		say("missing: the agent has no tool like %s; scenarios that need one are skipped.", strings.Join(lacking, ", "))
	}
	if len(rest) > 0 {
		say("The agent's other tools: %s.", strings.Join(rest, ", "))
	}
}

// login writes how to log in to the agent.
func (s shown) login(b *strings.Builder, say func(string, ...any)) {
	var offered []string
	for m := range s.methods() {
		text := m.Get("id").Str()
		if name := m.Get("name").Str(); name != "" && name != text {
			text += " (" + name + ")"
		}
		offered = append(offered, oneLine(text))
	}
	list := strings.Join(offered, ", ")
	switch {
	case s.known == nil && s.profile.Auth != "":
		say("The agent requires a login; its methods: %s.", list)
		fmt.Fprintf(b, "auth: %s\n", flow(s.profile.Auth))
	case s.refused && list == "":
		say("missing: the agent requires a login but offers no method. Set a key in env: or a file in home:.")
	case s.refused:
		say("missing: the agent requires a login. Set auth: to one of %s.", list)
	case list != "":
		say("The agent offers these logins, but needs none here: %s.", list)
	}
}

// capabilities returns the paths of the capabilities that an agent advertises.
func capabilities(path string, v wire.Value) (all []string) {
	yes, is := v.Bool()
	switch {
	case v.Kind() == wire.Object && v.Len() == 0 && path != "", is && yes:
		return []string{path}
	case v.Kind() == wire.Object:
		for name, inner := range v.Members() {
			if name != "_meta" {
				all = append(all, capabilities(strings.TrimPrefix(path+"."+name, "."), inner)...)
			}
		}
	}
	return all
}

var plainWord = lazy.Regexp(`^[$A-Za-z_][A-Za-z0-9_$./-]*$`)

// flow returns a value as YAML on one line.
func flow(v any) string {
	switch v := v.(type) {
	case string:
		if plainWord().MatchString(v) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off"},
			strings.ToLower(v)) {
			return v
		}
	case map[string]any:
		all := lists.Map(slices.Sorted(maps.Keys(v)), func(k string) string { return flow(k) + ": " + flow(v[k]) })
		return "{" + strings.Join(all, ", ") + "}"
	case []any:
		return "[" + strings.Join(lists.Map(v, flow), ", ") + "]"
	}
	text, _ := json.Marshal(v) // only strings and numbers are left
	return string(text)
}
