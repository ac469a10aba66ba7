package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// replayWeb posts to an endpoint what front ends have posted in recordings, and judges what
// comes.
func (h *host) replayWeb(ctx context.Context, o *options, of protocol) error {
	if o.url == "" {
		return fmt.Errorf("replay: --url is missing: a recording of %s is played to an endpoint that runs", of.Name)
	}
	if _, err := endpoint.Target(o.url); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	out, release, err := h.takeOut(&o.output)
	if err != nil {
		return err
	}
	defer release()
	run := h.newRun(results.Agent{Profile: "endpoint", Title: o.url})
	run.Out, run.Protocol = out, of.Version
	for _, file := range o.paths {
		for n := range o.repeat {
			res, err := h.replayPosts(ctx, o, of, file, out, n)
			if err != nil {
				return err
			}
			run.Results = append(run.Results, res)
		}
	}
	return h.conclude(&run, o.reports, o.verbose, o.env...)
}

// replayPosts replays one recording once. A proxy between makes the transcript.
func (h *host) replayPosts(ctx context.Context, o *options, of protocol, file, out string, n int) (
	res results.Result, err error) {
	recording, err := h.recordingOf(file)
	if err != nil {
		return res, err
	}
	id := nameOf(file, recording)
	dir := id
	if o.repeat > 1 {
		dir = fmt.Sprintf("repeat-%d/%s", n+1, id)
	}
	if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil {
		return res, err
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: "endpoint", Scenario: id, Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: filepath.Join(out, dir, "transcript.jsonl"),
			Redact: h.redactor(of, o.env...)})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return res, err
	}
	target, err := endpoint.Target(o.url)
	if err != nil {
		return res, err
	}
	tap := endpoint.NewTap(target, log)
	server := &http.Server{Handler: tap, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = server.Serve(listener) }() // it ends by Close
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("timeout %v", o.timeout))
	defer cancel()
	err = endpoint.Again(ctx, recording, "http://"+listener.Addr().String()+"/")
	if errors.Is(err, endpoint.ErrNothingPosted) {
		server.Close()
		return res, fmt.Errorf("%s: %w, so there is nothing to play", file, err)
	}
	if err == nil {
		tap.Wait() // a hang-up is on its way
	}
	server.Close()
	tap.Wait()
	res = of.judge(o.severity).Check(id, log)
	res.File = file
	if err != nil {
		res.Verdict, res.Reason = results.Error, err.Error()
	}
	if o.repeat > 1 {
		res.Repeat = n + 1
	}
	res.Artifacts = map[string]string{"transcript": dir + "/transcript.jsonl"}
	return res, nil
}
