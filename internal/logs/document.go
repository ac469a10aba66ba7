package logs

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// document reads the messages in a file that is a single JSON value. It reports whether it found any.
func (r *reader) document(v wire.Value) bool {
	switch {
	case v.Path("log.entries").Kind() == wire.Array:
		r.form = "a HAR"
		return r.har(v.Path("log.entries"))
	case v.Get("events").Kind() == wire.Array && v.Get("constants").Kind() == wire.Object:
		r.form = "a NetLog"
		return r.netLog(v.Get("events"))
	}
	if r.form = "an export"; v.Kind() == wire.Array {
		r.form = "a list"
	}
	p := place{line: 1}
	if r.Message(v) {
		r.form = "lines"
	}
	return r.value(v, p)
}

// har reads the messages in a HAR file: in the bodies of requests and responses, and in the messages of web sockets.
func (r *reader) har(entries wire.Value) (found bool) {
	for e := range entries.Items() {
		p := surroundings(e, place{line: 1})
		take := func(text string, side Side) {
			p.claim = claim{named, side}
			found = r.body(text, p) || found
		}
		take(e.Path("request.postData.text").Str(), Editor)
		content := e.Path("response.content")
		text := content.Get("text").Str()
		if content.Get("encoding").Is("base64") {
			if b, err := base64.StdEncoding.DecodeString(text); err == nil {
				text = string(b)
			}
		}
		take(text, Agent)
		for m := range e.Get("_webSocketMessages").Items() {
			p = surroundings(m, p)
			side := Agent
			if m.Get("type").Is("send") {
				side = Editor
			}
			take(m.Get("data").Str(), side)
		}
	}
	return found
}

// netLog reads the messages in the bytes that Chrome logged for each connection.
func (r *reader) netLog(events wire.Value) (found bool) {
	type key struct {
		source string
		sent   bool
	}
	bodies := map[key]*strings.Builder{}
	var order []key
	for e := range events.Items() {
		params := e.Get("params")
		data, err := base64.StdEncoding.DecodeString(params.Get("bytes").Str())
		if hexed := params.Get("hex_encoded_bytes").Str(); hexed != "" {
			data, err = hex.DecodeString(hexed)
		}
		if err != nil || len(data) == 0 {
			continue
		}
		k := key{e.Path("source.id").Text(), strings.Contains(e.Get("type").Text(), "SENT")}
		if bodies[k] == nil {
			bodies[k] = &strings.Builder{}
			order = append(order, k)
		}
		bodies[k].Write(data)
	}
	for _, k := range order {
		p := place{line: 1, claim: claim{named, Agent}}
		if k.sent {
			p.claim.side = Editor
		}
		found = r.body(bodies[k].String(), p) || found
	}
	return found
}

// body reads the messages in the body of a request or a response. It reports whether it found any.
func (r *reader) body(text string, p place) bool {
	n := len(r.log.Messages)
	if v, err := wire.Parse([]byte(text)); err == nil {
		return r.value(v, p)
	}
	r.lines(text, p)
	for i := n; i < len(r.log.Messages); i++ {
		r.log.Messages[i].Line = p.line
	}
	return len(r.log.Messages) > n
}
