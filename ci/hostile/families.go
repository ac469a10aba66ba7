//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// families returns agents that first start processes, in different ways, and then send a long answer in their turn.
// The test kills acp-test at a random moment of the turn.
func families() []mode {
	family := func(name string, begin func(*agent)) mode {
		return mode{name: "family-" + name, at: inTurn, do: func(a *agent) {
			begin(a)
			for i := range 2000 {
				update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` +
					quote(fmt.Sprintf("%d of %s ", i, os.Getenv("HOSTILE_API_KEY"))) + `}}`)
			}
		}}
	}
	return []mode{
		family("children", leave(5, nil, os.Environ(), "sleep")),
		family("daemons", leave(5, daemon(), []string{}, "sleep")),
		family("chain", leave(1, daemon(), []string{}, "chain", "1")),
		family("stops-keeper", func(*agent) {
			start(daemon(), []string{}, "sleep")
			keeper, _ := parents()
			_ = syscall.Kill(keeper, syscall.SIGSTOP)
		}),
	}
}

// editor runs a hostile client. The first word names a family: the client starts the processes of that family. The
// other words are the command of an agent, which the client starts and prompts over and over. If the first word is
// "leaks", the client instead sends all secrets to the agent once.
func editor(words []string) {
	for _, m := range families() {
		if m.name == words[0] {
			m.do(nil)
		}
	}
	c := exec.Command(words[1], words[2:]...)
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if c.Start() != nil {
		return
	}
	if words[0] == "leaks" {
		for _, line := range spilling("/") {
			_, _ = io.WriteString(in, line)
		}
		for _, p := range plants() {
			os.Stdout.WriteString(p.text + "\n")
			os.Stderr.WriteString(p.text + "\n")
		}
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
		return
	}
	lines := bufio.NewReader(out)
	for i := 0; ; i++ {
		frame := `"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Hello."}]}`
		switch i {
		case 0:
			frame = `"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}`
		case 1:
			frame = `"method":"session/new","params":{"cwd":"/","mcpServers":[]}`
		}
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", i, frame)
		if _, err := lines.ReadBytes('\n'); err != nil {
			return
		}
	}
}
