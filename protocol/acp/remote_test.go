package acp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/refagent/netagent"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// overNetwork runs the reference agent as a server within this process.
func overNetwork(t *testing.T, binding string, ways ...string) *scenarios.Engine {
	t.Helper()
	return differing(t, binding, nil, ways...)
}

// differing is overNetwork, which says what the server does differently.
func differing(t *testing.T, binding string, did func(way string), ways ...string) *scenarios.Engine {
	t.Helper()
	p, err := agents.Shipped("reference")
	if err != nil {
		t.Fatal(err)
	}
	p = p.Over(binding)
	p.Timeouts.Start = 5 * time.Second
	p.Command = []string{os.Args[0]} // which is not started
	e := &scenarios.Engine{Protocol: acp.V1(), Profile: p, Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true,
		StepTimeout: 5 * time.Second}
	e.Connect = func(_ context.Context, log *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent,
		error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		getenv := inside.Getenv(l)
		o := netagent.Options{Listener: listener,
			Tokens: strings.Fields(strings.ReplaceAll(getenv("ACP_TEST_REFAGENT_TOKENS"), ",", " ")),
			Ways:   ways, Did: did, Agent: func(ctx context.Context, in io.Reader, out io.Writer) error {
				return refagent.Run(ctx, refagent.Options{In: in, Out: out, Getenv: getenv})
			}}
		at := remote.At(binding+"://"+listener.Addr().String()+netagent.Path, l.Headers)
		return transport.InProcessServer(log, conn, at,
			func(ctx context.Context) error { return netagent.Serve(ctx, o) }), nil
	}
	return e
}

// The agent passes over both bindings, with the goldens of stdio.
func TestTheAgentOverANetwork(t *testing.T) {
	t.Parallel()
	all, err := acp.V1().Shipped()
	if err != nil {
		t.Fatal(err)
	}
	var list []*scenarios.Scenario
	for _, s := range all {
		suite, _, _ := strings.Cut(s.ID, "/")
		if s.ID == "cancel/server-hangs" || s.ID == "load/after-kill" {
			continue // they need this program, and a process to kill
		}
		if strings.Contains(" remote prompt-turn permission load close subagents cancel transport ", " "+suite+" ") {
			list = append(list, s)
		}
	}
	for binding, skipped := range map[string]int{"http": 30, "ws": 65} {
		e := overNetwork(t, binding)
		e.Golden, e.GoldenRequired = &golden.Store{Embedded: golden.Shipped()}, true
		run := e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 6})
		passed, skips := 0, 0
		for _, r := range run.Results {
			switch r.Verdict {
			case results.Pass:
				passed++
			case results.Skip:
				skips++
			}
			if slices.ContainsFunc(r.Findings, func(f results.Finding) bool { return f.Rule == "EXIT-EOF" }) {
				t.Errorf("%s over %s: a server is to end with its connection", r.ID, binding)
			}
			if r.Verdict != results.Pass && r.Verdict != results.Skip {
				t.Errorf("%s over %s: %s %s %+v", r.ID, binding, r.Verdict, r.Summary(), r.Golden)
			}
		}
		if skips > skipped || passed < 100 {
			t.Errorf("over %s %d of %d scenarios pass and %d are skipped", binding, passed, len(list), skips)
		}
	}
}

// endless stands for blanks without an end.
const endless = "…"

// What is no agent at a URL gets one clear message, and the run goes on.
func TestWhatIsNoServer(t *testing.T) {
	scenario, err := acp.V1().Parse("hello", "hello.txtar", []byte("check a\ninitialize\nsession new main\n"))
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		"HTTP/1.1 200" +
			" OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>": "is that an ACP agent?",
		"HTTP/1.1 302" +
			" Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n": "give the URL of the agent itself",
		"HTTP/1.1 404" +
			" Not Found\r\nContent-Length: 0\r\n\r\n": "the server answered 404 Not Found",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
			"2\r\n\r\n{}": "is that an ACP agent?",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1," +
			"\"result\":{}}": "without the header Acp-Connection-Id",
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + endless:        "is that an ACP agent?",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + endless: "is that an ACP agent?",
		"SSH-2.0-none\r\n": "malformed HTTP response",
		"":                 "nobody listens at",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if answer == "" {
			l.Close()
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 4096))
				text, more := strings.CutSuffix(answer, endless)
				_, err = io.WriteString(c, text)
				for more && err == nil { // until nobody reads
					_, err = io.WriteString(c, strings.Repeat(" ", 1<<20))
				}
				c.Close()
			}
		}()
		e := &scenarios.Engine{Protocol: acp.V1(), Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true,
			StepTimeout: 5 * time.Second,
			Profile:     &agents.Profile{Name: "endpoint", URL: "http://" + l.Addr().String() + "/acp"}}
		r := e.Run(context.Background(), scenario)
		l.Close()
		var said strings.Builder
		for _, c := range r.Checks {
			if c.Failure != nil {
				said.WriteString(c.Failure.Error())
			}
		}
		if r.Failure != nil {
			said.WriteString(r.Failure.Error())
		}
		if !r.NotStarted || !strings.Contains(said.String(), want) {
			t.Errorf("for %q got %s %s\n%s", answer, r.Verdict, r.Summary(), said.String())
		}
	}
}

