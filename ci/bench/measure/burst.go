//go:build linux

package main

import (
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

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// A client takes one turn with n updates from argv and returns how many of them
// it saw and how long the turn took.
type client struct {
	name string
	take func(argv []string) (seen int, took time.Duration, err error)
}

// burst prints, for each client, the best rate of some rounds, as
// "NAME<tab>UPDATES/S<tab>SEEN<tab>PROBLEM". The rounds go around, so that a
// machine that slows down slows all of them down.
func burst(args []string) error {
	given, err := numbers(args, 2) // of updates and of rounds
	if err != nil {
		return err
	}
	n, rounds := given[0], given[1]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	clients := []client{
		{"lines split, nothing else", func(argv []string) (int, time.Duration, error) {
			return takeBare(argv, func([]byte) bool { return true })
		}},
		{"json.Valid of each line", func(argv []string) (int, time.Duration, error) { return takeBare(argv, json.Valid) }},
		{"acp-test: shapes, rules, transcript on disk", takeOurs},
		{"acp-go-sdk", takeGoSDK},
	}
	if len(args) > 2 {
		clients = append(clients, client{"TypeScript SDK",
			func(argv []string) (int, time.Duration, error) { return takeNode(args[2], argv) }})
	}
	type best struct {
		rate    float64
		seen    int
		problem error
	}
	results := make([]best, len(clients))
	for range rounds {
		for i, c := range clients {
			seen, took, err := c.take([]string{self, "agent", args[0]})
			if err == nil && seen != n {
				err = fmt.Errorf("%d of %d updates seen", seen, n)
			}
			if rate := float64(seen) / took.Seconds(); err == nil && rate > results[i].rate {
				results[i].rate = rate
			}
			results[i].seen = seen
			results[i].problem = errors.Join(results[i].problem, err)
		}
	}
	for i, c := range clients {
		problem := ""
		if results[i].problem != nil {
			problem, _, _ = strings.Cut(results[i].problem.Error(), "\n")
		}
		fmt.Printf("%s\t%.0f\t%d\t%s\n", c.name, results[i].rate, results[i].seen, problem)
	}
	return nil
}

func takeBare(argv []string, valid func([]byte) bool) (seen int, took time.Duration, err error) {
	b, err := startBare(argv)
	if err != nil {
		return 0, 0, err
	}
	session, err := b.open()
	if err != nil {
		return 0, 0, err
	}
	started := time.Now()
	err = b.prompt(session, func(line []byte) error {
		if !valid(line) {
			return fmt.Errorf("no JSON: %.80s", line)
		}
		seen++
		return nil
	})
	took = time.Since(started)
	return seen, took, errors.Join(err, b.close())
}

// takeOurs is the editor as a run uses it: every frame classified, its shape
// checked, all rules on, the transcript written to disk.
func takeOurs(argv []string) (seen int, took time.Duration, err error) {
	ctx := context.Background()
	log, dir, done, err := logged(acpframe.Classifier{})
	if err != nil {
		return 0, 0, err
	}
	defer done()
	checker := invariants.V1().NewChecker(rules.Config{Start: dir, Roots: []string{dir}})
	updates := 0
	judged := log.ObserveBeside(checker.Observe)
	log.Observe(func(e transcript.Entry) {
		if e.Source == transcript.Agent && e.Kind == transcript.Notification {
			updates++
		}
	})
	a, err := mockclient.Start(ctx, log, 0, mockclient.Command{Path: argv[0], Args: argv[1:], Dir: dir})
	if err != nil {
		return 0, 0, err
	}
	editor := mockclient.NewEditor(a, mockclient.Options{})
	if _, err := editor.Initialize(ctx); err != nil {
		return 0, 0, err
	}
	session, err := editor.NewSession(ctx, mockclient.SessionOptions{Cwd: dir})
	if err != nil {
		return 0, 0, err
	}
	started := time.Now()
	_, err = session.Prompt(ctx, mockclient.Text("Say hello.")).Wait(ctx)
	editor.Close(ctx)
	judged() // the rate is that of what has been judged
	took = time.Since(started)
	return updates, took, errors.Join(err, log.Close(), broken(checker.Finish(rules.End{})))
}

// takeGoSDK is a client on github.com/coder/acp-go-sdk.
func takeGoSDK(argv []string) (seen int, took time.Duration, err error) {
	cmd, in, out, err := piped(argv)
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	counter := &counter{}
	conn := acp.NewClientSideConnection(counter, in, out)
	defer func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	if _, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}); err != nil {
		return 0, 0, err
	}
	s, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: "/", McpServers: []acp.McpServer{}})
	if err != nil {
		return 0, 0, err
	}
	started := time.Now()
	_, err = conn.Prompt(ctx,
		acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("Say hello.")}})
	took = time.Since(started)
	return int(counter.n.Load()), took, err
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

// takeNode runs a client that prints "SEEN MILLISECONDS".
func takeNode(script string, argv []string) (seen int, took time.Duration, err error) {
	cmd := exec.Command("node", slices.Concat([]string{script}, argv)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, err
	}
	var ms float64
	if _, err := fmt.Sscan(string(out), &seen, &ms); err != nil {
		return 0, 0, fmt.Errorf("%s printed %q: %w", script, out, err)
	}
	return seen, time.Duration(ms * float64(time.Millisecond)), nil
}
