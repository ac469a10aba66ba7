package editors

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// served is an endpoint for one client.
type served struct {
	url   string
	close func() error
}

// listen serves the endpoint of a scenario, whose transcript goes to a file.
func (b *Bench) listen(s *scenarios.Scenario, file string) (*served, error) {
	log, err := transcript.New(transcript.Header{Tool: b.Tool, Scenario: s.ID, Protocol: b.Judge.Protocol.Version()},
		transcript.Options{Classifier: b.Judge.Protocol, Path: file, Through: true, Memory: 16 << 20})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	web := b.Front(&s.Agent.Script, log)
	server := &http.Server{Handler: loopback.Guard(web)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(l) // it is closed
	}()
	end := sync.OnceValue(func() error {
		err := server.Close()
		<-over
		web.Wait()
		if web.Posts() == 0 { // as if it had not been started
			return errors.Join(err, log.Close(), os.Remove(file))
		}
		return errors.Join(err, log.Close())
	})
	return &served{url: "http://" + l.Addr().String() + "/", close: end}, nil
}

// Close ends the endpoint and breaks open connections off.
func (s *served) Close() error { return s.close() }
