package faults

import (
	"encoding/json"
	"time"
)

// raceFaults are wrong only where acts come close together, in one order. No scenario of
// the suites is about any of them: a sweep finds them by trying orders and delays.
func raceFaults() []Fault {
	return []Fault{
		fault("race-cancel-after-answer", "loses a cancel that comes within 30 ms of the answer to a permission",
			with(cancelAfterAnswer)).hangs(),
		fault("race-cancel-after-mode", "loses a cancel that comes within 30 ms of a change of the mode or of an option",
			with(cancelAfterMode)).hangs(),
		fault("race-answered-twice", "answers a prompt twice that is cancelled within 5 ms of its end",
			with(answeredTwice)),
		fault("race-last-streamer",
			"takes the answer to a permission for a refusal where another session has streamed while the request was open",
			with(lastStreamer)),
		fault("race-late-cleanup", "forgets the permission that is open 40 ms after a cancelled turn of its session ended",
			with(lateCleanup)).hangs(),
		fault("race-stop-flag", "loses a cancel that another session's prompt follows within 10 ms",
			with(stopFlag)).hangs(),
		fault("race-queue-emptied",
			"queues prompts, and forgets those that came within 20 ms before a cancel", with(queueEmptied)).hangs(),
		fault("race-answer-overtakes",
			"holds words back for 5 ms that come within 10 ms of another session's, but not the answer behind them",
			with(answerOvertakes)),
		fault("race-double-release", "cannot cancel the next turn after two cancels within 20 ms",
			with(doubleRelease)).hangs(),
		fault("race-mode-frees-permission",
			"takes a refusal for a permission where the mode or an option was changed while the request was open",
			with(modeFreesPermission)),
		fault("race-new-session-eats-words", "loses words that come within 5 ms after a session was made",
			with(newSessionEatsWords)),
		fault("race-late-answer", "takes a late answer to the permission of a cancelled turn for one to the next turn's",
			with(lateAnswer)),
	}
}

// within reports whether less than d has passed since a moment.
func within(d time.Duration, since time.Time) bool { return time.Since(since) < d }

// sets reports whether a message changes the mode or an option.
func sets(m message) bool { return is(m, "session/set_mode") || is(m, "session/set_config_option") }

// questions are the permission requests of the agent that are open: their ids, and the
// sessions they are of.
type questions map[string]string

// asked notes a permission request, answered an answer to one.
func (q questions) asked(f frame) {
	if f.Method == "session/request_permission" && f.IsRequest() {
		q[key(f.Message["id"])] = f.Session
	}
}

func (q questions) answered(m message) (session string, ok bool) {
	if m["method"] != nil {
		return "", false
	}
	session, ok = q[key(m["id"])]
	delete(q, key(m["id"]))
	return session, ok
}

// choose makes a message the answer to a permission that chooses an option.
func choose(m message, option string) {
	m["result"] = object{"outcome": object{"outcome": "selected", "optionId": option}}
}

func cancelAfterAnswer(t *tap) {
	open, answered := questions{}, map[string]time.Time{}
	t.sending = open.asked
	t.in = func(m message) bool {
		if s, ok := open.answered(m); ok {
			answered[s] = time.Now()
		}
		return !is(m, "session/cancel") || !within(30*time.Millisecond, answered[sessionOf(m)])
	}
}

func cancelAfterMode(t *tap) {
	set := map[string]time.Time{}
	t.in = func(m message) bool {
		if sets(m) {
			set[sessionOf(m)] = time.Now()
		}
		return !is(m, "session/cancel") || !within(30*time.Millisecond, set[sessionOf(m)])
	}
}

func answeredTwice(t *tap) {
	ending := map[string]frame{}
	t.out = func(f frame) bool {
		if stopOf(f) != "end_turn" {
			return true
		}
		ending[f.Session] = f
		t.later(5*time.Millisecond, func() []message {
			t.Emit(f.Message)
			delete(ending, f.Session)
			return nil
		})
		return false
	}
	t.received = func(m message) {
		if f, ok := ending[sessionOf(m)]; ok && is(m, "session/cancel") {
			t.Emit(respond(f.Message["id"], object{"stopReason": "cancelled"}))
		}
	}
}

func lastStreamer(t *tap) {
	open, last := questions{}, ""
	t.sending = func(f frame) {
		open.asked(f)
		if _, tag := f.Update(); isContent(tag) || f.Method == "session/request_permission" {
			last = f.Session
		}
	}
	t.received = func(m message) {
		if s, ok := open.answered(m); ok && s != last && m["result"] != nil {
			choose(m, "reject-once")
		}
	}
}

