// Command fakellm-load measures a fake model server from outside. It sends one request over and over on a number of
// connections, and prints the measurements of the responses in one line. With -serve it runs the server instead.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

func main() {
	serve := flag.String("serve", "", "serve this script on -addr instead of sending requests")
	evidence := flag.Bool("evidence", false, "with -serve: keep a transcript")
	addr := flag.String("addr", "127.0.0.1:4010", "host:port of the server")
	path := flag.String("path", "/v1/chat/completions", "path to post to")
	body := flag.String("body", "", "body to post")
	conns := flag.Int("c", 64, "connections")
	span := flag.Duration("d", 5*time.Second, "how long")
	pid := flag.Int("pid", 0, "process whose memory is read")
	flag.Parse()
	must.Main("fakellm-load", 1, func() {
		if *serve != "" {
			server(*serve, *addr, *evidence)
		} else {
			load(*addr, *path, *body, *conns, *span, *pid)
		}
	})
}

func server(file, addr string, evidence bool) {
	c := fakellm.Config{Script: must.Get(fakellm.ParseScript(file, must.Get(os.ReadFile(file)), nil)), Listen: addr}
	if evidence {
		c.Transcript = must.Get(transcript.New(transcript.Header{}, transcript.Options{}))
		defer c.Transcript.Close()
	}
	defer must.Get(fakellm.Start(c)).Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	<-stop
}

// tally holds the measurements of one connection.
type tally struct {
	requests, events int
	first            []time.Duration
	err              error
}

func load(addr, path, body string, conns int, span time.Duration, pid int) {
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: "+
		"Bearer sk-test\r\nX-Api-Key: sk-test\r\nAnthropic-Version: 2023-06-01\r\nContent-Length: %d\r\n\r\n%s", path, addr,
		len(body), body)
	// The first answers are not measured, because they warm the server up.
	run(addr, request, conns, span/5)
	before := cpu(pid)
	began := time.Now()
	tallies := run(addr, request, conns, span)
	took := time.Since(began).Seconds()
	spent := cpu(pid) - before
	var sum tally
	for _, t := range tallies {
		sum.requests += t.requests
		sum.events += t.events
		sum.first = append(sum.first, t.first...)
	}
	slices.Sort(sum.first)
	at := func(q float64) float64 {
		return float64(sum.first[int(q*float64(len(sum.first)-1))].Microseconds()) / 1000
	}
	fmt.Printf("%.0f %.0f %.0f %.2f %.2f %s\n", float64(sum.requests)/took, float64(sum.events)/took,
		float64(spent.Microseconds())/float64(sum.requests), at(0.5), at(0.99), memory(pid))
}

func run(addr string, request []byte, conns int, span time.Duration) []tally {
	tallies := make([]tally, conns)
	end := time.Now().Add(span)
	var all sync.WaitGroup
	for i := range tallies {
		all.Go(func() { tallies[i].err = must.Try(func() { keepBusy(addr, request, end, &tallies[i]) }) })
	}
	all.Wait()
	for _, t := range tallies {
		must.Do(t.err)
		if t.requests == 0 {
			must.Fail("a connection got no response before the timeout")
		}
	}
	return tallies
}

func keepBusy(addr string, request []byte, end time.Time, t *tally) {
	c := must.Get(net.Dial("tcp", addr))
	defer c.Close()
	in, buf := bufio.NewReaderSize(c, 64<<10), make([]byte, 32<<10)
	for time.Now().Before(end) {
		sent := time.Now()
		must.Get(c.Write(request))
		must.Get(in.Peek(1))
		t.first = append(t.first, time.Since(sent))
		t.events += response(in, buf)
		t.requests++
	}
}

// response reads one response through the buffer buf and counts its events.
func response(in *bufio.Reader, buf []byte) (events int) {
	answer := must.Get(http.ReadResponse(in, nil))
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		must.Fail("the answer is %q", answer.Status)
	}
	// At most the last byte of a piece stays in the buffer: it may be the first half of a blank line that the next
	// piece completes.
	for kept := 0; ; {
		n, err := answer.Body.Read(buf[kept:])
		piece := buf[:kept+n]
		events += bytes.Count(piece, []byte("\n\n"))
		kept = 0
		if bytes.HasSuffix(piece, []byte("\n")) && !bytes.HasSuffix(piece, []byte("\n\n")) {
			buf[0], kept = '\n', 1
		}
		if err == io.EOF {
			return events
		}
		must.Do(err)
	}
}

// cpu returns the processor time that a process has used. Unlike elapsed time, it compares servers fairly even if
// other work, such as the load generator, runs on the same machine.
func cpu(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The process name, in parentheses, may contain spaces. The fields are therefore counted from the closing
	// parenthesis.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory returns the current and the largest resident set of a process, in MiB, or "- -" if they cannot be read.
func memory(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "- -"
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); len(w) > 1 {
			out[w[0]] = w[1]
		}
	}
	mib := func(kb string) string {
		n, err := strconv.Atoi(kb)
		if err != nil {
			return "-"
		}
		return strconv.Itoa(n / 1024)
	}
	return mib(out["VmRSS:"]) + " " + mib(out["VmHWM:"])
}
