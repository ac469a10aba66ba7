package invariants

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// rememberedText is how many bytes of text are remembered per session. Text beyond this limit is not checked.
const rememberedText = hearing.Remembered

// longPrompt is the size in bytes of a request with a prompt that a replay must show. An agent may replay the name of a
// longer text.
const longPrompt = 128 << 10

// tellsApart is the length in bytes of texts that are not part of another message by chance.
const tellsApart = 8

// loadWhole checks that a replay is complete. The replay must show the messages and thoughts of the turns in this
// transcript, in their order, and the tool calls with their final status. White space and the cutting into chunks do
// not matter. The specification does not say whether a replay must have thoughts and the agent's own notices.
func loadWhole(w *watch) {
	model, raw, gates := w.modelWords(), w.modelTexts(), w.version.gates("ContentBlock")
	talks := map[string]*talk{} // by session id
	of := func(id string) *talk {
		if talks[id] == nil {
			rules.Remember(talks, rememberedSessions, id, &talk{ends: map[string]end{}, shown: map[string]*shownCall{}})
		}
		return talks[id]
	}
	w.On(func(ev *event) { delete(talks, ev.Session) }, asked(deleteSession), compactionUpdate)
	w.On(func(ev *event) {
		if ev.session == nil || !ev.succeeded() {
			return
		}
		if k := of(ev.session.id); k != nil { // nil if too many sessions are remembered
			k.whole = true
		}
	}, answered(newSession))
	w.On(func(ev *event) { of(ev.Session).ask(ev, gates) }, asked(prompt))
	w.On(func(ev *event) {
		if from := talks[ev.request.session.name()]; from != nil && len(talks) < rememberedSessions {
			talks[ev.result.Get("sessionId").Str()] = &talk{past: slices.Clone(from.past), given: slices.Clone(from.given),
				ends: maps.Clone(from.ends), shown: map[string]*shownCall{}}
		}
	}, answered(forkSession))
	w.On(func(ev *event) {
		if s := ev.session; ev.speaksAlone() && s.window == nil {
			of(ev.Session).hear(ev)
		}
	}, contentUpdates()...)
	w.On(func(ev *event) { talks[ev.Session].shows(ev) }, toolCall, toolUpdate)
	w.On(func(ev *event) {
		if k := talks[ev.Session]; k != nil {
			k.unclear = true // a replay may show what the user filled in
		}
	}, asked(elicit))
	w.onEnd(func(ev *event) {
		if k, t := talks[ev.Session], ev.turn; k != nil && t != nil {
			k.end(t, t.leavesHistory(ev.stop) && !t.concurrent && !t.mixed)
		}
	})
	eachReplay(w, func(r *replayed, ev *event) {
		if r.hear(ev); w.version.states && isMessage(ev.topic) {
			id := ev.update.Get("messageId").Str()
			r.ids = append(r.ids, id)
			r.renamed = r.renamed || !w.state.shown[ev.Session][id].live
		}
	}, func(r *replayed, ev *event) {
		// LOAD-WINDOW reports a replay without content of the agent.
		if k := talks[ev.Session]; k != nil && r.answered && r.all.Len() < 8*rememberedText {
			w.compare(k, r, ev, model.String(), raw.String(), talks)
		}
	})
}

// modelWords returns a builder that receives, while the transcript is read, each text of the model without white
// space.
func (w *watch) modelWords() *strings.Builder {
	var words strings.Builder
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelChunk && words.Len() < 4*rememberedText {
			words.WriteString(bare(fakellm.ChunkText(ev.body)))
		}
	}, modelEvent)
	return &words
}

// compare checks that a replay has everything that was said and done in the session before. model and raw have the
// texts of the model, without and with white space.
func (w *watch) compare(k *talk, r *replayed, ev *event, model, raw string, talks map[string]*talk) {
	all, at, before, said := r.all.String(), 0, 0, map[string]bool{}
	for _, x := range k.past {
		text := x.text.String()
		// LOAD-WINDOW reports a replay without prompts, and V2-RESUME reports a missing message of the user.
		if text == "" || x.topic == userChunk && (!r.prompted || w.version.states && !slices.Contains(r.ids, x.id)) {
			continue
		}
		point, what := x.name(model)
		gone := x.topic == agentChunk && x.id != "" && w.version.states && !slices.Contains(r.ids, x.id) && !r.renamed
		if w.judge(point, gone || !strings.Contains(r.of(x.topic).String(), text), ev, "", []int{x.seq, ev.request.seq},
			"%s did not replay the %s that began with #%d.", ev.Method, what, x.seq) != nil || x.topic == thoughtChunk {
			continue
		}
		i := strings.Index(all[at:], text)
		moved := i < 0 && !said[text] && strings.Count(all, text) == 1 &&
			(len(text) >= tellsApart || strings.Contains("\x00"+all+"\x00", "\x00"+text+"\x00"))
		w.judge("order", moved, ev, "", []int{before, x.seq, ev.request.seq},
			"%s replayed the %s that began with #%d too early: in the session it came after #%d.",
			ev.Method, what, x.seq, before)
		if said[text] = true; i >= 0 {
			at, before = at+i+len(text), x.seq
		}
	}
	w.compareSpaces(k, r, ev, raw)
	w.compareAsks(k, r, ev)
	w.compareOwn(k, r, ev, talks)
	w.compareGiven(k, r, ev)
	w.compareCalls(k, r, ev)
}

