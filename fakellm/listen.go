package fakellm

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// headerTimeout is how long a client may take over the headers of a request.
const headerTimeout = 10 * time.Second

// listening is an HTTP server with an address of its own.
type listening struct {
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup
}

// listen serves a handler on an address until shut.
func (s *listening) listen(address string, h http.Handler) (err error) {
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return err
	}
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	s.Serve(s.listener)
	return nil
}

// Serve takes connections from one more listener, until Close, which closes it.
func (s *listening) Serve(l net.Listener) {
	s.serving.Go(func() { _ = s.http.Serve(l) }) // ends with ErrServerClosed in shut
}

// shut closes the server and its connections. what is the name of the server in an error.
func (s *listening) shut(what string) error {
	err := s.http.Close()
	s.serving.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the %s: %w", what, err)
	}
	return nil
}

// URL is the base of all paths, without a slash at its end.
func (s *listening) URL() string { return "http://" + s.listener.Addr().String() }

// Port is the TCP port.
func (s *listening) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }
