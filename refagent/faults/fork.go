package faults

import (
	"slices"

	"github.com/acp-test/acp-test/refagent"
)

// forkFaults are about session/fork, which the agent has where it is asked for it.
func forkFaults() []Fault {
	return []Fault{
		fault("fork-is-its-source", "answers session/fork with the id of the session that it was to fork",
			with(func(t *tap) {
				t.in = func(m message) bool {
					if !is(m, "session/fork") {
						return true
					}
					t.After(0, func() { t.Emit(respond(m["id"], object{"sessionId": sessionOf(m)})) })
					return false
				}
			})),
		fault("fork-without-history", "opens an empty session where one is to be forked", with(func(t *tap) {
			t.received = func(m message) {
				if is(m, "session/fork") {
					m["method"] = "session/new"
					delete(m.Object("params"), "sessionId")
				}
			}
		})),
		fault("fork-ends-its-source", "forgets the session that it forks", with(func(t *tap) {
			forked := map[string]bool{}
			t.received = func(m message) {
				if s := sessionOf(m); is(m, "session/fork") {
					forked[s] = true
				} else if forked[s] {
					m.Object("params")["sessionId"] = "sess_gone"
				}
			}
		})),
		fault("fork-hears-its-source", "tells the model of a forked session what is said in its source", hearSource),
	}
}

// hearSource shows the model of a forked session what its source was asked last, too.
func hearSource() hooks {
	sources, asked := map[any]string{}, map[string]string{} // by the fork; by the request
	last := map[string]refagent.ModelMessage{}              // by session
	t := &tap{}
	t.received = func(m message) {
		if is(m, "session/fork") {
			asked[key(m["id"])] = sessionOf(m)
		}
	}
	t.sending = func(f frame) {
		if answers(f, "session/fork") {
			sources[f.Message.Object("result")["sessionId"]] = asked[key(f.Message["id"])]
		}
	}
	h := t.hooks()
	h.Request = func(session string, messages []refagent.ModelMessage) []refagent.ModelMessage {
		t.mu.Lock()
		defer t.mu.Unlock()
		at := len(messages) - 1
		if at < 0 {
			return messages
		}
		last[session] = messages[at]
		if m, ok := last[sources[session]]; ok {
			messages = slices.Insert(slices.Clone(messages), at, m)
		}
		return messages
	}
	return h
}
