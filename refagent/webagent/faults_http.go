package webagent

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

func httpFaults() []Fault {
	frame := func(f func([]byte) []byte) func() Hooks { return func() Hooks { return Hooks{Frame: f} } }
	return []Fault{
		fault("crlf", "", "ends lines with CRLF", frame(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("\n"),
				[]byte("\r\n"))
		})),
		fault("content-type-json", "", "answers with the content type application/json", func() Hooks {
			return Hooks{Head: func(h http.Header) { h.Set("Content-Type", "application/json") }}
		}),
		fault("content-type-html", "", "answers with the content type text/html", func() Hooks {
			return Hooks{Head: func(h http.Header) { h.Set("Content-Type", "text/html") }}
		}),
		fault("two-events-in-one", "", "sends two events as the data of one", once("STEP_STARTED", func(p *Port,
			e Event) []Event {
			one := "data: {\"type\":\"CUSTOM\",\"name\":\"a.b\",\"value\":1}\n"
			p.Write(one + one + "\n")
			return []Event{e}
		})),
		fault("half-an-event", "", "sends half an event", once("STEP_STARTED", func(p *Port, e Event) []Event {
			p.Write("data: {\"type\":\"CUSTOM\",\"na\n\n")
			return []Event{e}
		})),
		fault("done-marker", "", "ends the stream with [DONE]", func() Hooks {
			return Hooks{End: func(p *Port) { p.Write("data: [DONE]\n\n") }}
		}),
		fault("last-event-unterminated", "", "ends the body without an empty line", sends(func(p *Port, e Event) {
			if e.Type() == "RUN_FINISHED" {
				p.Write(fmt.Sprintf("data: {\"type\":\"RUN_FINISHED\",\"threadId\":%q,\"runId\":%q}", p.Input.ThreadID,
					p.Input.RunID))
				return
			}
			p.Emit(e)
		})),
		fault("byte-order-mark", "", "begins the stream with a byte order mark", instead("RUN_STARTED", func(p *Port,
			e Event) []Event {
			p.Write("\uFEFF")
			return []Event{e}
		})),
		fault("body-left-open", "mastra-ai/mastra#19820", "does not close the body", func() Hooks {
			return Hooks{End: func(p *Port) { <-p.Gone() }}
		}),
		fault("connection-broken", "ag-ui-protocol/ag-ui#2455", "breaks the connection where the model fails",
			sends(func(p *Port, e Event) {
				if e.Type() == "RUN_ERROR" {
					p.Break()
				}
				p.Emit(e)
			})),
		fault("buffers-all", "", "sends all events at the end", sends(func(p *Port, e Event) {
			list, _ := p.Notes["all"].([]Event)
			list = append(list, e)
			p.Notes["all"] = list
			if e.Type() == "RUN_FINISHED" || e.Type() == "RUN_ERROR" {
				for _, e := range list {
					p.Emit(e)
				}
			}
		})),
		fault("binary-unasked", "", "answers in the binary form wherever the Accept header names it, also with quality 0",
			func() Hooks {
				return Hooks{Admits: func(accept string) bool { return strings.Contains(accept, binaryType) }}
			}),
		fault("binary-in-name-alone", "", "has the content type of the binary form, and sends server-sent events",
			func() Hooks {
				return Hooks{Binary: func([]byte) []byte { return []byte("data: {}\n\n") }}
			}),
		fault("binary-length-reversed", "", "writes the length of a frame with its last byte first",
			func() Hooks {
				return Hooks{Binary: func(frame []byte) []byte {
					slices.Reverse(frame[:4])
					return frame
				}}
			}),
		fault("binary-length-of-frame", "", "counts the length of a frame as a part of it", func() Hooks {
			return Hooks{Binary: func(frame []byte) []byte {
				binary.BigEndian.PutUint32(frame, uint32(len(frame)))
				return frame
			}}
		}),
		fault("binary-type-of-another", "", "has the enumeration of types a number off", func() Hooks {
			return Hooks{Binary: func(frame []byte) []byte {
				return bytes.Replace(frame, []byte{8, 11}, []byte{8, 12}, 1)
			}}
		}),
		fault("binary-charset", "", "has a parameter behind the content type of the binary form", func() Hooks {
			return Hooks{Head: func(h http.Header) {
				if h.Get("Content-Type") == binaryType {
					h.Set("Content-Type", binaryType+"; charset=utf-8")
				}
			}}
		}),
		fault("binary-done-marker", "", "ends a stream of frames with bytes that are none", func() Hooks {
			return Hooks{Binary: func(frame []byte) []byte {
				if len(frame) > 4 && frame[4] == 13<<3|2 {
					return append(frame, 0, 0)
				}
				return frame
			}}
		}),
		fault("binary-new-event", "", "sends a frame of an event that no version has", func() Hooks {
			return Hooks{Binary: func(frame []byte) []byte {
				if len(frame) > 4 && frame[4] == 12<<3|2 {
					return append(frame, 0, 0, 0, 3, 0xfa, 0x07, 0)
				}
				return frame
			}}
		}),
		fault("binary-without-deltas", "", "loses the deltas of texts in the binary form", func() Hooks {
			return Hooks{Binary: func(frame []byte) []byte {
				if len(frame) > 4 && frame[4] == 2<<3|2 {
					return nil
				}
				return frame
			}}
		}),
		fault("binary-for-names-alone", "", "has the binary form for who names it alone, not for a range that it is in",
			func() Hooks {
				return Hooks{Admits: func(accept string) bool {
					return strings.Contains(accept, binaryType) && wants(accept)
				}}
			}),
		fault("accepts-anything", "", "runs whatever is posted", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				if err != nil {
					in = &Input{ThreadID: "thread", RunID: "run", State: map[string]any{}}
				}
				return in, nil
			}}
		}),
		fault("refuses-new-members", "", "refuses an input with members that it does not know", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				for name := range in.wholeOf() {
					if !slices.Contains([]string{"threadId", "runId", "messages", "tools", "context", "state", "forwardedProps",
						"resume",
						"parentRunId"}, name) {
						return nil, fmt.Errorf("unknown member %s", name)
					}
				}
				return in, err
			}}
		}),
		fault("wants-all-members", "", "refuses an input without tools, context and state", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				for _, name := range []string{"tools", "context", "state"} {
					if _, ok := in.wholeOf()[name]; !ok && err == nil {
						return nil, fmt.Errorf("%s is missing", name)
					}
				}
				return in, err
			}}
		}),
	}
}

// wholeOf is all of an input that could be read; nil if none could.
func (in *Input) wholeOf() map[string]any {
	if in == nil {
		return nil
	}
	return in.Whole
}

func stopFaults() []Fault {
	return []Fault{
		fault("goes-on-after-hang-up", "ag-ui-protocol/ag-ui#2417", "goes on with its model when the client has hung up",
			func() Hooks { return Hooks{Detached: true} }),
		fault("busy-after-hang-up", "CopilotKit/CopilotKit#2713", "refuses a thread for good whose client has hung up",
			func() Hooks { return Hooks{Clings: true} }),
		fault("runs-share-a-message", "", "has one variable for the message that is open, for all runs", func() Hooks {
			var mu sync.Mutex
			var open string
			var owner *Port
			return Hooks{Mixes: true, Send: func(p *Port, e Event) {
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
		}),
	}
}
