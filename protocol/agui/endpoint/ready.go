package endpoint

import (
	"context"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// At returns the endpoint at a URL, which may begin with $PRINTED.
func At(url string) *Endpoint {
	return &Endpoint{given: transport.Address(url), items: make(chan item), over: make(chan struct{}),
		dead: make(chan struct{}), streams: map[int]context.CancelCauseFunc{}, client: transport.Client(nil)}
}

// Ready waits until the URL is known and somebody listens there; see transport.Address.
func (e *Endpoint) Ready(ctx context.Context, t *transcript.Transcript, conn int, ours bool) error {
	e.mu.Lock()
	known := e.url != ""
	e.mu.Unlock()
	if known {
		return nil
	}
	at, err := e.given.Find(ctx, t, conn, ours)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.url = at.String()
	return nil
}
