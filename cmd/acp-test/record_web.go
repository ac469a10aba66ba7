package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
)

// recordWeb records what front ends and an endpoint say to each other, until it is
// interrupted.
func (h *host) recordWeb(ctx context.Context, o *recording) (err error) {
	target, err := endpoint.Target(o.url)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	of, err := protocolNamed(agui.Name)
	if err != nil {
		return err
	}
	log, file, err := h.recordingLog(o, of, "endpoint")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	tap := endpoint.NewTap(target, log)
	fmt.Fprintf(h.err, "recording http://%s/ in %s\n", listener.Addr(), file)
	if err := serveHTTP(ctx, listener, tap); err != nil {
		return err
	}
	tap.Wait()
	return nil
}

// serveHTTP serves until the context ends. What is still being sent then is of no use.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
