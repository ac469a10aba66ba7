//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/acp-test/acp-test/ci/must"
)

// bare is the least that a client can be: lines written by hand, and a loop
// over the lines that come.
type bare struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startBare(argv []string) *bare {
	cmd, in, out := piped(argv)
	return &bare{cmd, in, bufio.NewReaderSize(out, 1<<20)}
}

// ask sends a request and gives each line to look until the answer comes,
// which it returns.
func (b *bare) ask(id int, method, params string, look func([]byte)) []byte {
	must.Get(fmt.Fprintf(b.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params))
	head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`, id)
	for {
		line, err := b.out.ReadSlice('\n')
		if err != nil {
			must.Fail("waiting for the answer to %s: %w", method, err)
		}
		if bytes.HasPrefix(line, head) {
			return line
		}
		look(line)
	}
}

func nothing([]byte) {}

// open is everything up to the first prompt. It returns the session's id.
func (b *bare) open() string {
	b.ask(0, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`, nothing)
	line := b.ask(1, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, must.Get(os.Getwd())), nothing)
	var answer struct{ Result struct{ SessionID string } }
	must.Do(json.Unmarshal(line, &answer))
	return answer.Result.SessionID
}

func (b *bare) prompt(session string, look func([]byte)) {
	b.ask(2, "session/prompt",
		fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"Say hello."}]}`, session), look)
}

func (b *bare) close() {
	b.in.Close()
	must.Do(b.cmd.Wait())
}

// turn is one turn from the start of the agent to its end: what a whole command
// cannot be faster than.
func turn(args []string) {
	argv := command(args)
	started := time.Now()
	b := startBare(argv)
	b.prompt(b.open(), nothing)
	b.close()
	fmt.Printf("%.4f\n", time.Since(started).Seconds())
}
