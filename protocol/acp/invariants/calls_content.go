package invariants

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// callContent judges the content of completed calls. An update replaces the content of its call, and so does the
// toolCall of a permission request. Output must be in the content, because not every editor shows rawOutput.
func callContent(w *watch) {
	const least = 8 // bytes of output
	turns := map[*turn]map[string]*callShown{}
	w.inTurn(func(ev *event, t *turn) {
		if turns[t] == nil {
			rules.Remember(turns, rememberedRequests, t, map[string]*callShown{})
		}
		if turns[t] == nil || len(turns[t]) >= rememberedTools {
			return
		}
		u := ev.update
		if ev.verb == permission {
			u = ev.params.Path(w.version.call)
		}
		s := rules.Entry(turns[t], u.Get("toolCallId").Str())
		s.kind = cmp.Or(u.Get("kind").Str(), s.kind)
		if longest(u.Get("rawOutput")) >= least {
			s.raw = ev.Seq
		}
		if content := u.Get("content"); content.Kind() == wire.Array {
			asks := ev.verb == permission
			s.noteDiff(content, ev.Seq, asks)
			if !asks { // the text in a permission request is a question to the user
				s.noteText(content, ev.Seq)
			}
		}
	}, toolCall, toolUpdate, asked(permission))
	w.onEnd(func(ev *event) {
		if ev.turn == nil || turns[ev.turn] == nil {
			return
		}
		for _, k := range ev.turn.tools {
			s := turns[ev.turn][k.id]
			if s == nil || k.status != completed {
				continue
			}
			if k.denied == 0 {
				w.judge("emptied", s.full > 0 && s.empty > 0, ev, k.id, []int{s.full, s.empty},
					"The last update of tool call %q removes the text that an earlier update showed.", k.id)
				w.judge("diff-lost", s.diff > 0 && s.gone > 0, ev, k.id, []int{s.diff, s.gone},
					"The latest content of tool call %q lacks the diff that an earlier message showed.", k.id)
			}
			if s.kind == "execute" {
				w.judge("hidden", s.raw > 0 && !s.any, ev, k.id, []int{k.first, s.raw},
					"Tool call %q ran a command and has its output only in rawOutput, not as content.", k.id)
			}
		}
		delete(turns, ev.turn)
	})
}

// callShown records what the messages about one call have shown. Each number is the Seq of a message, or 0.
type callShown struct {
	kind        string
	raw         int  // latest message with output in rawOutput
	any         bool // an update had content
	full, empty int  // latest update with text, and a later one with empty content
	diff, gone  int  // latest message with a diff, and a later one with content but without a diff
}

// noteDiff records whether content has a diff. A diff that only a permission request showed need not come again.
func (s *callShown) noteDiff(content wire.Value, seq int, asks bool) {
	switch diff := content.Find("type", "diff").Exists(); {
	case diff && (!asks || s.diff > 0):
		s.diff, s.gone = seq, 0
	case !diff && content.Len() > 0:
		s.gone = seq
	}
}

// noteText records whether the content of an update has text.
func (s *callShown) noteText(content wire.Value, seq int) {
	if s.any = s.any || content.Len() > 0; content.Len() == 0 {
		s.empty = seq
		return
	}
	if s.full, s.empty = 0, 0; content.Find("type", "content").Exists() {
		s.full = seq
	}
}

// longest returns the length of the longest text in a value, in bytes.
func longest(v wire.Value) (n int) {
	n = len(strings.TrimSpace(v.Str()))
	for _, inner := range v.Members() {
		n = max(n, longest(inner))
	}
	for inner := range v.Items() {
		n = max(n, longest(inner))
	}
	return n
}
