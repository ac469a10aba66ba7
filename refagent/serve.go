package refagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Serve serves a protocol over HTTP until ctx ends, by a listener, or at an address if that is nil.
// handler makes what answers at host and port; where that is, a line on out says.
func Serve(ctx context.Context, protocol, path, address string, l net.Listener, out io.Writer,
	handler func(host string) http.Handler) (err error) {
	if l == nil {
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err != nil {
			return fmt.Errorf("serving %s: %w", protocol, err)
		}
	}
	h := &http.Server{Handler: handler(l.Addr().String()), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	if out != nil {
		fmt.Fprintf(out, "serving %s at http://%s%s\n", protocol, l.Addr(), path)
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", protocol, err)
	}
	return nil
}
