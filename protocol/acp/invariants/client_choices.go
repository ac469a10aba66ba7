package invariants

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// clientModeListed checks that the client chooses only modes and options that the agent offered.
func clientModeListed(w *watch) {
	w.On(func(ev *event) {
		if s, id := ev.session, ev.params.Get("modeId").Str(); s != nil && s.modes != nil {
			w.judge("mode", !s.modes.has(id), ev, id, nil, "The client set mode %q, which is not available.", id)
		}
	}, asked(setMode))
	w.inSession(func(ev *event, s *session) {
		if s.options == nil {
			return
		}
		w.Saw("option")
		id, value := ev.params.Get("configId").Str(), ev.params.Get("value")
		o := findOption(s.options, id)
		switch {
		case o == nil:
			w.find("option", ev, id, nil, "The client set config option %q, which the agent does not offer.", id)
		case o.boolean && value.Kind() != wire.Bool:
			w.find("option", ev, id, nil, "The client set the boolean config option %q to %s.", id, clip(string(value.Raw())))
		case o.selects && !o.has(value.Str()):
			w.find("option", ev, id, nil, "The client set config option %q to %s, which the agent does not offer.",
				id, clip(string(value.Raw())))
		}
	}, asked(setOption))
	w.On(func(ev *event) {
		c, id := ev.conn, ev.params.Get("methodId").Str()
		if c.initDone == 0 {
			return
		}
		if w.Has("no-method") && len(c.methods) == 0 || ev.verb == logout {
			w.judge("no-method", len(c.methods) == 0, ev, ev.Method, nil,
				"The client called %s, but the agent offers no auth method.", ev.Method)
			return
		}
		w.Saw("no-method")
		inTerminal, offered := c.methods[id]
		w.judge("auth-method", !offered, ev, id, []int{c.initDone},
			"The client authenticates with method %q, which the agent did not offer.", id)
		w.judge("terminal-method", inTerminal, ev, id, []int{c.initDone},
			"The client calls authenticate with method %q, which is of type terminal.", id)
	}, asked(authenticate), asked(logout))
}

// clientCursor checks that the client sends only cursors that the agent returned.
func clientCursor(w *watch) {
	given := map[named]bool{}
	w.On(func(ev *event) {
		if next := ev.result.Get("nextCursor"); next.Kind() == wire.String {
			rules.Remember(given, rememberedRequests, named{ev.conn, next.Str()}, true)
		}
	}, answered(listSessions))
	w.On(func(ev *event) {
		if c := ev.params.Get("cursor"); c.Kind() == wire.String && len(given) < rememberedRequests {
			w.judge("cursor", !given[named{ev.conn, c.Str()}], ev, c.Str(), nil,
				"The client used cursor %q, which the agent never returned.", c.Str())
		}
	}, asked(listSessions))
}

// named is a name, such as a cursor, together with its connection.
type named struct {
	conn *conn
	name string
}

// clientElicitCode checks the error code with which the client refuses an elicitation mode that it did not advertise.
func clientElicitCode(w *watch) {
	v := w.version
	modes := v.gates("CreateElicitationRequest")
	w.On(func(ev *event) {
		c, mode := ev.conn, ev.request.mode
		has := func(mode string) bool { return c.has(rules.OfClient, modes[mode]) }
		if c.initAsked == 0 || !has("form") && !has("url") || modes[mode] != "" && has(mode) {
			return
		}
		w.judge("code", ev.code() != -32602, ev, fmt.Sprint(ev.Ref), []int{ev.Ref},
			"The client did not advertise elicitation in mode %q, so it should have answered with -32602.", mode)
	}, answered(elicit))
}

// clientTermUTF8 checks that the client cuts terminal output only between characters, and to the requested limit.
func clientTermUTF8(w *watch) {
	limits := map[named]int64{}
	w.On(func(ev *event) {
		if id := ev.result.Get("terminalId").Str(); id != "" && ev.request.limit >= 0 {
			rules.Remember(limits, rememberedTerms, named{ev.conn, id}, ev.request.limit)
		}
	}, answered(createTerminal))
	w.On(func(ev *event) {
		output, id := ev.result.Get("output"), ev.request.terminal
		if output.Kind() != wire.String {
			return
		}
		content := output.Str()
		first, size := utf8.DecodeRuneInString(content)
		cut, _ := ev.result.Get("truncated").Bool()
		w.judge("boundary", cut && first == utf8.RuneError && size > 0 || output.LoneSurrogate(), ev, id, []int{ev.Ref},
			"The client cut the output of terminal %q in the middle of a character.", id)
		if most, limited := limits[named{ev.conn, id}]; limited {
			w.judge("limit", int64(len(content)) > most, ev, id, []int{ev.Ref},
				"The output of terminal %q is %d bytes long, but its limit is %d.", id, len(content), most)
		}
	}, answered(terminalOutput))
}

// clientPermCancel checks that a client answers permission requests with cancelled after it cancelled the turn, and
// does not answer so otherwise. A request without a reject option may always be answered with cancelled.
func clientPermCancel(w *watch) {
	w.On(func(ev *event) {
		t := ev.request.turn
		if t == nil || t.ended > 0 {
			return
		}
		if a, _ := t.stopper(); a == nil && !t.disturbed {
			if w.Saw("denied"); ev.request.back == nil && ev.outcome("cancelled") && ev.request.refusable() {
				w.find("denied", ev, fmt.Sprint(ev.Ref), []int{ev.Ref},
					"The client denied a permission with cancelled instead of a reject option, but nobody had "+
						"cancelled the turn.")
			}
		}
		if t.cancel != nil {
			told := ev.outcome("cancelled") || ev.request.back != nil && ev.code() == -32800
			w.judge("outcome", !told, ev, fmt.Sprint(ev.Ref), []int{t.cancel.seq, ev.Ref},
				"The client cancelled the turn, but did not answer the turn's permission request with cancelled.")
		}
	}, answered(permission))
}

// refusable reports whether a permission request has an option that rejects.
func (r *request) refusable() bool {
	return slices.ContainsFunc(r.options, func(o permit) bool { return strings.HasPrefix(o.kind, "reject_") })
}

// clientPermOffered checks that the client selects an option that the agent offered. A version 2 client that cancelled
// the turn may still let the user choose, because background work may go on. Once a client has seen that the agent
// cancelled its permission request, the client must answer cancelled.
func clientPermOffered(w *watch) {
	w.On(func(ev *event) {
		if !ev.outcome("selected") {
			return
		}
		w.Saw("option", "taken-back", "after-cancel")
		if _, known := ev.chosen(); !known {
			w.find("option", ev, fmt.Sprint(ev.Ref), []int{ev.Ref}, "The client selected option %q, which was not offered.",
				ev.result.Path("outcome.optionId").Str())
		}
		switch gone := ev.request.back; {
		case gone != nil && ev.conn.heard > gone.seq:
			w.find("taken-back", ev, "", []int{ev.Ref, gone.seq},
				"The client chose an option of a permission request after the agent had cancelled the request and "+
					"the client had answered later ones.")
		case ev.request.late:
			w.find("after-cancel", ev, "", []int{ev.Ref},
				"The client chose an option of a permission request after it had cancelled the work.")
		}
	}, answered(permission))
}
