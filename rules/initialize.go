package rules

import "github.com/acp-test/acp-test/wire"

// initEcho judges the answer to initialize.
func initEcho() Rule {
	const (
		version = iota
		refused
		early
	)
	return Rule{
		ID:       "INIT-ECHO",
		Sentence: "initialize succeeds, with the version offered if the agent speaks it, and nothing comes before that.",
		Points: []Point{
			version: {"version", Fail, []string{"INIT-004", "INIT-003"}, "version 1 was offered and another one chosen"},
			refused: {"error", Fail, []string{"INIT-005", "INIT-011"}, "initialize failed, although any version is negotiable"},
			early:   {"early-message", Lint, []string{"INIT-003"}, "a message came before initialize was answered"},
		},
		start: func(w *watch) {
			before := map[*conn]int{}
			w.on(func(ev *event) {
				if ev.Ref != ev.conn.initAsked {
					return // a second initialize is undefined
				}
				w.saw(refused)
				if seq := before[ev.conn]; seq > 0 {
					w.report(early, ev.Conn, "", "", []int{seq, ev.Seq}, "The agent sent a message before it had answered initialize.")
				}
				w.saw(early)
				if ev.err.Exists() {
					if ev.request.valid {
						w.find(refused, ev, "", []int{ev.Ref}, "initialize failed with %d %q; an agent that does not speak the offered version answers with its own.", ev.code(), clip(ev.err.Get("message").Str()))
					}
					return
				}
				if ev.conn.offered == 1 {
					w.saw(version)
					if got := ev.result.Get("protocolVersion"); got.Kind() == wire.Number {
						if n, ok := got.Int(); ok && n != 1 {
							w.find(version, ev, "", []int{ev.Ref}, "The client offered version 1 and the agent chose %d.", n)
						}
					}
				}
			}, answered(initialize))
			speak := func(ev *event) {
				if ev.conn.initDone == 0 && before[ev.conn] == 0 {
					before[ev.conn] = ev.Seq
				}
			}
			w.on(speak, allUpdates()...)
			w.on(speak, agentRequests()...)
			w.on(speak, agentOtherTold)
		},
	}
}
