package words

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// mcpServers has the MCP servers that a scenario gives to the agent. The canary is the test server of this program.
type mcpServers struct {
	broken  bool           // add a server that cannot be started
	stdio   bool           // add a canary over stdio
	log     string         // log file of the stdio canary, or ""
	twinLog string         // log file of the twin, or ""
	told    map[string]int // by element of ways, how many events Served has returned
	name    string         // name of the stdio canary; "" stands for canaryName
	twin    bool           // add another canary over stdio, with tools of the same names
	apart   bool           // each session gives a stdio canary a different variable
	headers bool           // each session gives the canary over http another value of a header
	given   int            // number of such variables given so far
	headed  int            // number of such headers given so far
	as      string         // variable that selects how the stdio canary behaves, such as slowly; "" for the usual way
	http    *canary.Server // canary over http, or nil
	own     []mockclient.MCPServer
}

// overWeb lists the kinds of canaries over HTTP.
var overWeb = []string{canary.Web, canary.Unusual, canary.Events}

// canaryName is the default name of the canary.
const canaryName = "canary"

// token returns the token that the canary puts into its answers. It need only differ from any other text.
func token(b *scenarios.Branch) string { return canary.Token(b.Seed()) }

func canaryLog(b *scenarios.Branch) string { return filepath.Join(b.Temp(), "canary log") }

// twinLog returns the log file of the other canary over stdio.
func twinLog(b *scenarios.Branch) string { return filepath.Join(b.Temp(), "twin log") }

// ways names the canaries in the order of their events: the transport, or twin for the other one over stdio.
var ways = []string{"stdio", "twin", "http"}

// servers returns the MCP servers that set-up lines have added so far.
func (c *client) servers() (given mcpServers) {
	c.change(func() { given = c.mcp })
	return given
}

// counts increments the number of variables or of headers given to canaries, and returns the new number.
func (c *client) counts(given *int) (n int) {
	c.change(func() {
		*given++
		n = *given
	})
	return n
}

// offered returns the MCP servers as they appear in the params of session/new.
func offered(b *scenarios.Branch) []any {
	out := []any{}
	s := of(b).servers()
	if s.broken {
		out = append(out, canary.Stdio("broken", token(b), canaryLog(b), filepath.Join(b.Temp(), "no-such-program")))
	}
	if s.stdio {
		entry := canary.Stdio(cmp.Or(s.name, canaryName), token(b), canaryLog(b), b.Self(), "canary")
		switch s.as {
		case "":
		case canary.Odd:
			entry = canary.Oddly(entry)
			entry.Command = blankPath(b)
		default:
			entry.Env = append(entry.Env, mockclient.EnvVariable{Name: s.as, Value: "1"})
		}
		if s.apart {
			entry = canary.Numbered(entry, of(b).counts(&of(b).mcp.given))
		}
		out = append(out, entry)
	}
	if s.twin {
		entry := canary.Stdio(cmp.Or(s.name, canaryName)+"_twin", token(b), twinLog(b), b.Self(), "canary")
		if s.apart {
			entry = canary.Numbered(entry, of(b).counts(&of(b).mcp.given))
		}
		out = append(out, entry)
	}
	if s.http != nil {
		name := canaryName
		if s.stdio {
			name += "_http"
		}
		entry := s.http.Entry(name)
		if s.headers {
			entry = canary.Apart(entry, of(b).counts(&of(b).mcp.headed))
		}
		out = append(out, entry)
	}
	out = append(out, lists.Map(s.own, func(server mockclient.MCPServer) any { return server })...)
	if of(b).version == v2 {
		for i, entry := range out {
			out[i] = typed(entry)
		}
	}
	return out
}

// blankPath returns a path of this program with a blank in it, by way of a link in the run's temporary folder. Where no
// link can be made, it returns the usual path.
func blankPath(b *scenarios.Branch) string {
	link := filepath.Join(b.Temp(), "my servers", "canary")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return b.Self()
	}
	if err := os.Symlink(b.Self(), link); err != nil && !errors.Is(err, fs.ErrExist) {
		return b.Self()
	}
	return link
}

// typed returns an MCP server with the member type, which version 2 requires.
func typed(server any) any {
	raw, err := json.Marshal(server)
	m := map[string]any{}
	if err != nil || json.Unmarshal(raw, &m) != nil {
		return server
	}
	if m["type"] == nil {
		m["type"] = "stdio"
	}
	return m
}

