package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// clientShape checks the editor's frames against the types of the schema.
func clientShape(w *watch) {
	v := w.version
	w.shapes[rules.OfClient] = true
	w.On(func(ev *event) {
		w.judge("noise", len(ev.Raw) > 0, ev, "", nil, "The client sent a line that is not a message: %s.", ev.Problem)
	}, editorNoise)
	// pointOf returns the point that a shape problem breaks, or "".
	pointOf := func(point string, p schema.Problem) string {
		switch {
		case p.Path == "id" && (v.number == 2 || point == "answer"):
			return "" // the agent chose the id of an answer; V2-CLIENT-IDS judges the request ids of version 2
		case v.number == 2:
			return [...]string{"broken", "lossy", "unknown", "unknown", "unknown"}[p.Severity]
		case toleratedOfClient(p):
			return ""
		case p.Severity == schema.Unknown && strings.Contains(p.Message, "unknown key"):
			return "unknown-key"
		case p.Severity == schema.Unknown && p.Path == "method" && point == "request":
			return "unknown-method"
		case p.Severity > schema.Lossy:
			return ""
		}
		return point
	}
	judge := func(point string) func(*event) {
		saw := w.Seeing("noise", point, "broken", "lossy", "unknown")
		return func(ev *event) {
			saw()
			if point == "request" {
				w.Saw("unknown-method")
			}
			if w.Has("first-version") && isFormer(ev) {
				w.judge("first-version", true, ev, ev.Method, nil, "The client sent %s, which version 2 does not have.", ev.Method)
				return
			}
			if none := isEmptyPrompt(ev); w.Has("empty-prompt") && ev.topic == asked(prompt) {
				if w.judge("empty-prompt", none, ev, "", nil, "The client sent a prompt without content."); none {
					return
				}
			}
			for _, p := range ev.problems {
				if breaks := pointOf(point, p); breaks != "" {
					w.problem(breaks, ev, p)
				}
			}
		}
	}
	w.On(judge("request"), append(editorRequests(), cancelTold, editorTakesBack, editorOtherTold)...)
	w.On(judge("answer"), editorAnswers()...)
}

func isEmptyPrompt(ev *event) bool {
	list := ev.params.Get("prompt")
	return list.Kind() == wire.Array && list.Len() == 0
}

// isFormer reports whether version 2 has dropped the method of a request.
func isFormer(ev *event) bool {
	return ev.Kind == transcript.Request &&
		slices.Contains([]string{"authenticate", "logout", "session/load", "session/set_mode"}, ev.Method)
}

// toleratedOfClient reports whether a client may send a member that the schema does not define. Editors send the type
// of a stdio server, and a client may be newer than this program.
func toleratedOfClient(p schema.Problem) bool {
	return p.Type == "McpServerStdio" && strings.HasSuffix(p.Path, ".type") || newCapability(p)
}
