package fakellm_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// BenchmarkServe measures the server without a network: one request that is
// answered in 200 events.
func BenchmarkServe(b *testing.B) {
	script, err := fakellm.ParseScript("llm.yaml",
		[]byte("replies:\n  - - text: "+strings.Repeat("abcd", 200)+"\n      chunks: 200\n"), nil)
	if err != nil {
		b.Fatal(err)
	}
	s, err := fakellm.Start(fakellm.Config{Script: script})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, e := range endpoints {
		for _, stream := range []bool{true, false} {
			name := e.name + "/whole"
			if stream {
				name = e.name + "/stream"
			}
			b.Run(name, func(b *testing.B) {
				body := e.body(stream, "x")
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest(http.MethodPost, e.url("", stream), strings.NewReader(body))
					s.ServeHTTP(discard{http.Header{}}, r)
				}
			})
		}
	}
}

// BenchmarkEvidence is BenchmarkServe with a transcript.
func BenchmarkEvidence(b *testing.B) {
	script, err := fakellm.ParseScript("llm.yaml",
		[]byte("replies:\n  - - text: "+strings.Repeat("abcd", 200)+"\n      chunks: 200\n"), nil)
	if err != nil {
		b.Fatal(err)
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	s, err := fakellm.Start(fakellm.Config{Script: script, Transcript: log})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := endpoints[0].body(true, "x")
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, endpoints[0].url("", true), strings.NewReader(body))
		s.ServeHTTP(discard{http.Header{}}, r)
	}
}

// BenchmarkHangUp measures how long after a client hangs up the entry that says
// so stands in the transcript.
func BenchmarkHangUp(b *testing.B) {
	script, err := fakellm.ParseScript("llm.yaml", []byte("replies:\n  - - text: one\n    - gate: mid\n"), nil)
	if err != nil {
		b.Fatal(err)
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	gate, aborted := make(chan struct{}, 1), make(chan struct{}, 1)
	log.Observe(func(e transcript.Entry) {
		switch e.Kind {
		case transcript.Gate:
			gate <- struct{}{}
		case transcript.ModelAborted:
			aborted <- struct{}{}
		}
	})
	s, err := fakellm.Start(fakellm.Config{Script: script, Transcript: log})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := endpoints[0].body(true, "x")
	var sum time.Duration
	for b.Loop() {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body)
		<-gate
		began := time.Now()
		c.Close()
		<-aborted
		sum += time.Since(began)
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs/hang-up")
}

// discard is a client that reads at once.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d discard) WriteHeader(int)             {}
