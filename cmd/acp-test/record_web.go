package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// recordWeb records what front ends and an endpoint say to each other, until it is
// interrupted.
func (h *host) recordWeb(ctx context.Context, o *recording) (err error) {
	target, err := endpoint.Target(o.url)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	patterns, err := compileAll("--redact", o.redact)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	file, err := reserve(o.out, "endpoint")
	if err != nil {
		return err
	}
	redaction := replay.Redaction{Protocol: aguirecord.Protocol{}, Env: h.env, Patterns: patterns, KeepText: o.keepText,
		MaskText: o.maskText}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: "endpoint", Protocol: agui.V1().Version},
		transcript.Options{Classifier: aguirecord.Protocol{}, Path: file, Through: true, Memory: 8 << 20,
			Redact: redaction.Func(), Failed: func(err error) {
				fmt.Fprintf(h.err, "acp-test: %s is not whole: from here on nothing is recorded, and all is passed on: %v\n",
					file, err)
			}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	tap := endpoint.NewTap(target, log)
	server := &http.Server{Handler: tap, ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	fmt.Fprintf(h.err, "recording http://%s/ in %s\n", listener.Addr(), file)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	tap.Wait()
	return nil
}
