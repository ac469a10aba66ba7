package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios/results"
)

// toEndpoint returns what posts to an endpoint what front ends have posted in recordings, and judges
// what comes.
func (h *host) toEndpoint(_ context.Context, o *options, _ *replaying, of protocol) (results.Agent, player, error) {
	about := results.Agent{Profile: "endpoint", Title: o.url}
	if o.url == "" {
		return about, nil, fmt.Errorf("replay: --url is missing: a recording of %s is played to an endpoint that runs", of.Name)
	}
	target, err := endpoint.Target(o.url)
	if err != nil {
		return about, nil, fmt.Errorf("--url: %w", err)
	}
	return about, func(ctx context.Context, p playing) (res results.Result, _ []string, err error) {
		err = replayPosts(ctx, target, p)
		if errors.Is(err, endpoint.ErrNothingPosted) {
			return res, nil, fmt.Errorf("%s: %w, so there is nothing to play", p.file, err)
		}
		res = of.judge(o.severity).Check(p.id, p.log)
		res.File = p.file
		if err != nil {
			res.Verdict, res.Reason = results.Error, err.Error()
		}
		return res, nil, nil
	}, nil
}

// replayPosts posts what a recording has to a target. A proxy between makes the transcript.
func replayPosts(ctx context.Context, target *url.URL, p playing) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	tap := endpoint.NewTap(target, p.log)
	server := &http.Server{Handler: tap, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = server.Serve(listener) }() // it ends by Close
	err = endpoint.Again(ctx, p.recording, "http://"+listener.Addr().String()+"/")
	if err == nil {
		tap.Wait() // a hang-up is on its way
	}
	server.Close()
	tap.Wait()
	return err
}
