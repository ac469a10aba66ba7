package invariants

import (
	"fmt"
	"unicode/utf8"

	"github.com/acp-test/acp-test/wire"
)

// clientModeListed judges that the client chooses from what was offered.
func clientModeListed() *rule {
	r := ofClient("C-MODE-LISTED", "The client chooses modes, config values and auth methods from what the agent offered.")
	mode := r.Fail("mode", "a mode was set that is not available", "MODE-003")
	option := r.Fail("option", "a config option was set that is not offered, or to a value that is not", "CONFIG-016")
	login := r.Fail("auth-method", "authenticate names a method that was not offered", "AUTH-005")
	terminal := r.Fail("terminal-method", "authenticate names a method of type terminal", "AUTH-004")
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			if s := ev.session; s != nil && s.modes != nil {
				w.Saw(mode)
				if id := ev.params.Get("modeId").Str(); !s.modes.has(id) {
					w.find(mode, ev, id, nil, "The client set mode %q, which is not available.", id)
				}
			}
		}, asked(setMode))
		w.on(func(ev *event) {
			s := ev.session
			if s == nil || s.options == nil {
				return
			}
			w.Saw(option)
			id, value := ev.params.Get("configId").Str(), ev.params.Get("value")
			o := findOption(s.options, id)
			switch {
			case o == nil:
				w.find(option, ev, id, nil, "The client set config option %q, which is not offered.", id)
			case o.boolean && value.Kind() != wire.Bool:
				w.find(option, ev, id, nil, "The client set the boolean config option %q to %s.", id, clip(string(value.Raw())))
			case o.selects && !o.has(value.Str()):
				w.find(option, ev, id, nil, "The client set config option %q to %s, which is not offered.", id,
					clip(string(value.Raw())))
			}
		}, asked(setOption))
		w.on(func(ev *event) {
			if ev.conn.initDone == 0 {
				return
			}
			w.Saw(login, terminal)
			id := ev.params.Get("methodId").Str()
			needsTerminal, offered := ev.conn.methods[id]
			if !offered {
				w.find(login, ev, id, []int{ev.conn.initDone}, "The client authenticates with method %q, which was not offered.",
					id)
			} else if needsTerminal {
				w.find(terminal, ev, id, []int{ev.conn.initDone},
					"The client authenticates with method %q, which is for a terminal.", id)
			}
		}, asked(authenticate))
	})
}

// clientCursor judges that cursors come from the agent.
func clientCursor() *rule {
	r := ofClient("C-CURSOR", "A cursor is one that the agent gave on this connection.")
	cursor := r.Fail("cursor", "a list was asked for with a cursor that the agent never gave", "LIST-010")
	return r.watching(func(w *watch) {
		given := map[*conn]map[string]bool{}
		w.on(func(ev *event) {
			if next := ev.result.Get("nextCursor"); next.Kind() == wire.String {
				if given[ev.conn] == nil {
					given[ev.conn] = map[string]bool{}
				}
				if len(given[ev.conn]) < rememberedRequests {
					given[ev.conn][next.Str()] = true
				}
			}
		}, answered(listSessions))
		w.on(func(ev *event) {
			c := ev.params.Get("cursor")
			if c.Kind() != wire.String || len(given[ev.conn]) >= rememberedRequests {
				return
			}
			w.Saw(cursor)
			if !given[ev.conn][c.Str()] {
				w.find(cursor, ev, c.Str(), nil, "The client used cursor %q, which the agent never gave.", c.Str())
			}
		}, asked(listSessions))
	})
}

// clientElicitCode judges how unadvertised elicitations are refused.
func clientElicitCode() *rule {
	r := ofClient("C-ELICIT-CODE", "An elicitation in a mode that was not advertised is answered with -32602.")
	code := r.Fail("code", "an unadvertised elicitation got another answer than -32602", "ELICIT-016")
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			c := ev.conn.client
			mode := ev.request.mode
			if ev.conn.initAsked == 0 || !c.form && !c.url || mode == "form" && c.form || mode == "url" && c.url {
				return
			}
			w.Saw(code)
			if ev.code() != -32602 {
				w.find(code, ev, fmt.Sprint(ev.Ref), []int{ev.Ref},
					"The client did not advertise elicitation in mode %q, but did not answer with -32602.", mode)
			}
		}, answered(elicit))
	})
}

// clientTermUTF8 judges the output of terminals.
func clientTermUTF8() *rule {
	r := ofClient("C-TERM-UTF8", "The output of a terminal is cut to its byte limit at the boundary of a character.")
	limit := r.Fail("limit", "the output of a terminal is longer than its limit", "TERM-011")
	text := r.Fail("boundary", "the output of a terminal begins in the middle of a character", "TERM-011")
	return r.watching(func(w *watch) {
		limits := map[*conn]map[string]int64{}
		w.on(func(ev *event) {
			id := ev.result.Get("terminalId").Str()
			if id == "" || ev.request.limit < 0 {
				return
			}
			if limits[ev.conn] == nil {
				limits[ev.conn] = map[string]int64{}
			}
			if len(limits[ev.conn]) < rememberedTerms {
				limits[ev.conn][id] = ev.request.limit
			}
		}, answered(createTerminal))
		w.on(func(ev *event) {
			output := ev.result.Get("output")
			if output.Kind() != wire.String {
				return
			}
			content := output.Str()
			w.Saw(text)
			if cut, _ := ev.result.Get("truncated").Bool(); cut || output.LoneSurrogate() {
				if r, size := utf8.DecodeRuneInString(content); r == utf8.RuneError && size > 0 || output.LoneSurrogate() {
					w.find(text, ev, ev.request.terminal, []int{ev.Ref},
						"The output of terminal %q was cut in the middle of a character.", ev.request.terminal)
				}
			}
			most, limited := limits[ev.conn][ev.request.terminal]
			if !limited {
				return
			}
			w.Saw(limit)
			if int64(len(content)) > most {
				w.find(limit, ev, ev.request.terminal, []int{ev.Ref},
					"The output of terminal %q is %d bytes long, its limit is %d.", ev.request.terminal, len(content), most)
			}
		}, answered(terminalOutput))
	})
}
