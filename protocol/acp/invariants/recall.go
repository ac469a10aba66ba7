package invariants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/rules"
)

// callSet is a set of tool calls. A key is the call's id, or name and arguments if the model's API has no ids.
type callSet map[string]bool

// source has the history of a session at the time of a session/fork.
type source struct {
	past   []*spoken
	given  []*given
	spoken []string
	vague  bool
}

// forking remembers what the source of a fork has when the fork is requested.
func (w *contextWatch) forking(ev *event) {
	id := ev.Session
	_, known := w.past[id]
	rules.Remember(w.forks, rememberedRequests, ev.Seq, source{slices.Clone(w.past[id]), slices.Clone(w.given[id]),
		slices.Clone(w.spoken[id]), w.vague[id] || !known || ev.session == nil || len(ev.session.open) > 0})
}

// forked takes what is known of a session over to its fork.
func (w *contextWatch) forked(ev *event) {
	from, asked := w.forks[ev.Ref]
	delete(w.forks, ev.Ref)
	id := ev.result.Get("sessionId").Str()
	switch {
	case !ev.succeeded():
	case !asked || from.vague || len(w.past) >= rememberedSessions:
		w.vague[id] = true
	default:
		w.past[id], w.given[id], w.spoken[id] = from.past, from.given, from.spoken
	}
}

// repeats records which blocks that an earlier prompt had are missing behind the model's latest reply.
func (w *contextWatch) repeats(g *given, s *session, a fakellm.Asked, all string) {
	past := w.past[s.id]
	if g.judged || a.Partial || w.vague[s.id] || w.version.states || len(past) == 0 ||
		past[len(past)-1].topic != agentChunk {
		return // version 2 does not say which reply ends a turn
	}
	text := past[len(past)-1].text.String()
	at := strings.LastIndex(all, text)
	if at < 0 || len(text) < tellsApart {
		return
	}
	for i := range g.blocks {
		if b := &g.blocks[i]; b.told {
			b.stale = b.in(all[at+len(text):], "") < 0
		}
	}
}

// keepsResults checks that a model request does not have, for an earlier call, the result of another call. A model
// server may use an id for several calls. An agent may shorten or clear results.
func (w *contextWatch) keepsResults(ev *event, s *session, a fakellm.Asked) {
	if a.Partial || w.vague[s.id] {
		return
	}
	if w.results[s.id] == nil {
		rules.Remember(w.results, rememberedSessions, s.id, map[string]string{})
	}
	known, nth := w.results[s.id], map[string]int{}
	for _, p := range a.Conversation() {
		if p.Who != "result" || p.Call == "" {
			continue
		}
		nth[p.Call]++
		key, text := fmt.Sprint(p.Call, " ", nth[p.Call]), bare(p.Text)
		if len(text) > wholeText || len(text) < tellsApart { // short results are often equal
			continue
		}
		before, found := known[key]
		if w.Saw("result"); found && before != text && slices.Contains(slices.Collect(maps.Values(known)), text) {
			w.find("result", ev, s.id, nil,
				"The model request has the result %q for tool call %s, but that is the result of another call. The request "+
					"before had %q (without white space).", clip(text), p.Call, clip(before))
		}
		if w.resultBytes < 4*rememberedText && known != nil && !found {
			w.resultBytes += len(text)
			known[key] = text
		}
	}
}

// restored replaces the tool calls known of a session by their number. After a restore, the agent may send the model
// new ids, or text instead of some calls, but must send at least one call.
func (w *contextWatch) restored(ev *event) {
	if n := len(w.called[ev.Session]); n > 0 {
		w.before[ev.Session] = n
	}
	delete(w.called, ev.Session)
	delete(w.results, ev.Session)
}

// keeps checks that a model request contains the attachments of earlier prompts.
func (w *contextWatch) keeps(ev *event, s *session, said, raw string) {
	for _, g := range w.given[s.id] {
		for _, b := range g.blocks {
			if !b.reached || b.point == "text" || w.vague[s.id] {
				continue
			}
			if w.Saw("attachment"); b.in(said, raw) < 0 {
				w.find("attachment", ev, s.id, []int{g.seq},
					"The model request lacks %s of an earlier prompt, which an earlier request had: %q.",
					b.what, clip(b.needles[0]))
				w.vague[s.id] = true // report once per session
			}
		}
	}
}

// remembers checks that a model request contains the earlier turns of the session.
func (w *contextWatch) remembers(ev *event, s *session, all string) {
	for _, p := range w.cancelled[s.id] {
		if p.seq > s.named {
			w.judge("after-cancel", !strings.Contains(all, p.text.String()), ev, s.id, []int{p.seq},
				"The model request lacks the prompt of the cancelled turn: %q (without white space).",
				clip(p.text.String()))
		}
	}
	past := w.past[s.id]
	if len(past) == 0 {
		return
	}
	point := "forgotten"
	switch {
	case past[len(past)-1].seq > s.named: // the latest message is newer than the load
	case s.resumed:
		point = "not-resumed"
	case s.restSeq > 0:
		point = "not-loaded"
	}
	w.Saw(point)
	for _, p := range past {
		if !strings.Contains(all, p.text.String()) {
			what := pick(p.topic == userChunk, "the user", "the model")
			w.find(point, ev, s.id, []int{p.seq},
				"The model request lacks a message of %s from an earlier turn of the session: %q (without white "+
					"space).", what, clip(p.text.String()))
			w.vague[s.id] = true // report once per session
			return
		}
	}
}

// recalls checks that a model request contains the tool calls of earlier requests, and reports whether it has all of
// them and a new one. The model's API checks that each call has its result.
func (w *contextWatch) recalls(ev *event, s *session, g *given, a fakellm.Asked) bool {
	now := callSet{}
	for _, p := range a.Conversation() {
		if p.Calls {
			now[cmp.Or(p.Call, p.Name+" "+p.Text)] = true
		}
	}
	if n := w.before[s.id]; n > 0 {
		delete(w.before, s.id)
		w.judge("calls", len(now) == 0, ev, s.id, []int{s.named},
			"The model request of the restored session has no tool call, although %d were made before.",
			n)
		if len(now) > 0 {
			w.restoredAround(ev, s, a)
		}
	}
	if g.called == nil {
		g.called = maps.Clone(w.called[s.id])
	}
	for _, call := range slices.Sorted(maps.Keys(g.called)) {
		if w.Saw("calls"); !now[call] {
			w.find("calls", ev, s.id, nil,
				"The model request lacks a tool call that an earlier request of the session had: %s.", clip(call))
			w.vague[s.id] = true // report once per session
			return false
		}
	}
	more := len(now) > len(g.called)
	g.called = now
	return more
}

// isolated checks that a model request contains no prompt of another session.
func (w *contextWatch) isolated(ev *event, s *session, said string) {
	const longEnough = 16 // bytes; shorter texts may match by chance
	own := strings.Join(w.spoken[s.id], "\n")
	for _, id := range slices.Sorted(maps.Keys(w.spoken)) {
		if id == s.id || w.vague[id] {
			continue
		}
		w.Saw("foreign")
		for _, text := range w.spoken[id] {
			if len(text) >= longEnough && strings.Contains(said, text) && !strings.Contains(own, text) {
				w.find("foreign", ev, id, nil,
					"The model request of session %s contains a prompt of session %s: %q (without white space).",
					s.id, id, clip(text))
			}
		}
	}
}
