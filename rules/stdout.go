package rules

import (
	"bytes"
	"unicode/utf8"

	"github.com/acp-test/acp-test/wire"
)

// stdoutClean judges each line of the agent's standard output.
func stdoutClean() Rule {
	const (
		noise = iota
		cut
		encoding
		batch
		version
		frame
		empty
		tooLong
	)
	return Rule{
		ID:       "STDOUT-CLEAN",
		Sentence: "Standard output holds nothing but protocol messages, one to a line.",
		Points: []Point{
			noise:    {"noise", Fail, []string{"STDIO-001", "STDIO-011"}, "a line is no message but other text"},
			cut:      {"broken-json", Fail, []string{"STDIO-003", "STDIO-001", "STDIO-011"}, "a line is no complete JSON text"},
			encoding: {"encoding", Fail, []string{"STDIO-004"}, "a line is not valid UTF-8, or begins with a byte order mark"},
			batch:    {"batch", Fail, []string{"STDIO-001", "STDIO-006"}, "a line is a batch, which version 1 does not have"},
			version:  {"jsonrpc", Fail, []string{"RPC-001"}, `a message has no "jsonrpc": "2.0"`},
			frame:    {"no-message", Fail, []string{"STDIO-001", "RPC-007"}, "a JSON object is neither a request nor a notification nor a response"},
			empty:    {"empty-line", Lint, []string{"STDIO-003"}, "a line is empty"},
			tooLong:  {"too-long", Inconclusive, []string{"STDIO-010"}, "a line is longer than this tool reads"},
		},
		start: func(w *watch) {
			sound := func(*event) {
				for _, p := range []int{noise, cut, encoding, version, frame, batch} {
					w.saw(p)
				}
			}
			w.on(sound, agentMessages()...)
			w.on(func(ev *event) {
				sound(ev)
				point := noise
				text := bytes.TrimSpace(ev.Raw)
				switch {
				case ev.Size > 0:
					point = tooLong
				case len(text) == 0:
					point = empty
				case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) || !utf8.Valid(ev.Raw):
					point = encoding
				case ev.body.Kind() == wire.Array:
					point = batch
				case ev.body.Kind() == wire.Object && !ev.body.Get("jsonrpc").Is("2.0"):
					point = version
				case ev.body.Kind() == wire.Object:
					if isAnswer(ev.body) {
						return // ERR-FORM and NOTIFY-SILENT
					}
					point = frame
				case text[0] == '{' || text[0] == '"' || text[len(text)-1] == '}':
					point = cut
				}
				phase := ev.phase()
				f := w.find(point, ev, phase, nil, "A line on standard output %s is no message: %s.", phase, ev.Problem)
				if point == frame && !ev.body.Get("id").Exists() {
					w.only(f, "STDIO-001")
				}
				if f != nil {
					f.Detail = clip(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
				}
			}, agentNoise)
		},
	}
}

// isAnswer reports whether an object is meant as a response.
func isAnswer(v wire.Value) bool {
	return !v.Get("method").Exists() && (v.Get("id").Exists() || v.Get("result").Exists() || v.Get("error").Exists())
}

// phase says in which part of the connection an entry came.
func (ev *event) phase() string {
	c := ev.conn
	switch {
	case c.initDone == 0:
		return "before initialize was answered"
	case c.closedIn > 0:
		return "after the end of input"
	}
	for _, s := range c.sessions {
		if len(s.open) > 0 {
			return "during a turn"
		}
	}
	return "between turns"
}

// errForm judges the form of responses that fail.
func errForm() Rule {
	const (
		either = iota
		members
		sentence
	)
	return Rule{
		ID:       "ERR-FORM",
		Sentence: "A response has a result or an error, and an error has an integer code and a message of one line.",
		Points: []Point{
			either:   {"result-xor-error", Fail, []string{"RPC-002"}, "a response has both a result and an error, or neither"},
			members:  {"members", Fail, []string{"RPC-003"}, "an error lacks an integer code or a string message"},
			sentence: {"message", Lint, []string{"RPC-016"}, "an error message is not one short line"},
		},
		start: func(w *watch) {
			w.on(func(ev *event) {
				if ev.body.Get("jsonrpc").Is("2.0") && isAnswer(ev.body) && ev.body.Get("result").Exists() == ev.body.Get("error").Exists() {
					w.saw(either)
					w.find(either, ev, string(ev.ID), nil, "A response must have either a result or an error: %s.", ev.Problem)
				}
			}, agentNoise)
			judge := func(ev *event) {
				w.saw(either)
				if !ev.err.Exists() {
					return
				}
				w.saw(members)
				w.saw(sentence)
				code, message := ev.err.Get("code"), ev.err.Get("message")
				n, whole := code.Int()
				switch text := message.Str(); {
				case ev.err.Kind() != wire.Object:
					w.find(members, ev, ev.Method, nil, "The error of a response to %s is no object.", ev.Method)
				case !whole || n != int64(int32(n)):
					w.find(members, ev, ev.Method, nil, "The error code of a response to %s is %s, and must be a 32-bit integer.", ev.Method, orNothing(code))
				case message.Kind() != wire.String:
					w.find(members, ev, ev.Method, nil, "The error message of a response to %s is %s, and must be a string.", ev.Method, orNothing(message))
				case text == "" || len(text) > 200 || bytes.ContainsAny([]byte(text), "\r\n"):
					w.find(sentence, ev, ev.Method, nil, "The error message of a response to %s is not one short line.", ev.Method)
				}
			}
			w.on(judge, agentAnswers()...)
			w.on(judge, agentAnswersNone)
		},
	}
}
