package acpframe

import (
	"maps"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// V2 classifies the frames of ACP version 2 for a transcript. The agent answers a prompt when it accepts the prompt;
// the idle state that ends the work on a prompt completes it.
type V2 struct{ Classifier }

// Completes implements transcript.Completer.
func (V2) Completes() func(e transcript.Entry, f wire.Frame) int {
	sessions := map[[2]any]*work{}
	return func(e transcript.Entry, f wire.Frame) int {
		if e.Session == "" {
			return 0
		}
		key := [2]any{e.Conn, e.Session}
		w := sessions[key]
		if w == nil {
			w = &work{}
			sessions[key] = w
		}
		return w.see(e, f)
	}
}

// work has the prompts of a session that no idle state has completed.
type work struct {
	prompts []prompt       // the oldest first
	keys    map[string]int // by idempotency key, Seq of the first prompt with the key; refused prompts are removed
	active  bool           // a state other than idle has come since the last idle state
}

type prompt struct {
	seq      int
	inserted bool
}

// see updates w with a frame, and returns the Seq of the prompt that the frame completes, or 0. An idle state
// completes all accepted prompts; see returns the oldest of them. A repeated idle state completes nothing
// (V2-STA-003).
func (w *work) see(e transcript.Entry, f wire.Frame) int {
	switch {
	case e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt":
		if w.sentBefore(f.Params.Get("idempotencyKey").Str(), e.Seq) {
			return 0 // the prompt was sent before and causes no new work
		}
		w.prompts = append(w.prompts, prompt{seq: e.Seq})
	case e.Source != transcript.Agent:
	case e.Kind == transcript.Response && e.Method == "session/prompt":
		for i := range w.prompts {
			if w.prompts[i].seq != e.Ref {
				continue
			}
			if f.Error.Exists() {
				maps.DeleteFunc(w.keys, func(_ string, seq int) bool { return seq == e.Ref })
				w.prompts = append(w.prompts[:i], w.prompts[i+1:]...)
				break
			}
			w.prompts[i].inserted = true
		}
	case e.Kind == transcript.Notification && f.Params.Get("update").Get("sessionUpdate").Is("state_update"):
		return w.enter(f.Params.Get("update"))
	}
	return 0
}

// sentBefore reports whether a prompt with this idempotency key was sent before. If not, it records the key.
func (w *work) sentBefore(key string, seq int) bool {
	if key == "" || w.keys[key] > 0 {
		return key != ""
	}
	if w.keys == nil {
		w.keys = map[string]int{}
	}
	w.keys[key] = seq
	return false
}

func (w *work) enter(state wire.Value) int {
	if !state.Get("state").Is("idle") {
		w.active = true
		return 0
	}
	worked := w.active
	w.active = false
	if !worked && state.Get("stopReason").Kind() != wire.String || len(w.prompts) == 0 {
		return 0
	}
	first, kept := 0, w.prompts[:0]
	for _, p := range w.prompts {
		switch {
		case !p.inserted:
			kept = append(kept, p)
		case first == 0:
			first = p.seq
		}
	}
	if first == 0 && len(kept) == 1 && worked {
		// The idle state may also complete a prompt without an answer, because the work may end before the agent
		// answers. But if there was no work since the last idle state, this state only repeats the last one.
		first, kept = kept[0].seq, kept[:0]
	}
	w.prompts = kept
	return first
}
