package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/serve/obedient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// serveObedient serves the reference agent with a model that obeys the commands in prompts.
func (h *host) serveObedient(ctx context.Context, o *serving) error {
	of, err := protocolNamed(cmp.Or(h.protocol, protocols()[0].Name))
	if err != nil {
		return err
	}
	args := []string{"refagent"}
	var listed []string // slash commands of the imitated agent
	if o.as != "" {
		if of.front != nil {
			return errors.New("serve: --as works only with ACP agents")
		}
		if _, err := h.guise(o.as); err != nil {
			return err
		}
		recording, err := h.guised(o.as)
		if err != nil {
			return err
		}
		listed = recordings.Commands(recording)
		args = append(args, "--as", o.as)
	}
	log, file, err := h.recordingLog(&recording{out: o.out + "/"}, of, "obedient")
	if err != nil {
		return err
	}
	play := h.obedientEndpoint
	if of.front == nil {
		play, ctx = h.obedientAgent, context.Background() // the agent gets the signals
	}
	ctx, die := context.WithCancel(ctx)
	defer die()
	model, err := fakellm.Start(fakellm.Config{Transcript: log, Improvise: func(text string) fakellm.TurnNode {
		turn, dies := obedient.Turn(text, listed)
		if dies {
			die()
		}
		return turn
	}})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	env := append(slices.Clone(h.env), refagent.EnvBaseURL+"="+model.URL(), refagent.EnvAPIKey+"=none",
		refagent.EnvModel+"=obedient")
	ends, err := play(ctx, o, log, transport.Command{Path: h.self, Args: args, Env: env, Dir: h.cwd,
		Keeper: []string{h.self, "keeper"}}, of.judge(o.severity))
	if err := errors.Join(err, model.Close(), log.Close()); err != nil {
		return err
	}
	if !o.quiet {
		err = h.judgeEditor(agentSide{of: of, id: "obedient", name: "obedient"}, log, file, o)
	}
	if err == nil && ends.Signal != "" {
		return endBy(ends.Signal)
	}
	return cmp.Or(err, ended(ends.Code))
}

// obedientAgent serves one editor on stdin and stdout.
func (h *host) obedientAgent(ctx context.Context, _ *serving, log *transcript.Transcript, agent transport.Command,
	judge replay.Judge) (transport.Exit, error) {
	// Catching SIGPIPE keeps this process alive: if the editor is gone, only output fails.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(passedOn(), syscall.SIGPIPE)...)
	defer signal.Stop(signals)
	proxy := replay.Proxy{Judge: judge, NoFiles: true, Model: true, In: h.in, Out: h.out, Err: h.err, Log: log,
		Signals: signals, Agent: agent}
	return proxy.Run(ctx)
}

// obedientEndpoint serves front ends until it is interrupted, or until a prompt tells the agent to exit.
func (h *host) obedientEndpoint(ctx context.Context, o *serving, log *transcript.Transcript, agent transport.Command,
	_ replay.Judge) (transport.Exit, error) {
	front, err := net.Listen("tcp", o.listen)
	if err != nil {
		return transport.Exit{}, fmt.Errorf("--listen: %w", err)
	}
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return transport.Exit{}, errors.Join(err, front.Close())
	}
	target, err := endpoint.Target("http://" + behind.Addr().String() + "/")
	if err != nil {
		return transport.Exit{}, errors.Join(err, front.Close(), behind.Close())
	}
	tap := endpoint.NewTap(target, log)
	fmt.Fprintf(h.err, "serving http://%s/ until it is interrupted\n", front.Addr())
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		own := host{env: agent.Env}
		return webagent.Serve(ctx, webagent.Options{Listener: behind, Dir: agent.Dir, Log: h.err,
			Getenv: func(name string) string { v, _ := own.getenv(name); return v }})
	})
	both.Go(func() error { return serveHTTP(ctx, front, serve.Anywhere(tap.ServeHTTP)) })
	err = both.Wait()
	tap.Wait()
	return transport.Exit{}, err
}
