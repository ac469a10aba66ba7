package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
)

// clientShape judges the frames of the editor by the types of the schema.
func clientShape() *rule {
	r := ofClient("C-SHAPE", "The client sends nothing but messages that have the shape of their methods.")
	noise := r.Fail("noise", "a line of the client is no message", "STDIO-002")
	request := r.Fail("request",
		"a message of the client does not have the shape of its method", "SESSION-010", "SESSION-017", "LOAD-002",
		"RESUME-002", "CONFIG-016")
	answer := r.Fail("answer",
		"an answer of the client does not have its shape", "FS-007", "TERM-012", "TERM-013", "PERM-010", "ELICIT-017")
	key := r.Fail("unknown-key", "a message of the client has a key that the schema does not know", "EXT-001")
	method := r.Fail("unknown-method",
		"a method of the client is not known and does not begin with an underscore", "EXT-002")
	r.Versions = []int{1}
	return r.watching(func(w *watch) {
		w.clientShapes = true
		w.on(func(ev *event) {
			w.Saw(noise)
			if len(ev.Raw) > 0 {
				w.find(noise, ev, "", nil, "A line of the client is no message: %s.", ev.Problem)
			}
		}, editorNoise)
		judge := func(point int) func(*event) {
			return func(ev *event) {
				w.Saw(noise, point)
				if point == request {
					w.Saw(method)
				}
				for _, p := range ev.problems {
					at := point
					if p.Path == "id" && point == answer {
						continue // which the agent chose
					}
					if p.Type == "McpServerStdio" && strings.HasSuffix(p.Path, ".type") {
						continue // editors send it, and it validates
					}
					if p.Severity == schema.Unknown && strings.Contains(p.Message, "unknown key") {
						at = key
					} else if p.Severity == schema.Unknown && p.Path == "method" && point == request {
						at = method
					} else if p.Severity > schema.Lossy {
						continue
					}
					if f := w.find(at, ev, ev.Method+plainPath(p.Path), nil, "In the client's %s, %s %s.", frameName(ev), p.Path,
						p.Message); f != nil && p.Severity <= schema.Lossy {
						f.Damage = p.Severity.String()
					}
				}
			}
		}
		w.on(judge(request), editorRequests()...)
		w.on(judge(request), cancelTold, editorTakesBack, editorOtherTold)
		w.on(judge(answer), editorAnswers()...)
	})
}
