package invariants

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// emptiedCalls checks that the last update of a completed call does not take away the text that an earlier one showed.
func emptiedCalls(w *watch) {
	type shown struct{ full, empty int } // Seq of the last update with content, and of one that removes it
	turns := map[*turn]map[string]*shown{}
	w.inTurn(func(ev *event, t *turn) {
		list := ev.update.Get("content")
		if list.Kind() != wire.Array {
			return
		}
		if turns[t] == nil {
			rules.Remember(turns, rememberedRequests, t, map[string]*shown{})
		}
		if turns[t] == nil || len(turns[t]) >= rememberedTools {
			return
		}
		s := rules.Entry(turns[t], ev.update.Get("toolCallId").Str())
		if list.Len() == 0 {
			s.empty = ev.Seq
			return
		}
		if *s = (shown{}); list.Find("type", "content").Exists() {
			s.full = ev.Seq
		}
	}, toolCall, toolUpdate)
	w.onEnd(func(ev *event) {
		if ev.turn == nil || turns[ev.turn] == nil {
			return
		}
		for _, k := range ev.turn.tools {
			if s := turns[ev.turn][k.id]; s != nil && k.status == completed && k.denied == 0 {
				w.judge("emptied", s.full > 0 && s.empty > 0, ev, k.id, []int{s.full, s.empty},
					"The last update of tool call %q removes the text that an earlier update showed.", k.id)
			}
		}
		delete(turns, ev.turn)
	})
}

// hiddenOutput checks that a completed command shows its output in the content of its call. Not every editor shows the
// member rawOutput.
func hiddenOutput(w *watch) {
	const least = 8 // bytes of text
	type shown struct {
		kind string
		raw  int // Seq of the latest update with output in rawOutput
		text bool
	}
	turns := map[*turn]map[string]*shown{}
	w.inTurn(func(ev *event, t *turn) {
		if turns[t] == nil {
			rules.Remember(turns, rememberedRequests, t, map[string]*shown{})
		}
		if turns[t] == nil || len(turns[t]) >= rememberedTools {
			return
		}
		s := rules.Entry(turns[t], ev.update.Get("toolCallId").Str())
		s.kind = cmp.Or(ev.update.Get("kind").Str(), s.kind)
		s.text = s.text || ev.update.Get("content").Len() > 0
		if longest(ev.update.Get("rawOutput")) >= least {
			s.raw = ev.Seq
		}
	}, toolCall, toolUpdate)
	w.onEnd(func(ev *event) {
		if ev.turn == nil || turns[ev.turn] == nil {
			return
		}
		for _, k := range ev.turn.tools {
			if s := turns[ev.turn][k.id]; s != nil && s.kind == "execute" && k.status == completed {
				w.judge("hidden", s.raw > 0 && !s.text, ev, k.id, []int{k.first, s.raw},
					"Tool call %q ran a command and has its output only in rawOutput, not as content.", k.id)
			}
		}
		delete(turns, ev.turn)
	})
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
