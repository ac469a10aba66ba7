//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// client is an ACP client to measure. take starts the agent argv, plays one turn and returns the turn's duration. It
// counts the updates in seen, even if the client fails later.
type client struct {
	name string
	take func(argv []string, seen *int) time.Duration
}

// burst prints, for each client, the best rate of several rounds, as "NAME<tab>UPDATES/S<tab>SEEN<tab>PROBLEM". Each
// round runs every client, so that all clients suffer alike if the machine slows down.
func burst(args []string) {
	n, rounds := number(args, 0), number(args, 1)
	self := must.Get(os.Executable())
	clients := []client{
		{"lines split, nothing else", takeBare(func([]byte) bool { return true })},
		{"json.Valid of each line", takeBare(json.Valid)},
		{"acp-test: shapes, rules, transcript on disk", takeOurs},
		{"acp-go-sdk", takeGoSDK},
	}
	if len(args) > 2 {
		clients = append(clients, client{"TypeScript SDK", takeNode(args[2])})
	}
	type best struct {
		rate    float64
		seen    int
		problem string
	}
	results := make([]best, len(clients))
	for range rounds {
		for i, c := range clients {
			r := &results[i]
			err := must.Try(func() {
				r.seen = 0
				took := c.take([]string{self, "agent", args[0]}, &r.seen)
				if r.seen != n {
					must.Fail("%d of %d updates seen", r.seen, n)
				}
				r.rate = max(r.rate, float64(n)/took.Seconds())
			})
			if err != nil && r.problem == "" {
				r.problem, _, _ = strings.Cut(err.Error(), "\n")
			}
		}
	}
	for i, c := range clients {
		fmt.Printf("%s\t%.0f\t%d\t%s\n", c.name, results[i].rate, results[i].seen, results[i].problem)
	}
}

func takeBare(valid func([]byte) bool) func(argv []string, seen *int) time.Duration {
	return func(argv []string, seen *int) time.Duration {
		b := startBare(argv)
		session := b.open()
		started := time.Now()
		b.prompt(session, func(line []byte) {
			if !valid(line) {
				must.Fail("no JSON: %.80s", line)
			}
			*seen++
		})
		took := time.Since(started)
		b.close()
		return took
	}
}

// takeOurs plays the turn with the editor that acp-test uses in a run. The editor classifies every frame, checks its
// shape, applies all rules and writes the transcript to disk.
func takeOurs(argv []string, seen *int) time.Duration {
	ctx := context.Background()
	log, dir, done := logged(acpframe.Classifier{})
	defer done()
	checker := invariants.V1().NewChecker(rules.Config{Start: dir, Roots: []string{dir}})
	wait := log.ObserveBeside(checker.Observe)
	log.Observe(func(e transcript.Entry) {
		if e.Source == transcript.Agent && e.Kind == transcript.Notification {
			*seen++
		}
	})
	a := must.Get(mockclient.Start(ctx, log, 0, mockclient.Command{Path: argv[0], Args: argv[1:], Dir: dir}))
	editor := mockclient.NewEditor(a, mockclient.Options{})
	must.Get(editor.Initialize(ctx))
	session := must.Get(editor.NewSession(ctx, mockclient.SessionOptions{Cwd: dir}))
	started := time.Now()
	_, err := session.Prompt(ctx, mockclient.Text("Say hello.")).Wait(ctx)
	editor.Close(ctx)
	wait() // the measured time includes the rules' work
	took := time.Since(started)
	must.Do(errors.Join(err, log.Close()))
	judged(checker.Finish(rules.End{}))
	return took
}

// takeGoSDK plays the turn with a client of github.com/coder/acp-go-sdk, and returns how long it took. It counts the
// updates in seen.
func takeGoSDK(argv []string, seen *int) time.Duration {
	cmd, in, out := piped(argv)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	counter := &counter{}
	conn := acp.NewClientSideConnection(counter, in, out)
	defer func() {
		*seen = int(counter.n.Load())
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	must.Get(conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}))
	s := must.Get(conn.NewSession(ctx, acp.NewSessionRequest{Cwd: "/", McpServers: []acp.McpServer{}}))
	started := time.Now()
	must.Get(conn.Prompt(ctx,
		acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("Say hello.")}}))
	return time.Since(started)
}

// counter is a client that counts updates and refuses everything else.
type counter struct {
	acp.Client
	n atomic.Int64
}

func (c *counter) SessionUpdate(context.Context, acp.SessionNotification) error {
	c.n.Add(1)
	return nil
}

// takeNode returns a client that runs a script in Node.js. The script prints "SEEN MILLISECONDS".
func takeNode(script string) func(argv []string, seen *int) time.Duration {
	return func(argv []string, seen *int) time.Duration {
		cmd := exec.Command("node", slices.Concat([]string{script}, argv)...)
		cmd.Stderr = os.Stderr
		out := must.Get(cmd.Output())
		var ms float64
		if _, err := fmt.Sscan(string(out), seen, &ms); err != nil {
			must.Fail("%s printed %q: %w", script, out, err)
		}
		return time.Duration(ms * float64(time.Millisecond))
	}
}

// bare is a minimal client: it sends hand-written lines and reads lines in a loop.
type bare struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startBare(argv []string) *bare {
	cmd, in, out := piped(argv)
	return &bare{cmd, in, bufio.NewReaderSize(out, 1<<20)}
}

// ask sends a request and returns the line with its response. It calls look with each line that comes before the
// response.
func (b *bare) ask(id int, method, params string, look func([]byte)) []byte {
	must.Get(fmt.Fprintf(b.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params))
	head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`, id)
	for {
		line, err := b.out.ReadSlice('\n')
		if err != nil {
			must.Fail("waiting for the answer to %s: %w", method, err)
		}
		if bytes.HasPrefix(line, head) {
			return line
		}
		look(line)
	}
}

func nothing([]byte) {}

// open performs all requests before the first prompt. It returns the session's id.
func (b *bare) open() string {
	b.ask(0, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`, nothing)
	line := b.ask(1, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, must.Get(os.Getwd())), nothing)
	var answer struct{ Result struct{ SessionID string } }
	must.Do(json.Unmarshal(line, &answer))
	return answer.Result.SessionID
}

func (b *bare) prompt(session string, look func([]byte)) {
	b.ask(2, "session/prompt",
		fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"Say hello."}]}`, session), look)
}

func (b *bare) close() {
	b.in.Close()
	must.Do(b.cmd.Wait())
}

// turn prints, in seconds, how long one turn takes from the start of the agent to its end. It is the lower bound for
// any client.
func turn(args []string) {
	argv := command(args)
	started := time.Now()
	b := startBare(argv)
	b.prompt(b.open(), nothing)
	b.close()
	fmt.Printf("%.4f\n", time.Since(started).Seconds())
}
