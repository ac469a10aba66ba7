package replay

import (
	"fmt"

	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// about is what a request of the agent is about: two requests that are about
// the same stand for each other, whatever their order.
func about(e transcript.Entry) string {
	p := e.JSON().Get("params")
	switch e.Method {
	case "fs/read_text_file", "fs/write_text_file":
		return p.Get("path").Str()
	case "terminal/create":
		text := p.Get("command").Str()
		for a := range p.Get("args").Items() {
			text += " " + a.Str()
		}
		return text
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return p.Get("terminalId").Str()
	case "session/request_permission":
		return p.Path("toolCall.title").Str()
	}
	return ""
}

// choose rewrites a recorded answer to a permission for the options on offer
// now: the option of the same kind, the one with the same id first.
func choose(answer []byte, then, now wire.Value) []byte {
	v, err := wire.Parse(answer)
	if err != nil {
		return answer
	}
	chosen := v.Path("result.outcome.optionId")
	if chosen.Kind() != wire.String {
		return answer
	}
	kind, nth := kindOf(then, chosen.Str())
	option := ""
	seen := 0
	for o := range now.Get("options").Items() {
		id := o.Get("optionId").Str()
		if o.Get("kind").Str() != kind {
			continue
		}
		if option == "" || id == chosen.Str() || seen == nth {
			option = id
		}
		if id == chosen.Str() {
			break
		}
		seen++
	}
	if kind == "" || option == "" {
		return answer // as it was: the agent shall see an option it does not offer
	}
	r := rewriter{change: func(at place, v wire.Value, _ string) (string, bool) {
		return serve.Quote(option), at.key() == "optionId"
	}}
	return r.rewrite(answer, v)
}

// kindOf is the kind of an option, and which of that kind it is.
func kindOf(params wire.Value, id string) (kind string, nth int) {
	count := map[string]int{}
	for o := range params.Get("options").Items() {
		k := o.Get("kind").Str()
		if o.Get("optionId").Is(id) {
			return k, count[k]
		}
		count[k]++
	}
	return "", 0
}

// fallback answers a request that the recording has nothing for: nothing is
// allowed, nothing is there.
func fallback(e transcript.Entry) []byte {
	if e.Method == "session/request_permission" {
		option := ""
		for _, kind := range []string{"reject_always", "reject_once"} {
			for o := range e.JSON().Path("params.options").Items() {
				if o.Get("kind").Is(kind) {
					option = o.Get("optionId").Str()
				}
			}
		}
		if option != "" {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%s}}}`, e.ID, serve.Quote(option))
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`, e.ID)
	}
	if e.Method == "fs/read_text_file" {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"the recording has no such file"}}`, e.ID)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"the recording has no answer to this"}}`, e.ID)
}
