//go:build linux

package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

func ids() []mode {
	request := func(id string) func(*agent) {
		return func(*agent) { say(`{"jsonrpc":"2.0","id":%s,"method":"_unknown","params":{}}`, id) }
	}
	answer := func(id string) func(*agent) {
		return func(*agent) { say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id) }
	}
	all := slices.Concat(
		at([]stage{inTurn}, "id-of-5000-digits", request(strings.Repeat("9", 5000))),
		at([]stage{inTurn}, "id-float", request("1.5")),
		at([]stage{inTurn}, "id-1e400", request("1e400")),
		at([]stage{inTurn}, "id-null", request("null")),
		at([]stage{inTurn}, "id-object", request(`{"a":1}`)),
		at([]stage{inTurn}, "id-array", request("[1]")),
		at([]stage{inTurn}, "id-of-1-MiB", request(quote(strings.Repeat("i", 1<<20)))),
		at([]stage{inTurn}, "answer-to-nothing", answer("4711")),
		at([]stage{inTurn}, "answer-of-5000-digits", answer(strings.Repeat("9", 5000))),
		at([]stage{inTurn}, "answer-null", answer("null")),
		at([]stage{inTurn}, "result-and-error", func(a *agent) {
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"},"error":{"code":1,"message":"x"}}`, a.id)
		}),
		at([]stage{inTurn}, "answered-twice", func(a *agent) { a.answer(inTurn, `{"stopReason":"end_turn"}`) }),
		at([]stage{inTurn}, "answered-100000-times", func(a *agent) {
			for range 100_000 {
				a.answer(inTurn, `{"stopReason":"end_turn"}`)
			}
		}),
		at([]stage{inTurn}, "error-of-10-MiB", func(a *agent) {
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, a.id, strings.Repeat("e", 10<<20))
			forever()
		}),
	)
	for _, method := range []string{"_unknown", "fs/read_text_file", "session/request_permission",
		"terminal/wait_for_exit"} {
		all = append(all, at([]stage{inTurn}, "one-id-100-times-"+strings.ReplaceAll(method, "/", "-"), func(*agent) {
			for range 100 {
				say(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"sessionId":"s","path":"/none","terminalId":"none",`+
					`"toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}}`, method)
			}
		})...)
	}
	return all
}

// values returns agents that answer requests with invalid values.
func values() []mode {
	result := func(s stage, name, result string) mode {
		return mode{name: string(s) + "-" + name, at: s, do: func(a *agent) { a.answers[s] = result }}
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	long := strings.Repeat("1", 100_000)
	return []mode{
		result(atInitialize, "version-huge", `{"protocolVersion":`+long+`}`),
		result(atInitialize, "version-1e999", `{"protocolVersion":1e999}`),
		result(atInitialize, "version-text", `{"protocolVersion":"one"}`),
		result(atInitialize, "deep", `{"protocolVersion":1,"_meta":{"x":`+deep+`}}`),
		result(atInitialize, "null", `null`),
		result(atInitialize, "array", `[]`),
		result(atNew, "session-empty", `{"sessionId":""}`),
		result(atNew, "session-number", `{"sessionId":7}`),
		result(atNew, "session-path", `{"sessionId":"../../../../etc/passwd"}`),
		result(atNew, "session-nul", `{"sessionId":"a\u0000b"}`),
		result(atNew, "session-1-MiB", `{"sessionId":`+quote(strings.Repeat("s", 1<<20))+`}`),
		result(atNew, "session-surrogate", `{"sessionId":"\ud800"}`),
		result(inTurn, "stop-reason-number", `{"stopReason":`+long+`}`),
		result(inTurn, "stop-reason-deep", `{"stopReason":`+deep+`}`),
		result(inTurn, "stop-reason-1-MiB", `{"stopReason":`+quote(strings.Repeat("r", 1<<20))+`}`),
		{name: "turn-text-100-MiB", at: inTurn, timeout: 20 * time.Second, do: func(*agent) {
			text := strings.Repeat("t", 100<<20)
			os.Stdout.WriteString(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + "\"}}}}\n")
		}},
		{name: "turn-never", at: inTurn, do: func(*agent) { forever() }},
		{name: "start-never", at: atStart, do: func(*agent) { forever() }},
		{name: "end-never", at: atEnd, do: func(*agent) { forever() }},
		{name: "turn-exit-0", at: inTurn, do: func(*agent) { os.Exit(0) }},
		{name: "turn-exit-77", at: inTurn, do: func(*agent) { os.Exit(77) }},
		{name: "turn-half-a-line", at: inTurn, do: func(*agent) {
			os.Stdout.WriteString(`{"jsonrpc":"2.0","id`)
			os.Exit(1)
		}},
		{name: "turn-stdout-closed", at: inTurn, do: func(*agent) { os.Stdout.Close(); forever() }},
		{name: "start-stdin-closed", at: atStart, do: func(*agent) { os.Stdin.Close(); syscall.Close(0); forever() }},
	}
}
