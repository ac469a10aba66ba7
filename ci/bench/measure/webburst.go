//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/agui/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// endpointServer is an endpoint of AG-UI that answers each run with a burst of pieces of text. It
// says where it listens, and serves until its input ends.
func endpointServer(args []string) error {
	given, err := numbers(args, 1)
	if err != nil {
		return err
	}
	n := given[0]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", l.Addr())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		l.Close()
	}()
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", endpoint.EventStream)
		out := bufio.NewWriterSize(w, 64<<10)
		fmt.Fprint(out, "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n"+
			"data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}\n\n")
		for i := range n {
			fmt.Fprintf(out, `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"piece %d of a text "}`+"\n\n", i)
		}
		fmt.Fprint(out, "data: {\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}\n\n"+
			"data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n")
		_ = out.Flush() // who is gone is gone
	}))
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// webBurst prints for us and for a client in Node.js the best rate of some rounds, as
// "NAME<tab>EVENTS/S<tab>SEEN": the client may stop before all have come.
func webBurst(args []string) error {
	if len(args) != 3 {
		return errors.New("the number of events, of rounds, and a client are needed")
	}
	given, err := numbers(args, 2)
	if err != nil {
		return err
	}
	n, rounds := given[0], given[1]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server, in, out, err := piped([]string{self, "endpoint", args[0]})
	if err != nil {
		return err
	}
	defer server.Wait()
	defer in.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	at := strings.TrimSpace(line)
	rates, most := [2]float64{}, [2]int{}
	for range rounds {
		for i, take := range []func() (int, time.Duration, error){
			func() (int, time.Duration, error) { return takeStream(at) },
			func() (int, time.Duration, error) { return takeNode(args[2], []string{at}) },
		} {
			seen, took, err := take()
			if err == nil && seen != n && i == 0 {
				err = fmt.Errorf("%d of %d events seen", seen, n)
			}
			if err != nil {
				return err
			}
			if rate := float64(seen) / took.Seconds(); rate > rates[i] {
				rates[i], most[i] = rate, seen
			}
		}
	}
	for i, name := range []string{"acp-test: shapes, rules, transcript on disk", "HttpAgent"} {
		fmt.Printf("%s\t%.0f\t%d\n", name, rates[i], most[i])
	}
	return nil
}

// takeStream takes a run as a scenario does: every event classified, its shape checked, all
// rules on, the transcript written to disk.
func takeStream(at string) (seen int, took time.Duration, err error) {
	log, _, done, err := logged(aguiframe.Classifier{})
	if err != nil {
		return 0, 0, err
	}
	defer done()
	checker := invariants.V1().NewChecker(rules.Config{})
	log.Observe(checker.Observe)
	e := endpoint.At(at)
	if err := e.Ready(context.Background(), log, 0, false); err != nil {
		return 0, 0, err
	}
	started := time.Now()
	body := []byte(`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"Go."}],` +
		`"tools":[],"context":[]}`)
	post := log.AppendFrame(0, transcript.Editor, body, 0)
	if err := e.Do(endpoint.Post{Ref: post.Seq, Body: body}); err != nil {
		return 0, 0, err
	}
	for {
		line, err := e.Receive()
		if err != nil {
			return seen, 0, err
		}
		entry := e.Append(log, 0, line)
		switch {
		case entry.Kind == transcript.Ended:
			took = time.Since(started)
			return seen, took, errors.Join(e.Close(), log.Close(), broken(checker.Finish(rules.End{})))
		case entry.Method == "TEXT_MESSAGE_CONTENT":
			seen++
		}
	}
}
