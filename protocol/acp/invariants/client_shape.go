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
func clientShape(v *version) *rule {
	r := v.ofClient("C-SHAPE", "The client sends nothing but messages that have the shape of their methods.", 1, 2)
	r.Alone = true
	noise := r.Fail("noise", "a line of the client is no message", "STDIO-002")
	request := r.In(1).Fail("request",
		"a message of the client does not have the shape of its method", "SESSION-010", "SESSION-017", "LOAD-002",
		"RESUME-002", "CONFIG-016")
	answer := r.In(1).Fail("answer",
		"an answer of the client does not have its shape", "FS-007", "TERM-012", "TERM-013", "PERM-010", "ELICIT-017")
	key := r.In(1).Fail("unknown-key", "a message of the client has a key that the schema does not know", "EXT-001")
	method := r.In(1).Fail("unknown-method",
		"a method of the client is not known and does not begin with an underscore", "EXT-002")
	broken := r.In(2).Fail("broken", "a message of the client breaks the schema", "V2-SHAPE-002")
	empty := r.In(2).Fail("empty-prompt", "a prompt has no content", "V2-PRM-011")
	former := r.In(2).Fail("first-version", "the client calls a method of version 1", "V2-SHAPE-002")
	lossy := r.In(2).Warn("lossy", "a value does not fit, and readers lose it", "V2-SHAPE-002")
	style := r.In(2).Lint("unknown", "a message of the client has what the schema does not know", "V2-SHAPE-002")
	return r.Watching(func(w *watch) {
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
	})
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
