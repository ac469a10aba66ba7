//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The page of a turn of 120 MB is made with less than a minute of processor time, and in
// less than 500 MB.
func TestLargePage(t *testing.T) {
	if !*whole {
		t.Skip("only with -whole: it takes half a minute")
	}
	l := newLab(t)
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "large.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	n := 0
	frame := func(dir, body string) {
		n++
		fmt.Fprintf(w, `{"t":%d,"proc":1,"dir":%q,"frame":{"jsonrpc":"2.0",%s}}`+"\n", n, dir, body)
	}
	frame("out", `"id":0,"method":"initialize","params":{"protocolVersion":1}`)
	frame("in", `"id":0,"result":{"protocolVersion":1}`)
	frame("out", `"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`)
	frame("in", `"id":1,"result":{"sessionId":"s"}`)
	frame("out", `"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}`)
	for i := range 600_000 {
		frame("in", fmt.Sprintf(`"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":`+
			`"agent_message_chunk","content":{"type":"text","text":"word %d of a text that goes on and on "}}}`, i))
	}
	frame("in", `"id":2,"result":{"stopReason":"end_turn"}`)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if size, _ := file.Seek(0, 1); size < 120<<20 {
		t.Fatalf("the file has %d bytes", size)
	}
	c := l.command(dir, "show", "--html", "page.html", "large.jsonl")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchMemory(c.Process.Pid)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	spent := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	most := <-peak >> 20
	t.Logf("%v of processor time, %d MiB", spent.Round(time.Second), most)
	if spent > time.Minute || most > 500*1000*1000>>20 {
		t.Error("that is too much")
	}
}