func compileMCP(l *scenarios.Line) scenarios.Step {
	what := l.One(0, "canary, broken or run")
	if what == "run" {
		return compileOwnMCP(l)
	}
	opts := l.Options("name", "env")
	name, apart := opts["name"], opts["env"]
	l.AtMost(2)
	if what == "broken" && len(l.Rest) == 1 {
		return func(_ context.Context, b *scenarios.Branch) error {
			of(b).change(func() { of(b).mcp.broken = true })
			return nil
		}
	}
	if what != "canary" {
		return l.Usage(l.Rest[0].Column, "%q is not an MCP server: use canary, broken or run", what)
	}
	kind := "stdio"
	if len(l.Rest) > 1 {
		kind = l.Rest[1].Raw()
	}
	as, stdio := overStdio[kind]
	if name.Raw() != "" && !stdio {
		return l.Usage(name.Column, "only a canary over stdio takes a name")
	}
	if apart.Raw() != "" && (kind == canary.Events || apart.Raw() != "apart") {
		return l.Usage(apart.Column, "env= takes apart, for a canary over stdio or streamable HTTP")
	}
	if !stdio && !slices.Contains(overWeb, kind) {
		return l.Usage(l.Rest[1].Column, "%q is not a kind of canary", kind)
	}
	if !stdio {
		return startHTTP(kind, apart.Raw() != "")
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		if b.Self() == "" {
			return l.Fault(fmt.Errorf("the stdio canary is this program, but the engine does not know its path"))
		}
		c := of(b)
		c.change(func() {
			if c.mcp.name, c.mcp.apart = name.Raw(), apart.Raw() != ""; kind == "twin" {
				c.mcp.twin, c.mcp.twinLog = true, twinLog(b)
				return
			}
			c.mcp.stdio, c.mcp.as, c.mcp.log = true, as, canaryLog(b)
		})
		return nil
	}
}

// overStdio has the kinds of canaries over stdio, with the variable that selects each.
var overStdio = map[string]string{"stdio": "", "slow": canary.Slow, "other": canary.Other, "odd": canary.Odd,
	"stubborn": canary.Stubborn, "paged": canary.Paged, "chatty": canary.Chatty, "loud": canary.Loud,
	"prompts": canary.Prompts, "older": canary.Older, "twin": ""}

// startHTTP returns a step that starts a canary over HTTP, unless one runs already.
func startHTTP(kind string, apart bool) scenarios.Step {
	return func(_ context.Context, b *scenarios.Branch) error {
		c := of(b)
		if c.servers().http != nil {
			return nil
		}
		server, err := canary.Start(token(b), kind)
		if err != nil {
			return fmt.Errorf("starting the canary: %w", err)
		}
		c.change(func() { c.mcp.http, c.mcp.headers = server, apart })
		if b.Isolated() && b.Agent() != nil {
			return &scenarios.Skipped{Reason: "an isolated agent reaches the canary over http only if mcp canary " +
				"comes before the agent's start"}
		}
		return nil
	}
}

// compileOwnMCP compiles a line that adds the scenario's own MCP server, over stdio.
func compileOwnMCP(l *scenarios.Line) scenarios.Step {
	name := l.Need(1, "a name")
	l.Need(2, "a program")
	l.Starts("the agent gets a program to start as an MCP server")
	if slices.Contains([]string{canaryName, canaryName + "_http", "broken"}, name.Raw()) {
		return l.Usage(name.Column, "%s is the name of a built-in MCP server: choose another name", name.Raw())
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		var words []string
		for _, w := range l.Rest[1:] {
			text, err := b.Expand(w)
			if err != nil {
				return l.Fault(err)
			}
			words = append(words, text)
		}
		path, err := exec.LookPath(words[1])
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return l.Fault(fmt.Errorf("the MCP server %s: %w", words[0], err))
		}
		server := mockclient.MCPServer{Name: words[0], Command: path, Args: words[2:], Env: []mockclient.EnvVariable{}}
		c := of(b)
		c.change(func() { c.mcp.own = append(c.mcp.own, server) })
		return nil
	}
}

