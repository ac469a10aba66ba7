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

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/agui/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// endpointServer runs an AG-UI endpoint that answers each run with a burst of text events. It prints the endpoint's
// address, and serves until standard input ends.
func endpointServer(args []string) {
	n := number(args, 0)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Printf("http://%s/\n", l.Addr())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		l.Close()
	}()
	err := http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", endpoint.EventStream)
		out := bufio.NewWriterSize(w, 64<<10)
		fmt.Fprint(out, "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n"+
			"data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}\n\n")
		for i := range n {
			fmt.Fprintf(out, `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"piece %d of a text "}`+"\n\n", i)
		}
		fmt.Fprint(out, "data: {\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}\n\n"+
			"data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n")
		_ = out.Flush() // ignored: the client may have disconnected
	}))
	if !errors.Is(err, net.ErrClosed) {
		must.Do(err)
	}
}

// webBurst prints the best rate of several rounds for acp-test and for a client in Node.js, as
// "NAME<tab>EVENTS/S<tab>SEEN". SEEN may be lower than the number of events for the Node.js client, because it may
// stop early.
func webBurst(args []string) {
	if len(args) != 3 {
		must.Fail("want three arguments: the number of events, the number of rounds, and a client")
	}
	n, rounds := number(args, 0), number(args, 1)
	server, in, out := piped([]string{must.Get(os.Executable()), "endpoint", args[0]})
	defer server.Wait()
	defer in.Close()
	at := strings.TrimSpace(must.Get(bufio.NewReader(out).ReadString('\n')))
	rates, most := [2]float64{}, [2]int{}
	for range rounds {
		for i, take := range []func([]string, *int) time.Duration{takeStream, takeNode(args[2])} {
			seen := 0
			took := take([]string{at}, &seen)
			if seen != n && i == 0 {
				must.Fail("%d of %d events seen", seen, n)
			}
			if rate := float64(seen) / took.Seconds(); rate > rates[i] {
				rates[i], most[i] = rate, seen
			}
		}
	}
	for i, name := range []string{"acp-test: shapes, rules, transcript on disk", "HttpAgent"} {
		fmt.Printf("%s\t%.0f\t%d\n", name, rates[i], most[i])
	}
}

// takeStream plays one AG-UI run and returns its duration. As in a scenario, it classifies every event, checks its
// shape, applies all rules and writes the transcript to disk.
func takeStream(argv []string, seen *int) time.Duration {
	log, _, done := logged(aguiframe.Classifier{})
	defer done()
	checker := invariants.V1().NewChecker(rules.Config{})
	log.Observe(checker.Observe)
	e := endpoint.At(argv[0])
	must.Do(e.Ready(context.Background(), log, 0, false))
	started := time.Now()
	body := []byte(`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"Go."}],` +
		`"tools":[],"context":[]}`)
	post := log.AppendFrame(0, transcript.Editor, body, 0)
	must.Do(e.Do(endpoint.Post{Ref: post.Seq, Body: body}))
	for {
		entry := e.Append(log, 0, must.Get(e.Receive()))
		switch {
		case entry.Kind == transcript.Ended:
			took := time.Since(started)
			must.Do(errors.Join(e.Close(), log.Close()))
			judged(checker.Finish(rules.End{}))
			return took
		case entry.Method == "TEXT_MESSAGE_CONTENT":
			*seen++
		}
	}
}
