package webagent

import (
	_ "embed"
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

func textFaults() []Fault {
	return []Fault{
		fault("text-without-start", "", "sends text without opening its message", dropping("TEXT_MESSAGE_START")),
		fault("text-left-open", "", "does not close its messages", dropping("TEXT_MESSAGE_END")),
		fault("text-opened-twice", "", "opens a message twice", instead("TEXT_MESSAGE_START",
			func(_ *Port, e Event) []Event { return []Event{e, e} })),
		fault("text-after-end", "", "sends the last piece after the end of its message", sends(func(p *Port, e Event) {
			if last, ok := p.Notes["last"].(Event); ok {
				delete(p.Notes, "last")
				if e.Type() == "TEXT_MESSAGE_END" {
					p.Emit(e)
					p.Emit(last)
					return
				}
				p.Emit(last)
			}
			if e.Type() == "TEXT_MESSAGE_CONTENT" {
				p.Notes["last"] = e
				return
			}
			p.Emit(e)
		})),
		fault("text-without-id", "", "sends text without the id of its message", instead("TEXT_MESSAGE_CONTENT",
			with("messageId", nil))),
		fault("text-empty-pieces", "", "sends a piece for each token, the empty ones too", instead("TEXT_MESSAGE_CONTENT",
			func(_ *Port, e Event) []Event { return []Event{e.With("delta", ""), e} })),
		fault("text-repeated", "ag-ui-protocol/ag-ui#742", "sends the whole text once more at the end", sends(func(p *Port,
			e Event) {
			said, _ := p.Notes["said"].(string)
			switch e.Type() {
			case "TEXT_MESSAGE_START":
				p.Notes["said"] = ""
			case "TEXT_MESSAGE_CONTENT":
				p.Notes["said"] = said + e.Text("delta")
			case "TEXT_MESSAGE_END":
				if said != "" {
					p.Emit(Event{"type": "TEXT_MESSAGE_CONTENT", "messageId": e["messageId"], "delta": said})
				}
			}
			p.Emit(e)
		})),
		fault("reasoning-repeated", "ag-ui-protocol/ag-ui#1645", "tells the whole of its reasoning once more at the end",
			sends(func(p *Port, e Event) {
				thought, _ := p.Notes["thought"].(string)
				switch e.Type() {
				case "REASONING_MESSAGE_START":
					p.Notes["thought"] = ""
				case "REASONING_MESSAGE_CONTENT":
					p.Notes["thought"] = thought + e.Text("delta")
				case "REASONING_MESSAGE_END":
					p.Emit(Event{"type": "REASONING_MESSAGE_CONTENT", "messageId": e["messageId"], "delta": thought})
				}
				p.Emit(e)
			})),
		fault("text-lost", "", "loses the second piece of a reply", func() Hooks {
			return Hooks{Piece: func(n int, p refagent.Piece) []refagent.Piece {
				if n == 2 && p.Text != "" {
					return nil
				}
				return []refagent.Piece{p}
			}}
		}),
		fault("text-bytes-mangled", "", "cuts text at bytes", instead("TEXT_MESSAGE_CONTENT", func(_ *Port, e Event) []Event {
			return []Event{e.With("delta", strings.Map(func(r rune) rune {
				if r > 127 {
					return '\uFFFD'
				}
				return r
			}, e.Text("delta")))}
		})),
		fault("text-role-tool", "", "streams text with the role tool", instead("TEXT_MESSAGE_START", with("role", "tool"))),
		fault("text-id-reused", "", "uses one message id for all replies of a run", sends(func(p *Port, e Event) {
			if strings.HasPrefix(e.Type(), "TEXT_MESSAGE_") {
				e = e.With("messageId", "the-message")
			}
			p.Emit(e)
		})),
		fault("thoughts-as-text", "", "sends reasoning as the text of a message", sends(func(p *Port, e Event) {
			switch e.Type() {
			case "REASONING_START", "REASONING_END":
				return
			case "REASONING_MESSAGE_START":
				e = Event{"type": "TEXT_MESSAGE_START", "messageId": e["messageId"], "role": "assistant"}
			case "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END":
				e = e.With("type", strings.Replace(e.Type(), "REASONING_", "TEXT_", 1))
			}
			p.Emit(e)
		})),
		fault("reasoning-left-open", "pydantic/pydantic-ai#2766", "does not close its reasoning",
			dropping("REASONING_MESSAGE_END")),
		fault("reasoning-span-left-open", "", "does not close the span of its reasoning", dropping("REASONING_END")),
		fault("reasoning-role-assistant", "agno-agi/agno#7556", "gives reasoning the role assistant",
			instead("REASONING_MESSAGE_START", with("role", "assistant"))),
		fault("reasoning-wrapped-per-delta", "microsoft/agent-framework#5162", "opens its reasoning for each piece",
			instead("REASONING_MESSAGE_CONTENT", func(_ *Port, e Event) []Event {
				return []Event{{"type": "REASONING_MESSAGE_START", "messageId": e["messageId"], "role": "reasoning"}, e}
			})),
		fault("thinking-in-new-stream", "", "spells reasoning as before 1.0", sends(func(p *Port, e Event) {
			for _, e := range retired(e) {
				p.Emit(e)
			}
		})),
		fault("chunk-without-id", "", "sends a first chunk without an id", chunked(func(_ int, e Event) []Event {
			return []Event{e.Without("messageId")}
		})),
		fault("chunk-contradicts", "", "gives a later chunk another role", chunked(func(n int, e Event) []Event {
			if n == 1 {
				return []Event{e.With("role", "assistant")}
			}
			return []Event{e.With("role", "system")}
		})),
		fault("chunk-and-end", "", "closes with an event what it has sent in chunks", sends(func(p *Port, e Event) {
			switch e.Type() {
			case "TEXT_MESSAGE_START":
				return
			case "TEXT_MESSAGE_CONTENT":
				e = e.With("type", "TEXT_MESSAGE_CHUNK")
			}
			p.Emit(e)
		})),
	}
}

// chunked sends text in chunks, each of them changed.
func chunked(f func(n int, e Event) []Event) func() Hooks {
	return sends(func(p *Port, e Event) {
		switch e.Type() {
		case "TEXT_MESSAGE_START", "TEXT_MESSAGE_END":
			return
		case "TEXT_MESSAGE_CONTENT":
			n, _ := p.Notes["n"].(int)
			p.Notes["n"] = n + 1
			for _, e := range f(n+1, e.With("type", "TEXT_MESSAGE_CHUNK")) {
				p.Emit(e)
			}
			return
		}
		p.Emit(e)
	})
}
