package invariants

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/wire"
)

// stdoutClean judges each line of the agent's standard output.
func stdoutClean(v *version) *rule {
	r := v.ofAgent("STDOUT-CLEAN", "Standard output holds nothing but protocol messages, one to a line.")
	noise := r.Fail("noise", "a line is no message but other text", "STDIO-001", "STDIO-011")
	cut := r.Fail("broken-json", "a line is no complete JSON text", "STDIO-003", "STDIO-001", "STDIO-011")
	encoding := r.Fail("encoding", "a line is not valid UTF-8, or begins with a byte order mark", "STDIO-004")
	batch := r.Fail("batch", "a line is a batch, which version 1 does not have", "STDIO-001", "STDIO-006")
	version := r.Fail("jsonrpc", `a message has no "jsonrpc": "2.0"`, "RPC-001")
	frame := r.Fail("no-message",
		"a JSON object is neither a request nor a notification nor a response", "STDIO-001", "RPC-007")
	empty := r.Lint("empty-line", "a line is empty", "STDIO-003")
	tooLong := r.Inconclusive("too-long", "a line is longer than this tool reads", "STDIO-010")
	return r.Watching(func(w *watch) {
		sound := func(*event) { w.Saw(noise, cut, encoding, version, frame, batch) }
		w.On(sound, agentMessages()...)
		w.On(func(ev *event) {
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
			case ev.body.Kind() == wire.Object && isAnswer(ev.body):
				return // ERR-FORM and NOTIFY-SILENT
			case ev.body.Kind() == wire.Object:
				point = frame
			case text[0] == '{' || text[0] == '"' || text[len(text)-1] == '}':
				point = cut
			}
			if point == cut && ev.conn.signalled > 0 {
				return // a killed agent does not get to the end of its line
			}
			phase := ev.phase()
			f := w.find(point, ev, phase, nil, "A line on standard output %s is no message: %s.", phase, ev.Problem)
			if point == frame && !ev.body.Get("id").Exists() {
				w.Narrow(f, "STDIO-001")
			}
			if f != nil {
				f.Detail = clip(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
			}
		}, agentNoise)
	})
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
func errForm(v *version) *rule {
	r := v.ofAgent("ERR-FORM",
		"A response has a result or an error, and an error has an integer code and a message of one line.")
	either := r.Fail("result-xor-error", "a response has both a result and an error, or neither", "RPC-002")
	members := r.Fail("members", "an error lacks an integer code or a string message", "RPC-003")
	sentence := r.Lint("message", "an error message is not one short line", "RPC-016")
	return r.Watching(func(w *watch) {
		w.On(func(ev *event) {
			if ev.body.Get("jsonrpc").Is("2.0") && isAnswer(ev.body) &&
				ev.body.Get("result").Exists() == ev.body.Get("error").Exists() {
				w.Saw(either)
				w.find(either, ev, string(ev.ID), nil, "A response must have either a result or an error: %s.", ev.Problem)
			}
		}, agentNoise)
		judge := func(ev *event) {
			w.Saw(either)
			if !ev.err.Exists() {
				return
			}
			code, message := ev.err.Get("code"), ev.err.Get("message")
			n, whole := code.Int()
			text, wrong := message.Str(), ""
			switch {
			case ev.err.Kind() != wire.Object:
				wrong = " is no object"
			case !whole || n != int64(int32(n)):
				wrong = " code is " + orNothing(code) + ", and must be a 32-bit integer"
			case message.Kind() != wire.String:
				wrong = " message is " + orNothing(message) + ", and must be a string"
			}
			w.judge(members, wrong != "", ev, ev.Method, nil, "In a response to %s, the error%s.", ev.Method, wrong)
			w.judge(sentence, wrong == "" && (text == "" || len(text) > 200 || strings.ContainsAny(text, "\r\n")), ev, ev.Method,
				nil, "The error message of a response to %s is not one short line.", ev.Method)
		}
		w.On(judge, append(agentAnswers(), agentAnswersNone)...)
	})
}
