package invariants

import "strings"

// capGate judges that the agent uses only what the client said it can do, and
// that what the agent itself said it can do exists. A recording that begins
// after initialize shows no capabilities; then nothing is judged.
func capGate() *rule {
	r := ofAgent("CAP-GATE",
		"Methods and shapes that need a capability are used only with it, and an advertised method exists.")
	read := r.Fail("read-file", "fs/read_text_file without the client's fs.readTextFile", "FS-001", "INIT-009")
	write := r.Fail("write-file", "fs/write_text_file without the client's fs.writeTextFile", "FS-002", "INIT-009")
	terminal := r.Fail("terminal", "terminal/* without the client's terminal", "TERM-001", "INIT-009")
	boolean := r.Fail("boolean-option",
		"a boolean config option without the client's session.configOptions.boolean", "CONFIG-006", "INIT-009")
	elicitation := r.Fail("elicitation",
		"elicitation/create in a mode the client does not offer", "ELICIT-001", "ELICIT-002", "INIT-009")
	plan := r.Fail("plan-update", "plan_update or plan_removed without the client's plan", "USTB-001", "INIT-009")
	compaction := r.Fail("compaction",
		"a compaction update without the client's session.compaction", "USTB-002", "INIT-009")
	advertised := r.Fail("advertised", "a method the agent advertised does not exist", "INIT-022")
	baseline := r.Fail("baseline", "a method every agent must have does not exist", "INIT-018")
	r.Versions = []int{1}
	return r.watching(func(w *watch) {
		need := func(point int, capability string, has func(clientCaps) bool) func(*event) {
			return func(ev *event) {
				if ev.conn.initAsked == 0 {
					return
				}
				w.Saw(point)
				if !has(ev.conn.client) {
					w.find(point, ev, ev.Method, []int{ev.conn.initAsked}, "The agent sent %s, but the client did not advertise %s.",
						ev.Method, capability)
				}
			}
		}
		w.on(need(read, "fs.readTextFile", func(c clientCaps) bool { return c.read }), asked(readFile))
		w.on(need(write, "fs.writeTextFile", func(c clientCaps) bool { return c.write }), asked(writeFile))
		w.on(need(terminal, "terminal", func(c clientCaps) bool { return c.terminal }), asked(createTerminal))
		w.on(need(terminal, "terminal", func(c clientCaps) bool { return c.terminal }), terminalUses()...)
		w.on(func(ev *event) {
			mode := ev.params.Get("mode").Str()
			if ev.conn.initAsked == 0 || mode != "form" && mode != "url" {
				return
			}
			w.Saw(elicitation)
			c := ev.conn.client
			if mode == "form" && !c.form || mode == "url" && !c.url {
				f := w.find(elicitation, ev, mode, []int{ev.conn.initAsked},
					"The agent asked for elicitation in mode %q, but the client did not advertise elicitation.%s.", mode, mode)
				w.Narrow(f, "ELICIT-001", "INIT-009")
			}
		}, asked(elicit))
		w.on(func(ev *event) {
			if ev.conn.initAsked == 0 {
				return
			}
			tag := ev.update.Get("sessionUpdate").Str()
			c := ev.conn.client
			switch {
			case tag == "plan_update" || tag == "plan_removed":
				w.Saw(plan)
				if !c.plan {
					w.find(plan, ev, tag, []int{ev.conn.initAsked}, "The agent sent %s, but the client did not advertise plan.", tag)
				}
			case strings.HasPrefix(tag, "compaction_"):
				w.Saw(compaction)
				if !c.compaction {
					w.find(compaction, ev, tag, []int{ev.conn.initAsked},
						"The agent sent %s, but the client did not advertise session.compaction.", tag)
				}
			}
		}, otherUpdate)
		w.on(func(ev *event) {
			for _, o := range ev.options {
				w.Saw(boolean)
				if o.boolean && ev.conn.initAsked > 0 && !ev.conn.client.boolean {
					w.find(boolean, ev, o.id, []int{ev.conn.initAsked},
						"The config option %q is boolean, but the client did not advertise session.configOptions.boolean.", o.id)
				}
			}
		}, optionsUpdate, answered(newSession), answered(loadSession), answered(resumeSession), answered(forkSession),
			answered(setOption))

		exists := func(point int, has func(*event) bool) func(*event) {
			return func(ev *event) {
				if ev.conn.initDone == 0 || !has(ev) {
					return
				}
				w.Saw(point)
				if ev.code() == -32601 {
					w.find(point, ev, ev.Method, []int{ev.conn.initDone, ev.Ref},
						"%s was answered with \"method not found\" (-32601), although %s.",
						ev.Method, pick(point == baseline, "every agent must have it", "the agent advertises it"))
				}
			}
		}
		for v, has := range map[verb]func(agentCaps) bool{
			loadSession:   func(c agentCaps) bool { return c.load },
			resumeSession: func(c agentCaps) bool { return c.resume },
			listSessions:  func(c agentCaps) bool { return c.list },
			closeSession:  func(c agentCaps) bool { return c.close },
			deleteSession: func(c agentCaps) bool { return c.remove },
			logout:        func(c agentCaps) bool { return c.out },
		} {
			w.on(exists(advertised, func(ev *event) bool { return has(ev.conn.agent) }), answered(v))
		}
		w.on(exists(advertised, func(ev *event) bool { return ev.session != nil && ev.session.modes != nil }),
			answered(setMode))
		w.on(exists(advertised, func(ev *event) bool { return ev.session != nil && len(ev.session.options) > 0 }),
			answered(setOption))
		w.on(exists(baseline, func(*event) bool { return true }), answered(newSession), answered(prompt))
	})
}
