package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// clientShape judges the frames of the editor by the types of the schema.
func clientShape(w *watch) {
	noise, request, answer, key := w.At("noise"), w.If("request"), w.If("answer"), w.If("unknown-key")
	method, broken, empty := w.If("unknown-method"), w.If("broken"), w.If("empty-prompt")
	former, lossy, style := w.If("first-version"), w.If("lossy"), w.If("unknown")
	v := w.version
	w.shapes[rules.OfClient] = true
	w.On(func(ev *event) {
		w.judge(noise, len(ev.Raw) > 0, ev, "", nil, "A line of the client is no message: %s.", ev.Problem)
	}, editorNoise)
	// pointOf is what a problem with a message breaks, -1 for nothing.
	pointOf := func(point int, p schema.Problem) int {
		switch {
		case p.Path == "id" && (v.number == 2 || point == answer):
			return -1 // of an answer the agent chose it; of a request of version 2 V2-CLIENT-IDS says it
		case v.number == 2:
			return [...]int{broken, lossy, style, style, style}[p.Severity]
		case toleratedOfClient(p):
			return -1
		case p.Severity == schema.Unknown && strings.Contains(p.Message, "unknown key"):
			return key
		case p.Severity == schema.Unknown && p.Path == "method" && point == request:
			return method
		case p.Severity > schema.Lossy:
			return -1
		}
		return point
	}
	judge := func(point int) func(*event) {
		return func(ev *event) {
			w.Saw(noise, point, broken, lossy, style)
			if point == request {
				w.Saw(method)
			}
			if former >= 0 && isFormer(ev) {
				w.judge(former, true, ev, ev.Method, nil, "The client sent %s, which version 2 does not have.", ev.Method)
				return
			}
			if none := isEmptyPrompt(ev); empty >= 0 && ev.topic == asked(prompt) {
				if w.judge(empty, none, ev, "", nil, "The client sent a prompt without content."); none {
					return
				}
			}
			for _, p := range ev.problems {
				w.problem(pointOf(point, p), ev, p)
			}
		}
	}
	w.On(judge(request), append(editorRequests(), cancelTold, editorTakesBack, editorOtherTold)...)
	w.On(judge(answer), editorAnswers()...)
}

func isEmptyPrompt(ev *event) bool {
	list := ev.params.Get("prompt")
	return list.Kind() == wire.Array && list.Len() == 0
}

// isFormer reports whether a request has a method that version 2 does not have any more.
func isFormer(ev *event) bool {
	return ev.Kind == transcript.Request &&
		slices.Contains([]string{"authenticate", "logout", "session/load", "session/set_mode"}, ev.Method)
}

// toleratedOfClient reports whether a client may send what the schema does not know: editors
// send the type of a stdio server, and a client may be newer than this program.
func toleratedOfClient(p schema.Problem) bool {
	return p.Type == "McpServerStdio" && strings.HasSuffix(p.Path, ".type") || newCapability(p)
}