// served is an engine whose agent is a handler, reached by a binding.
func served(t *testing.T, binding string, handler http.HandlerFunc) *scenarios.Engine {
	t.Helper()
	e := overNetwork(t, binding)
	e.Connect = func(_ context.Context, log *transcript.Transcript, conn int, _ agents.Launch) (*transport.Agent,
		error) {
		server := httptest.NewServer(handler)
		at := remote.At(binding+strings.TrimPrefix(server.URL, "http"), nil)
		return transport.InProcessServer(log, conn, at, func(ctx context.Context) error {
			<-ctx.Done()
			server.CloseClientConnections()
			server.Close()
			return nil
		}), nil
	}
	return e
}

// welcomed is the answer to an initialize.
func welcomed(body io.Reader) []byte {
	var asked struct{ ID json.RawMessage }
	_ = json.NewDecoder(body).Decode(&asked)
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`, asked.ID)
}

// A server that was started may listen before it takes WebSockets: it is asked again.
func TestAWebSocketIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	e := served(t, "ws", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 2 {
			http.NotFound(w, r)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_, in, err := ws.Reader(r.Context())
		if err == nil {
			_ = ws.Write(r.Context(), websocket.MessageText, welcomed(in))
		}
		<-ws.CloseRead(r.Context()).Done()
	})
	s, err := acp.V1().Parse("hello", "hello.txtar", []byte("check a\ninitialize\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Run(context.Background(), s); r.Verdict != results.Pass || asked.Load() != 3 {
		t.Errorf("asked %d times: %s %s", asked.Load(), r.Verdict, r.Summary())
	}
}

// An event of 64 MiB is kept in part, and one without an end is waited for as long as a step may take: what follows
// names both.
func TestEventsWithoutMeasure(t *testing.T) {
	t.Parallel()
	s, err := acp.V1().Parse("hello", "hello.txtar", []byte("check a\ninitialize\nsession new main\n"))
	if err != nil {
		t.Fatal(err)
	}
	for mebibytes, want := range map[int]string{64: "over the network between turns is not a message: the line is " +
		"67108913 bytes long", 1 << 20: "got nothing"} {
		e := served(t, "http", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(remote.ConnectionID, "one")
			if r.Method == http.MethodPost && r.Header.Get(remote.ConnectionID) == "" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(welcomed(r.Body))
				return
			}
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, err := io.WriteString(w, `data: {"jsonrpc":"2.0","method":"_x","params":{"x":"`)
			for i := 0; i < mebibytes && err == nil; i++ {
				_, err = io.WriteString(w, strings.Repeat("x", 1<<20))
			}
			_, _ = io.WriteString(w, "\"}}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		e.StepTimeout, e.Profile.Timeouts.Start = 3*time.Second, 3*time.Second
		r := e.Run(context.Background(), s)
		said := r.Summary()
		for _, f := range r.Findings {
			said += "\n" + f.Message
		}
		if r.Verdict != results.Fail || !strings.Contains(said, want) {
			t.Errorf("of %d MiB: got %s %s", mebibytes, r.Verdict, said)
		}
	}
}

// A server that answers without an end, too much, or not at all gets one clear message, over both bindings, and the run
// ends.
func TestServersWithoutMeasure(t *testing.T) {
	s, err := acp.V1().Parse("hello", "hello.txtar", []byte("check a\ninitialize\nsession new main\n"))
	if err != nil {
		t.Fatal(err)
	}
	endlessly := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, text)
		}
	}
	welcome := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(remote.ConnectionID, "one")
			switch {
			case r.Method == http.MethodGet:
				then(w, r)
			case r.Header.Get(remote.ConnectionID) == "":
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(welcomed(r.Body))
			default:
				w.WriteHeader(http.StatusAccepted)
			}
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	large := func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		if _, _, err := ws.Read(r.Context()); err == nil {
			_ = ws.Write(r.Context(), websocket.MessageText, bytes.Repeat([]byte(" "), 65<<20))
		}
		<-ws.CloseRead(r.Context()).Done()
	}
	blanks, comments := strings.Repeat(" ", 1<<16), strings.Repeat(": still here\n\n", 1<<12)
	for _, c := range []struct {
		what, binding string
		handler       http.HandlerFunc
		want          string
	}{
		{"an endless line as answer", "http", func(w http.ResponseWriter, _ *http.Request) { endlessly(w, blanks) },
			"is that an ACP agent?"},
		{"endless comments as answer", "http", func(w http.ResponseWriter, _ *http.Request) { endlessly(w, comments) },
			"is that an ACP agent?"},
		{"endless comments", "http", welcome(func(w http.ResponseWriter, _ *http.Request) { endlessly(w, comments) }),
			"got nothing"},
		{"no answer", "http", silent, "got nothing"},
		{"no answer to the upgrade", "ws", silent, "got nothing"},
		{"no upgrade", "ws", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			"the server answered 200 OK instead of 101"},
		{"a message over the limit", "ws", large, "of more than 67108864 bytes"},
	} {
		e := served(t, c.binding, c.handler)
		e.StepTimeout, e.Profile.Timeouts.Start = 3*time.Second, 3*time.Second
		r := e.Run(context.Background(), s)
		said := r.Summary()
		for _, check := range r.Checks {
			if check.Failure != nil {
				said += "\n" + check.Failure.Error()
			}
		}
		if r.Failure != nil {
			said += "\n" + r.Failure.Error()
		}
		for _, f := range r.Findings {
			said += "\n" + f.Message
		}
		if r.Verdict != results.Fail || !strings.Contains(said, c.want) {
			t.Errorf("%s: got %s %s", c.what, r.Verdict, said)
		}
	}
}