func compileCanary(l *scenarios.Line) scenarios.Step {
	opts := l.Options("text", "over", "n", "else")
	what := l.One(0, "initialized, configured or called")
	if !slices.Contains([]string{"initialized", "configured", "called"}, what) {
		return l.Usage(l.Rest[0].Column, "%q is not a canary event: use initialized, configured or called", what)
	}
	least := 1
	if w, ok := opts["n"]; ok {
		least = l.Int(w, 1, "n= is a number from 1")
	}
	over := opts["over"].Raw()
	if over != "" && !slices.Contains(ways, over) {
		return l.Usage(opts["over"].Column, "over= must be stdio, http or twin, not %q", over)
	}
	if w := opts["else"]; !slices.Contains([]string{"", "skip"}, w.Raw()) {
		return l.Usage(w.Column, "else= must be skip")
	}
	k := canaryLine{l, what, over, least, opts["else"].Raw() == "skip"}
	return func(ctx context.Context, b *scenarios.Branch) error {
		text, err := b.Expand(opts["text"])
		if err != nil {
			return l.Fault(err)
		}
		return k.watch(ctx, b, text)
	}
}

// canaryLine is a script line that waits until the canaries have seen an event least times. over is an element of
// ways, or "" for all canaries. If skips is set, the scenario is skipped when the events do not come.
type canaryLine struct {
	line       *scenarios.Line
	what, over string
	least      int
	skips      bool
}

// watch waits until the canaries have seen the line's event as often as the line requires. For a negated line, it
// checks at once that they have not. It returns an error if the line fails or times out.
func (k canaryLine) watch(ctx context.Context, b *scenarios.Branch, text string) error {
	wait, cancel := b.UntilRest(ctx, "an MCP server")
	defer cancel()
	negated := k.line.Negated
	for {
		seen, err := of(b).sightings(k.over)
		if err != nil {
			return k.line.Fault(err)
		}
		found := lists.Count(seen, func(s canary.Sighting) bool {
			return (s.What == k.what || k.what == "configured" && s.Token) && (text == "" || s.Text == text)
		})
		switch {
		case (found >= k.least) != negated:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case negated, wait.Err() != nil:
			return k.missed(b, seen)
		}
		select { // the server is a process of the agent, so it must be polled
		case <-wait.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (k canaryLine) missed(b *scenarios.Branch, seen []canary.Sighting) error {
	if k.skips {
		return &scenarios.Skipped{Reason: saw(seen)}
	}
	err := b.Back(k.line, true, strings.TrimPrefix(k.line.Text, "! "), saw(seen))
	var m *scenarios.Miss
	if k.what == "configured" && len(seen) == 0 && errors.As(err, &m) {
		m.Verdict = results.Inconclusive
		m.Failure.Reason = "the agent did not start the MCP server, so its environment is unknown"
	}
	return err
}

// sightings returns the events that one of the canaries has seen. over is an element of ways, or "" for all canaries.
func (c *client) sightings(over string) (all []canary.Sighting, err error) {
	given := c.servers()
	for way, log := range map[string]string{"stdio": given.log, "twin": given.twinLog} {
		if log != "" && (over == "" || over == way) {
			seen, err := canary.Read(log)
			if err != nil {
				return nil, err
			}
			all = append(all, seen...)
		}
	}
	if given.http != nil && (over == "" || over == "http") {
		all = append(all, given.http.Sightings()...)
	}
	return all, nil
}

// served is the content of an entry of kind transcript.Served.
type served struct {
	Over  string   `json:"over"`
	Tools []string `json:"tools"`
	canary.Sighting
}

// Served implements scenarios.Witness. It returns the canaries' events since the last call.
func (c *client) Served() (all []any) {
	for _, over := range ways {
		seen, err := c.sightings(over)
		if err != nil {
			continue // a script line that needs the events reports the error
		}
		c.change(func() {
			for _, s := range seen[min(c.mcp.told[over], len(seen)):] {
				all = append(all, served{over, canary.Tools, s})
			}
			if c.mcp.told == nil {
				c.mcp.told = map[string]int{}
			}
			c.mcp.told[over] = len(seen)
		})
	}
	return all
}

// saw describes, in a message to the user, the events that the canaries have seen.
func saw(seen []canary.Sighting) string {
	if len(seen) == 0 {
		return "the MCP server saw nothing: the agent did not start the server, or not with the command from the editor"
	}
	var all []string
	for _, s := range seen {
		line := s.What
		if s.Text != "" {
			line += " with " + strconv.Quote(s.Text)
		}
		if !s.Token {
			line += " without the arguments, env or headers that the editor gave"
		}
		all = append(all, line)
	}
	return "the MCP server saw: " + strings.Join(all, ", ")
}
