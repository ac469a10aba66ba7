//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/acp-test/acp-test/ci/must"
)

// update is one frame of the burst: a piece of streamed text.
const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1",` +
	`"update":{"sessionUpdate":"agent_message_chunk","messageId":"msg-1","content":{"type":"text","text":"word %d of a ` +
	`long answer "}}}}` + "\n"

// agent answers initialize and session/new, and sends a burst of updates in each turn. args are the number of updates
// and, optionally, the updates per second; by default the agent writes as fast as the pipe accepts.
func agent(args []string) {
	n, rate := number(args, 0), 0
	if len(args) > 1 {
		rate = number(args, 1)
	}
	// The updates are created before the turn, so that the measurement shows the client's speed and not this agent's.
	var updates []byte
	for i := range n {
		updates = fmt.Appendf(updates, update, i)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		must.Do(err)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		must.Do(json.Unmarshal(line, &m))
		result := "{}"
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}`
		case "session/new":
			result = `{"sessionId":"sess-1"}`
		case "session/prompt":
			result = `{"stopReason":"end_turn"}`
			send(updates, n, rate)
		}
		if m.ID != nil {
			must.Get(fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result))
		}
	}
}

// send writes n updates. If rate is 0, it writes all at once. Otherwise it writes a few every two milliseconds, rate
// per second on average.
func send(updates []byte, n, rate int) {
	if rate == 0 {
		must.Get(os.Stdout.Write(updates))
		return
	}
	began := time.Now()
	for sent := 0; sent < n; time.Sleep(2 * time.Millisecond) {
		due := min(n, int(time.Since(began).Seconds()*float64(rate))+1)
		end := 0
		for range due - sent {
			end += bytes.IndexByte(updates[end:], '\n') + 1
		}
		must.Get(os.Stdout.Write(updates[:end]))
		sent, updates = due, updates[end:]
	}
}
