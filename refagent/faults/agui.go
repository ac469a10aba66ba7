package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/webagent"
)

type webHooks = webagent.Hooks

// inWeb returns the faults of the AG-UI agent that are implemented in code, because they do more than change events.
func inWeb() map[string]func() webHooks {
	fixed := map[string]webHooks{
		"approval-ignored":    {Answer: func(_, answered bool) (bool, bool) { return false, answered }},
		"rejection-ignored":   {Answer: func(_, answered bool) (bool, bool) { return true, answered }},
		"omission-as-consent": {Answer: func(approved, answered bool) (bool, bool) { return approved || !answered, true }},
		"never-asks":          {Ask: func(string, bool) bool { return false }},
		"text-lost": {Piece: func(n int, p refagent.Piece) []refagent.Piece {
			if n == 2 && p.Text != "" {
				return nil
			}
			return []refagent.Piece{p}
		}},
		"args-lost": {Piece: func(_ int, p refagent.Piece) []refagent.Piece {
			if p.Call && p.ID == "" {
				p.Arguments = ""
			}
			return []refagent.Piece{p}
		}},
		"result-changed": {Result: func(string, string) string { return "ok" }},
		"forgets-tool-answers": asked(func(list messages) messages {
			for i := range list {
				if list[i].Role == "tool" {
					list[i].Text = "(no answer)"
				}
			}
			return list
		}),
		"history-forgotten": asked(func(list messages) messages { return sinceLastUser("", list) }),
		"context-forgotten": asked(func(list messages) messages {
			return slices.DeleteFunc(list, func(m refagent.ModelMessage) bool { return m.Role == "system" })
		}),
		"calls-doubled-in-history": asked(func(list messages) (out messages) {
			for _, m := range list {
				if out = append(out, m); len(m.Calls) > 0 {
					out = append(out, m)
				}
			}
			return out
		}),

		"crlf":              {Frame: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }},
		"content-type-json": {Head: func(h http.Header) { h.Set("Content-Type", "application/json") }},
		"content-type-html": {Head: func(h http.Header) { h.Set("Content-Type", "text/html") }},
		"body-left-open":    {End: func(p *webagent.Port) { <-p.Gone() }},
		"accepts-anything": understood(func(in *webagent.Input, err error) (*webagent.Input, error) {
			if err != nil {
				in = &webagent.Input{ThreadID: "thread", RunID: "run", State: map[string]any{}, Notes: map[string]any{}}
			}
			return in, nil
		}),
		"refuses-new-members": understood(func(in *webagent.Input, err error) (*webagent.Input, error) {
			known := strings.Fields("threadId runId messages tools context state forwardedProps resume parentRunId")
			for name := range wholeOf(in) {
				if !slices.Contains(known, name) {
					return nil, fmt.Errorf("unknown member %s", name)
				}
			}
			return in, err
		}),
		"wants-all-members": understood(func(in *webagent.Input, err error) (*webagent.Input, error) {
			for _, name := range []string{"tools", "context", "state"} {
				if _, ok := wholeOf(in)[name]; !ok && err == nil {
					return nil, fmt.Errorf("%s is missing", name)
				}
			}
			return in, err
		}),
		"goes-on-after-hang-up": {Detached: true},
		"busy-after-hang-up":    {Clings: true},
	}
	maps.Copy(fixed, inBinary())
	all := map[string]func() webHooks{"runs-share-a-message": shareMessage}
	for name, h := range fixed {
		all[name] = func() webHooks { return h }
	}
	return all
}

// inBinary returns the faults of the binary encoding of events.
func inBinary() map[string]webHooks {
	framed := func(change func(frame []byte) []byte) webHooks { return webHooks{Binary: change} }
	// of returns a fault that changes only the frames with events of one type. arm is the type's field number in the
	// envelope.
	of := func(arm byte, change func(frame []byte) []byte) webHooks {
		return framed(func(frame []byte) []byte {
			if len(frame) > 4 && frame[4] == arm<<3|2 {
				return change(frame)
			}
			return frame
		})
	}
	return map[string]webHooks{
		"binary-unasked": {Admits: func(accept string) bool { return strings.Contains(accept, webagent.BinaryType) }},
		"binary-for-names-alone": {Admits: func(accept string) bool {
			return strings.Contains(accept, webagent.BinaryType) && webagent.WantsBinary(accept)
		}},
		"binary-charset": {Head: func(h http.Header) {
			if h.Get("Content-Type") == webagent.BinaryType {
				h.Set("Content-Type", webagent.BinaryType+"; charset=utf-8")
			}
		}},
		"binary-in-name-alone": framed(func([]byte) []byte { return []byte("data: {}\n\n") }),
		"binary-length-reversed": framed(func(frame []byte) []byte {
			slices.Reverse(frame[:4])
			return frame
		}),
		"binary-length-of-frame": framed(func(frame []byte) []byte {
			binary.BigEndian.PutUint32(frame, uint32(len(frame)))
			return frame
		}),
		"binary-type-of-another": framed(func(frame []byte) []byte {
			return bytes.Replace(frame, []byte{8, 11}, []byte{8, 12}, 1)
		}),
		"binary-done-marker":    of(13, func(frame []byte) []byte { return append(frame, 0, 0) }),
		"binary-new-event":      of(12, func(frame []byte) []byte { return append(frame, 0, 0, 0, 3, 0xfa, 0x07, 0) }),
		"binary-without-deltas": of(2, func([]byte) []byte { return nil }),
	}
}

// asked returns hooks that change the messages of every model request.
func asked(change func(messages) messages) webHooks {
	return webHooks{Request: func(_ *webagent.Input, list []refagent.ModelMessage) []refagent.ModelMessage {
		return change(list)
	}}
}

// understood returns hooks that change the input after the agent has parsed it.
func understood(change func(in *webagent.Input, err error) (*webagent.Input, error)) webHooks {
	return webHooks{Parse: func(_ []byte, in *webagent.Input, err error) (*webagent.Input, error) {
		return change(in, err)
	}}
}

// wholeOf returns all members of an input, or nil if the input could not be read.
func wholeOf(in *webagent.Input) map[string]any {
	if in == nil {
		return nil
	}
	return in.Whole
}

// shareMessage stores the open message in one variable that all runs share.
func shareMessage() webHooks {
	var mu sync.Mutex
	var open string
	var owner *webagent.Port
	return webHooks{Mixes: true, Send: func(p *webagent.Port, e webagent.Event) {
		mu.Lock()
		switch e.Type() {
		case "TEXT_MESSAGE_START":
			if owner == nil {
				open, owner = e.Text("messageId"), p
			}
		case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END":
			e = e.With("messageId", open)
			if owner == p && e.Type() == "TEXT_MESSAGE_END" {
				owner = nil
			}
		}
		mu.Unlock()
		p.Emit(e)
	}}
}