// compareAsks checks that a replay does not have more messages of the user than the session had prompts. In version 2,
// the rule V2-RESUME reports new message ids.
func (w *watch) compareAsks(k *talk, r *replayed, ev *event) {
	if !w.version.states {
		w.judge("split", k.whole && k.asks > 0 && len(r.asks) > k.asks, ev, "", []int{ev.request.seq},
			"%s replayed %d messages of the user. The number of prompts in the session is %d.", ev.Method, len(r.asks), k.asks)
	}
}

// compareOwn checks that a replay shows no other texts of the user than the texts of the session's prompts. Only the
// transcript of a whole session without attachments shows which texts these are.
func (w *watch) compareOwn(k *talk, r *replayed, ev *event, talks map[string]*talk) {
	if !k.whole || k.unclear || k.asks == 0 || r.user.Len() >= 8*rememberedText {
		return
	}
	rest := ""
	for _, piece := range strings.Split(without(r.user.String(), k.texts), "\x00") {
		if len(piece) > len(rest) {
			rest = piece
		}
	}
	if rest == "" {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(talks)) {
		for _, text := range talks[id].texts {
			w.judge("foreign", talks[id] != k && len(text) >= 2*tellsApart && strings.Contains(rest, text), ev, id,
				[]int{ev.request.seq}, "%s replayed a prompt of session %s: %q (without white space).", ev.Method, id, clip(text))
		}
	}
	if !w.version.states {
		w.judge("more", !k.media && len(rest) >= tellsApart, ev, "", []int{ev.request.seq},
			"%s replayed a text of the user that no prompt of the session has: %q (without white space).", ev.Method, clip(rest))
	}
}

// without replaces each of the given texts in said by a NUL byte, the longest first.
func without(said string, texts []string) string {
	var pairs []string
	for _, text := range slices.SortedStableFunc(slices.Values(texts), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, text, "\x00")
	}
	return strings.NewReplacer(pairs...).Replace(said)
}

// compareGiven checks that a replay shows the user's attachments. LOAD-WINDOW reports a replay without prompts.
func (w *watch) compareGiven(k *talk, r *replayed, ev *event) {
	if !r.prompted || r.given.Len() >= 8*rememberedText {
		return
	}
	told := r.given.String() + r.user.String() // a text may come in pieces
	owed := map[string]int{}
	for _, x := range k.given {
		if x.id == "" || slices.Contains(r.ids, x.id) {
			missing := !slices.ContainsFunc(x.needles, func(s string) bool { return strings.Contains(told, s) })
			if x.media != "" {
				owed[x.media]++
				worded := strings.Contains(strings.ToLower(r.user.String()), x.media) // for one or for all of them
				missing = !worded && r.media[x.media] < owed[x.media]
			}
			w.judge("attachment", missing, ev, "", []int{x.seq, ev.request.seq},
				"%s did not replay %s of the prompt: %q.", ev.Method, x.what, clip(x.needles[0]))
		}
	}
}

// worded returns the type, text, address and names of a content block, without white space.
func worded(content wire.Value) (words string) {
	for _, path := range []string{"type", "text", "uri", "name", "title", "mimeType", "resource.uri", "resource.text"} {
		words += bare(content.Path(path).Str()) + "\x00"
	}
	return words
}

// name returns the point to report if x is missing from a replay, and a noun for x. model has all texts of the model.
func (x *spoken) name(model string) (point, what string) {
	switch x.topic {
	case thoughtChunk:
		return "thought", "thought"
	case userChunk:
		return "user", "prompt"
	}
	return pick(strings.Contains(model, x.text.String()), "message", "notice"), "message"
}

// compareCalls checks the tool calls of a replay: by their ids if the replay keeps the ids, else by their number.
func (w *watch) compareCalls(k *talk, r *replayed, ev *event) {
	kept, owed := 0, 0
	for _, before := range k.ends {
		if before.owed {
			owed++
		}
	}
	for _, t := range ev.session.order {
		before, known := k.ends[t.id]
		if !known || t.first < ev.request.seq {
			continue
		}
		if t.by == byCall && before.owed {
			kept++
		}
		// In version 1, LOAD-WINDOW judges calls that have no end.
		other := t.status != before.status && (t.status.final() && before.owed || !t.status.final() && w.version.states)
		w.judge("status", other, ev, t.id, []int{t.seq}, "Tool call %q had ended as %s, but %s replays it as %s.", t.id,
			before.status, ev.Method, t.status)
		if t.by == byCall && before.owed && !w.version.states {
			w.compareShown(k.shown[t.id], r.shown[t.id], t, ev)
		}
	}
	if r.calls == 0 && kept == 0 {
		return // the agent may replay no tool calls at all
	}
	w.judge("call", max(kept, r.calls) < owed, ev, "", []int{ev.request.seq},
		"%s replayed %s, but %d had ended before.", ev.Method, count(max(kept, r.calls), "tool call"), owed)
}
