package scenarios

import (
	"fmt"
	"net"
	"sync"
)

// outlet is a local address that several servers use, one after the other. While no server uses it, it refuses
// connections.
type outlet struct {
	listener net.Listener

	mu   sync.Mutex
	now  *lent
	open []net.Conn // connections to the current server
}

func newOutlet() (*outlet, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening an address for shared processes: %w", err)
	}
	o := &outlet{listener: l}
	go o.accept()
	return o, nil
}

func (o *outlet) url() string { return "http://" + o.listener.Addr().String() }

func (o *outlet) accept() {
	for {
		c, err := o.listener.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		to := o.now
		o.open = append(o.open, c)
		o.mu.Unlock()
		if to == nil || !to.offer(c) {
			c.Close()
		}
	}
}

func (o *outlet) close() { o.listener.Close() }

// lend returns a listener for the next server. The listener gets all new connections until it is closed. lend closes
// the connections to the previous server: agents keep connections open, and that server may still be shutting down.
func (o *outlet) lend() net.Listener {
	l := &lent{Listener: o.listener, conns: make(chan net.Conn), over: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.open {
		c.Close()
	}
	o.now, o.open = l, nil
	return l
}

// lent is the listener through which one server uses an outlet.
type lent struct {
	net.Listener
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (l *lent) offer(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.over:
		return false
	}
}

// Accept waits for the next connection to this server.
func (l *lent) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close makes Accept return. The outlet's address stays open for the next server.
func (l *lent) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}
