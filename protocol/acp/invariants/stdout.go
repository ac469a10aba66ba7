package invariants

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// stdoutClean checks that each line of the agent's standard output is a message.
func stdoutClean(w *watch) {
	sound := w.Seeing("noise", "broken-json", "encoding", "jsonrpc", "no-message", "batch")
	w.On(func(*event) { sound() }, agentMessages()...)
	w.surrogates()
	w.On(func(ev *event) {
		sound()
		point := "noise"
		text := bytes.TrimSpace(ev.Raw)
		switch {
		case ev.Size > 0:
			point = "too-long"
		case len(text) == 0:
			point = "empty-line"
		case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) || !utf8.Valid(ev.Raw):
			point = "encoding"
		case ev.body.Kind() == wire.Array:
			point = "batch"
		case ev.body.Kind() == wire.Object && !ev.body.Get("jsonrpc").Is("2.0"):
			point = "jsonrpc"
		case ev.body.Kind() == wire.Object && isAnswer(ev.body):
			return // ERR-FORM and NOTIFY-SILENT judge it
		case ev.body.Kind() == wire.Object:
			point = "no-message"
		case text[0] == '{' || text[0] == '"' || text[len(text)-1] == '}':
			point = "broken-json"
		}
		if point == "broken-json" && ev.conn.signalled > 0 {
			return // a killed agent cannot finish its line
		}
		phase, what := ev.phase(), "A line on standard output"
		if ev.Stream > 0 {
			what = "What came over the network"
		}
		f := w.find(point, ev, phase, nil, "%s %s is not a message: %s.", what, phase, ev.Problem)
		if point == "no-message" && !ev.body.Get("id").Exists() {
			w.Narrow(f, "STDIO-001")
		}
		if f != nil {
			f.Detail = clip(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
		}
	}, agentNoise)
}

// surrogates reports messages with half of a surrogate pair, unless somebody had sent the agent one.
func (w *watch) surrogates() {
	tainted := false
	w.On(func(ev *event) {
		tainted = tainted || ev.Kind != transcript.ModelRequest &&
			(bytes.Contains(ev.Raw, []byte(`\ud`)) || bytes.Contains(ev.Raw, []byte(`\uD`)))
	}, append(append(editorRequests(), editorAnswers()...), modelEvent, terminalEvent, servedEvent)...)
	w.On(func(ev *event) {
		w.judge("surrogate", !tainted && ev.body.LoneSurrogate(), ev, "", nil, "The message has an escape that is half of "+
			"a surrogate pair, so many clients cannot read it.")
	}, agentMessages()...)
}

// isAnswer reports whether an object looks like a response.
func isAnswer(v wire.Value) bool {
	return !v.Get("method").Exists() && (v.Get("id").Exists() || v.Get("result").Exists() || v.Get("error").Exists())
}

// phase describes when an entry came, as a part of a message, for example "during a turn".
func (ev *event) phase() string {
	c := ev.conn
	switch {
	case c.initDone == 0:
		return "before initialize was answered"
	case c.closedIn > 0:
		return "after the end of input"
	}
	for _, s := range c.sessions {
		if s.atWork() {
			return "during a turn"
		}
	}
	return "between turns"
}

// errForm checks the form of error responses.
func errForm(w *watch) {
	w.On(func(ev *event) {
		if ev.body.Get("jsonrpc").Is("2.0") && isAnswer(ev.body) &&
			ev.body.Get("result").Exists() == ev.body.Get("error").Exists() {
			w.Saw("result-xor-error")
			w.find("result-xor-error", ev, string(ev.ID), nil, "A response must have either a result or an error: %s.",
				ev.Problem)
		}
	}, agentNoise)
	judge := func(ev *event) {
		w.Saw("result-xor-error")
		if !ev.err.Exists() {
			return
		}
		code, message := ev.err.Get("code"), ev.err.Get("message")
		n, whole := code.Int()
		text, wrong := message.Str(), ""
		switch {
		case ev.err.Kind() != wire.Object:
			wrong = " is not an object"
		case !whole || n != int64(int32(n)):
			wrong = " code is " + orNothing(code) + ", and must be a 32-bit integer"
		case message.Kind() != wire.String:
			wrong = " message is " + orNothing(message) + ", and must be a string"
		}
		w.judge("members", wrong != "", ev, ev.Method, nil, "In a response to %s, the error%s.", ev.Method, wrong)
		w.judge("message", wrong == "" && (text == "" || len(text) > 200 || strings.ContainsAny(text, "\r\n")), ev, ev.Method,
			nil, "The error message of a response to %s is not one short line.", ev.Method)
	}
	w.On(judge, append(agentAnswers(), agentAnswersNone)...)
}
