package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent/netagent"
	"github.com/acp-test/acp-test/serve"
)

// overNetwork waits for an editor to connect over HTTP or WebSocket. It then calls run with a host whose stdin and
// stdout are that connection. It rejects further editors.
func (h *host) overNetwork(ctx context.Context, at string, run func(*host) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := calls{over: cancel}
	listened := netagent.Serve(ctx, netagent.Options{Listen: at, Out: h.err, Log: h.err,
		Agent: func(_ context.Context, in io.Reader, out io.Writer) error {
			network, _ := out.(serve.Network)
			if !all.begin(network) {
				return errors.New("another editor is connected already")
			}
			one := *h
			one.in, one.out = in, out
			all.end(network, run(&one))
			return nil
		}})
	return cmp.Or(all.err, listened)
}

// calls counts the connections of the editor. It has one, and may connect again once the network has failed.
type calls struct {
	mu   sync.Mutex
	n    int // connections that are open
	last serve.Network
	err  error  // of the last run that has ended
	over func() // ends the server
}

// begin reports whether an editor may connect, and counts its connection.
func (c *calls) begin(by serve.Network) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		if failed, _ := c.last.Failed(); !failed {
			return false
		}
	}
	c.last = by
	c.n++
	return true
}

// end counts a connection that has ended. A server without connections ends after a second, in which the editor can
// read the last messages. If the network has ended the connection, the server waits longer, because the editor may
// return.
func (c *calls) end(by serve.Network, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	c.n--
	wait := time.Second
	if _, lost := by.Failed(); lost {
		wait = 30 * time.Second
	}
	time.AfterFunc(wait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.n == 0 {
			c.over()
		}
	})
}
