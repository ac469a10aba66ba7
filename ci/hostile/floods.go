//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// pour writes the same bytes again and again, until the reader closes the stream. Then the process exits with status
// 1.
func pour(to io.Writer, what string) {
	block := []byte(strings.Repeat(what, 1+(64<<10)/len(what)))
	for {
		if _, err := to.Write(block); err != nil {
			os.Exit(1)
		}
	}
}

func floods() []mode {
	stream := func(what string) func(*agent) { return func(*agent) { pour(os.Stdout, what) } }
	endless := func(head, what string) func(*agent) {
		return func(*agent) { os.Stdout.WriteString(head); pour(os.Stdout, what) }
	}
	chunk := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":` +
		`"agent_message_chunk","content":{"type":"text","text":"word "}}}}` + "\n"
	all := slices.Concat(
		at(every, "blank-lines", stream("\n")),
		at(most, "garbage", stream("this is not a message\n")),
		at(every, "endless-line", stream("x")),
		at(ends, "endless-string", endless(`{"jsonrpc":"2.0","method":"`, "abcdefgh")),
		at(ends, "endless-array", endless(`[`, "1,")),
		at(ends, "endless-depth", endless(``, "[")),
		at(ends, "values", stream("1\nnull\n{}\n[]\n")),
		at(most, "updates", stream(chunk)),
		at(ends, "unknown-notifications", stream(`{"jsonrpc":"2.0","method":"_x/y"}`+"\n")),
		at(ends, "answers", stream(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")),
		at(ends, "nul", stream("\x00")),
		at(ends, "nul-lines", stream("\x00\x00\n")),
		at(ends, "invalid-utf8", stream("\xff\xfe\n")),
		at(ends, "carriage-returns", stream("\r")),
		at(ends, "stderr-lines", func(*agent) { pour(os.Stderr, "an error happened\n") }),
		at(ends, "stderr-endless-line", func(*agent) { pour(os.Stderr, "x") }),
		at(ends, "both", func(*agent) { go pour(os.Stderr, "x"); pour(os.Stdout, "y") }),
		at(ends, "large-lines", stream(strings.Repeat("z", 1<<20)+"\n")),
		at(ends, "batches", stream("["+strings.Repeat(`{"jsonrpc":"2.0","method":"_x"},`, 99)+"{}]\n")),
	)
	requests := func(method, params string) func(*agent) {
		return func(a *agent) {
			go io.Copy(io.Discard, a.in)
			for n := 0; ; n++ {
				_, err := fmt.Printf(`{"jsonrpc":"2.0","id":"r%d","method":%q,"params":%s}`+"\n", n, method, params)
				if err != nil {
					os.Exit(1)
				}
			}
		}
	}
	deaf := func(a *agent) { // sends requests and never reads the responses
		for n := 0; ; n++ {
			say(`{"jsonrpc":"2.0","id":"r%d","method":"_unknown","params":{}}`, n)
		}
	}
	return slices.Concat(all,
		at([]stage{atInitialize, inTurn, afterTurn}, "requests", requests("_unknown", "{}")),
		at([]stage{inTurn}, "permissions", requests("session/request_permission",
			`{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"}]}`)),
		at([]stage{inTurn}, "reads", requests("fs/read_text_file", `{"sessionId":"s","path":"/etc/passwd"}`)),
		at([]stage{inTurn}, "terminals", requests("terminal/create", `{"sessionId":"s","command":"true"}`)),
		at([]stage{inTurn}, "deaf", deaf),
		at([]stage{inTurn}, "tool-calls", func(*agent) {
			for n := 0; ; n++ {
				update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d","title":"x","status":"pending"}`, n))
			}
		}),
		at([]stage{inTurn}, "sessions", func(*agent) {
			for n := 0; ; n++ {
				say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":{"sessionUpdate":`+
					`"agent_message_chunk","content":{"type":"text","text":"x"}}}}`, n)
			}
		}),
		at([]stage{inTurn}, "findings", func(*agent) { // a million different findings
			for n := range 1_000_000 {
				update(fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":"c%d","status":"bad%d"}`, n, n))
			}
		}),
		at([]stage{inTurn}, "keys", func(*agent) {
			var b bytes.Buffer
			for n := range 1_000_000 {
				fmt.Fprintf(&b, `"k%d":%d,`, n, n)
			}
			say(`{"jsonrpc":"2.0","method":"_x","params":{%s"z":1}}`, b.String())
		}),
	)
}
