package faults

import (
	"context"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

func sessionFaults() []Fault {
	return []Fault{
		fault("close-returns-early", "answers session/close before the prompt that runs has stopped",
			with(func(t *tap) { closeEarly(t, 200*time.Millisecond) })).copies("anomalyco/opencode#49563"),
		fault("close-leaves-prompt", "forgets the running prompt of a session that is closed",
			with(func(t *tap) { closeEarly(t, 0) })).copies("PrimeIntellect-ai/prime-agent#613").hangs(),
		fault("close-keeps-talking", "sends updates of a session after it was closed", with(func(t *tap) {
			t.out = func(f frame) bool {
				if answers(f, "session/close") && f.Session != "" {
					t.Emit(f.Message)
					t.Emit(updateOf(f.Session, object{"sessionUpdate": "session_info_update", "title": "Closed"}))
					return false
				}
				return true
			}
		})).copies("openclaw/openclaw#109973"),
		fault("deleted-session-listed", "keeps listing sessions that were deleted",
			func() refagent.Hooks { return refagent.Hooks{Keep: true} }).copies("shindgew/agy-acp#77"),
		fault("unknown-session-made", "answers a prompt for an unknown session as if it were there",
			with(answerUnknown)),
		fault("second-prompt-steals-cancel", "runs a second prompt beside the first, which no cancel reaches any more",
			func() refagent.Hooks { return refagent.Hooks{Busy: func(string, bool) bool { return false }} }).
			copies("zeroclaw-labs/zeroclaw#6408").hangs(),
		fault("second-prompt-swallowed", "answers a prompt to a busy session with end_turn and does nothing",
			with(func(t *tap) {
				t.in = func(m message) bool {
					if _, busy := t.open[sessionOf(m)]; is(m, "session/prompt") && busy {
						t.Emit(respond(m["id"], object{"stopReason": "end_turn"}))
						return false
					}
					return true
				}
			})).copies("XiaomiMiMo/MiMo-Code#2290"),
		fault("new-session-ends-others", "cancels the prompts of other sessions when a session is made",
			with(newEndsOthers)).copies("svkozak/pi-acp#131"),
		fault("sessions-block-each-other", "runs one prompt at a time, whatever session it belongs to",
			oneAtATime).hangs(),
		fault("sessions-share-history", "shows the model the conversations of all sessions", shareHistory),
	}
}

// closeEarly answers session/close by itself, and lets the agent know of it
// some time after, or never.
func closeEarly(t *tap, wait time.Duration) {
	closing := map[string]any{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		if _, open := t.open[s]; !is(m, "session/close") || !open {
			return true
		}
		closing[s] = m["id"]
		t.Emit(respond(m["id"], object{}))
		if wait > 0 {
			t.later(wait, func() []message { return []message{m} })
		}
		return false
	}
	t.out = func(f frame) bool { return !answers(f, "session/close") || closing[f.Session] == nil }
}

func answerUnknown(t *tap) {
	t.sending = func(f frame) {
		if answers(f, "session/prompt") && f.Session == "" && f.Message["error"] != nil {
			delete(f.Message, "error")
			f.Message["result"] = object{"stopReason": "end_turn"}
		}
	}
}

// oneAtATime holds a turn at its start until every other one has ended.
func oneAtATime() refagent.Hooks {
	turn := make(chan struct{}, 1)
	var mu sync.Mutex
	holder := ""
	return refagent.Hooks{
		TurnStart: func(ctx context.Context, session string) {
			select {
			case turn <- struct{}{}:
				mu.Lock()
				holder = session
				mu.Unlock()
			case <-ctx.Done():
			}
		},
		Stop: func(session, reason string, err error) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if holder == session {
				holder = ""
				<-turn
			}
			return reason, err
		},
	}
}

func shareHistory() refagent.Hooks {
	var mu sync.Mutex
	said := map[string][]refagent.ModelMessage{}
	return refagent.Hooks{Request: func(session string, messages []refagent.ModelMessage) []refagent.ModelMessage {
		mu.Lock()
		defer mu.Unlock()
		var all []refagent.ModelMessage
		for s, list := range said {
			if s != session {
				all = append(all, list...)
			}
		}
		said[session] = messages
		return append(all, messages...)
	}}
}

// newEndsOthers makes the new session when the prompts of the others have ended, as
// an agent does that has one place for what runs.
func newEndsOthers(t *tap) {
	var made message // the session/new that waits
	t.in = func(m message) bool {
		if !is(m, "session/new") || len(t.open) == 0 {
			return true
		}
		for s := range t.open {
			t.give(cancelOf(s))
		}
		made = m
		return false
	}
	t.sending = func(f frame) {
		if _, open := t.open[f.Session]; made != nil && open && answers(f, "session/prompt") && len(t.open) == 1 {
			t.give(made)
			made = nil
		}
	}
}
