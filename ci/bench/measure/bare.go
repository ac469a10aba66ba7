//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// bare is the least that a client can be: lines written by hand, and a loop
// over the lines that come.
type bare struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startBare(argv []string) (*bare, error) {
	cmd, in, out, err := piped(argv)
	return &bare{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, err
}

// ask sends a request and gives each line to look until the answer comes,
// which it returns.
func (b *bare) ask(id int, method, params string, look func([]byte) error) ([]byte, error) {
	if _, err := fmt.Fprintf(b.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method,
		params); err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`, id)
	for {
		line, err := b.out.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("waiting for the answer to %s: %w", method, err)
		}
		if len(line) > len(head) && string(line[:len(head)]) == string(head) {
			return line, nil
		}
		if err := look(line); err != nil {
			return nil, err
		}
	}
}

func nothing([]byte) error { return nil }

// open is everything up to the first prompt. It returns the session's id.
func (b *bare) open() (string, error) {
	if _, err := b.ask(0, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`, nothing); err != nil {
		return "", err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	line, err := b.ask(1, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd), nothing)
	if err != nil {
		return "", err
	}
	var answer struct {
		Result struct {
			SessionID string `json:"sessionId"`
		}
	}
	err = json.Unmarshal(line, &answer)
	return answer.Result.SessionID, err
}

func (b *bare) prompt(session string, look func([]byte) error) error {
	_, err := b.ask(2, "session/prompt",
		fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"Say hello."}]}`, session), look)
	return err
}

func (b *bare) close() error {
	b.in.Close()
	return b.cmd.Wait()
}

// turn is one turn from the start of the agent to its end: what a whole command
// cannot be faster than.
func turn(args []string) error {
	argv, err := command(args)
	if err != nil {
		return err
	}
	started := time.Now()
	b, err := startBare(argv)
	if err != nil {
		return err
	}
	session, err := b.open()
	if err != nil {
		return err
	}
	if err := b.prompt(session, nothing); err != nil {
		return err
	}
	if err := b.close(); err != nil {
		return err
	}
	fmt.Printf("%.4f\n", time.Since(started).Seconds())
	return nil
}