// ofTheNetwork are the scenarios in which faults and liberties of the network are tried.
func ofTheNetwork(t *testing.T) (list []*scenarios.Scenario) {
	t.Helper()
	all, err := acp.V1().Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.ID, "remote/") || slices.Contains(fixedOverNetwork, s.ID) {
			list = append(list, s)
		}
	}
	return list
}

// fixedOverNetwork run with each fault.
var fixedOverNetwork = []string{"prompt-turn/two-turns", "permission/allow-once-edit", "cancel/mid-stream-at-gate",
	"load/fresh-process", "session/two-are-apart"}

// Each fault of the server is found by what reddens-network.txt declares, and by nothing else in the scenarios that
// it names and in the fixed ones.
func TestEachFaultOfTheNetworkIsFound(t *testing.T) {
	p := proof.Proof{File: "../../refagent/faults/reddens-network.txt", AtOnce: 12, Faults: map[string]faults.Effect{},
		Scenarios: ofTheNetwork(t), Fixed: fixedOverNetwork}
	p.Engine = func(fault string) *scenarios.Engine {
		f, _ := faults.Find(faults.Network, fault)
		e := overNetwork(t, cmp.Or(f.Topic, "http"), fault)
		e.StepTimeout = 3 * time.Second // who waits in vain leaves the processor to the others
		if fault == "body-any" || fault == "socket-slow-reader-blocks" {
			e.StepTimeout = 20 * time.Second // a busy machine takes longer than 3 s for messages of many MiB
		}
		return e
	}
	for _, f := range faults.All(faults.Network) {
		p.Names, p.Faults[f.Name] = append(p.Names, f.Name), f.Effect
		if _, ok := acp.V1().Rules.Requirement(f.Breaks); !ok {
			t.Errorf("the fault %s breaks %s, which does not exist", f.Name, f.Breaks)
		}
	}
	if err := p.Prove(*updateFaults); err != nil {
		t.Fatal(err)
	}
}

// Each liberty of the server makes a difference, and nobody is blamed for it.
func TestLibertiesOfTheNetwork(t *testing.T) {
	proof.Each(proof.Share(liberties.All(liberties.Network)), 3, func(l liberties.Liberty) {
		var did atomic.Bool
		e := differing(t, l.Topic, func(string) { did.Store(true) }, l.Name)
		run := e.RunAll(context.Background(), ofTheNetwork(t), scenarios.Plan{Jobs: 2})
		if found := proof.Red(run.Results); len(found) > 0 {
			t.Errorf("%s (%s): red are %v", l.Name, l.Summary, found)
		}
		for _, r := range run.Results {
			if r.Verdict == results.Inconclusive &&
				!strings.Contains(r.Reason+r.Summary(), cmp.Or(l.Takes, "nothing is taken")) {
				t.Errorf("%s: %s is inconclusive: %s %s", l.Name, r.ID, r.Reason, r.Summary())
			}
		}
		if !did.Load() {
			t.Errorf("the liberty %s has made no difference", l.Name)
		}
	})
}