func lateCleanup(t *tap) {
	open := questions{}
	lost := map[string]bool{}
	t.sending = func(f frame) {
		open.asked(f)
		if stopOf(f) == "cancelled" {
			t.later(40*time.Millisecond, func() []message {
				for id, s := range open {
					lost[id] = lost[id] || s == f.Session
				}
				return nil
			})
		}
	}
	t.in = func(m message) bool {
		_, answers := open.answered(m)
		return !answers || !lost[key(m["id"])]
	}
}

func stopFlag(t *tap) {
	raised := map[string]bool{} // cancels that are not seen yet
	t.in = func(m message) bool {
		s := sessionOf(m)
		if is(m, "session/prompt") {
			for o := range raised {
				if o != s {
					delete(raised, o)
				}
			}
		}
		id, busy := t.open[s]
		if !is(m, "session/cancel") || !busy {
			return true
		}
		raised[s] = true
		t.later(10*time.Millisecond, func() []message {
			seen := raised[s]
			delete(raised, s)
			if now, busy := t.open[s]; seen && busy && key(now) == key(id) {
				return []message{m}
			}
			return nil
		})
		return false
	}
}

func queueEmptied(t *tap) {
	type queued struct {
		message
		at time.Time
	}
	waiting := map[string][]queued{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		_, busy := t.open[s]
		switch {
		case is(m, "session/prompt") && busy:
			waiting[s] = append(waiting[s], queued{m, time.Now()})
			return false
		case is(m, "session/cancel"):
			for _, q := range waiting[s] {
				if !within(20*time.Millisecond, q.at) {
					t.Emit(respond(q.message["id"], object{"stopReason": "cancelled"}))
				}
			}
			delete(waiting, s)
		}
		return true
	}
	t.sending = func(f frame) {
		list := waiting[f.Session]
		if !answers(f, "session/prompt") || len(list) == 0 {
			return
		}
		waiting[f.Session] = list[1:]
		t.later(0, func() []message {
			t.open[f.Session] = list[0].message["id"]
			return []message{list[0].message}
		})
	}
}

func answerOvertakes(t *tap) {
	spoke := map[string]time.Time{}
	held := map[string][]message{}
	t.out = func(f frame) bool {
		if _, tag := f.Update(); !isContent(tag) {
			return true
		}
		s := f.Session
		spoke[s] = time.Now()
		beside := false
		for o, at := range spoke {
			beside = beside || o != s && within(10*time.Millisecond, at)
		}
		if !beside && len(held[s]) == 0 {
			return true
		}
		held[s] = append(held[s], f.Message)
		t.later(5*time.Millisecond, func() []message {
			for _, m := range held[s] {
				t.Emit(m)
			}
			delete(held, s)
			return nil
		})
		return false
	}
}

func doubleRelease(t *tap) {
	cancelled := map[string]time.Time{}
	twice, deaf := map[string]bool{}, map[string]bool{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		switch {
		case is(m, "session/prompt"):
			deaf[s], twice[s] = twice[s], false
			delete(cancelled, s)
		case is(m, "session/cancel"):
			twice[s] = twice[s] || within(20*time.Millisecond, cancelled[s])
			cancelled[s] = time.Now()
			return !deaf[s]
		}
		return true
	}
}

func modeFreesPermission(t *tap) {
	open := questions{}
	freed := map[string]bool{}
	t.sending = open.asked
	t.received = func(m message) {
		if sets(m) {
			for id, s := range open {
				freed[id] = freed[id] || s == sessionOf(m)
			}
		}
		if _, ok := open.answered(m); ok && freed[key(m["id"])] &&
			m.Object("result", "outcome")["outcome"] == "selected" {
			choose(m, "allow-once")
		}
	}
}

func newSessionEatsWords(t *tap) {
	var made time.Time
	t.out = func(f frame) bool {
		if answers(f, "session/new") {
			made = time.Now()
		}
		_, tag := f.Update()
		return tag != "agent_message_chunk" || !within(5*time.Millisecond, made)
	}
}

func lateAnswer(t *tap) {
	open := questions{}
	stale := map[string]bool{} // requests of turns that are over
	t.sending = func(f frame) {
		open.asked(f)
		if answers(f, "session/prompt") {
			for id, s := range open {
				stale[id] = stale[id] || s == f.Session
			}
		}
	}
	t.received = func(m message) {
		id := key(m["id"])
		s, ok := open.answered(m)
		if !ok || !stale[id] {
			return
		}
		for next, of := range open {
			if of == s && !stale[next] {
				m["id"] = json.RawMessage(next)
				delete(open, next)
			}
		}
	}
}
