package second

import (
	"encoding/base64"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// greeting judges the answer to initialize.
func greeting() *rule {
	r := newRule("V2-GREETING", "initialize is answered with the highest version at or below the one asked for.")
	higher := r.Fail("higher", "the answer has a higher version than the one asked for", "INIT-001")
	data := r.Fail("no-data", "error -32022 does not say which versions there are", "INIT-001")
	spoken := r.Fail("refused", "a version was refused that the error says is spoken", "INIT-001")
	terminal := r.Fail("terminal-login", "a terminal login is offered to a client that cannot show one", "INIT-005")
	r.see = func(w *watch, ev *event) {
		if !ev.answers("initialize") || ev.asked == nil {
			return
		}
		asked := ev.asked.version
		if asked < 0 {
			return
		}
		w.Saw(higher)
		if chosen, ok := ev.result.Get("protocolVersion").Int(); ok && chosen > asked {
			w.find(higher, ev, "", []int{ev.Ref}, "The client asked for version %d, and the agent answered with %d.", asked,
				chosen)
		}
		if code, _ := ev.err.Get("code").Int(); code == -32022 {
			w.Saw(data, spoken)
			supported := ev.err.Path("data.supported")
			if n, ok := ev.err.Path("data.requested").Int(); !ok || n != asked || supported.Kind() != wire.Array {
				w.find(data, ev, "", []int{ev.Ref}, "Error -32022 has no data with requested %d and supported.", asked)
			}
			for v := range supported.Items() {
				if n, ok := v.Int(); ok && n <= asked {
					w.find(spoken, ev, "", []int{ev.Ref}, "Version %d was refused, although version %d is supported.", asked, n)
				}
			}
		}
		if !ev.asked.terminal {
			for m := range ev.result.Get("authMethods").Items() {
				w.Saw(terminal)
				if m.Get("type").Is("terminal") {
					w.find(terminal, ev, "", []int{ev.Ref},
						"The agent offers the terminal login %q to a client without auth.terminal.",
						m.Get("methodId").Str())
				}
			}
		}
	}
	return r
}

// errorData judges errors about sessions.
func errorData() *rule {
	r := newRule("V2-ERROR", "An error about an unknown session names it.")
	data := r.Fail("no-session", "error -32002 has no data with the session", "RPC-005")
	r.see = func(w *watch, ev *event) {
		if !ev.agent() || ev.Kind != transcript.Response || ev.asked == nil || ev.asked.session == nil {
			return
		}
		if code, _ := ev.err.Get("code").Int(); code != -32002 || !strings.HasPrefix(ev.Method, "session/") {
			return
		}
		w.Saw(data)
		if want := ev.asked.session.id; !ev.err.Path("data.sessionId").Is(want) {
			w.find(data, ev, "", []int{ev.Ref}, "Error -32002 has no data with sessionId %q.", want)
		}
	}
	return r
}

// states judges the states of a session.
func states() *rule {
	r := newRule("V2-STATES", "Work in the foreground is told by states: running, requires_action, idle.")
	silent := r.Fail("not-running", "the agent works for a prompt and has not said that it runs", "PRM-003")
	reason := r.Warn("no-reason", "the idle state that ends work has no stop reason", "PRM-004")
	failure := r.Warn("no-error", "the stop reason error has no error beside it", "ERR-001")
	blocked := r.Warn("still-waiting", "work goes on in the state requires_action", "STA-001")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || ev.kind == "" || s.resume != nil {
			return
		}
		if ev.kind == "state_update" {
			if !ev.u.Get("state").Is("idle") || !s.active {
				return
			}
			w.Saw(reason)
			stop := ev.u.Get("stopReason")
			if stop.Kind() != wire.String {
				w.find(reason, ev, "", []int{s.stateSeq}, "The idle state that ends the work has no stopReason.")
			}
			if stop.Is("error") {
				w.Saw(failure)
				if ev.u.Get("error").Kind() != wire.Object {
					w.find(failure, ev, "", nil, "The stop reason error has no error beside it.")
				}
			}
			return
		}
		said := strings.HasPrefix(ev.kind, "agent_message") || strings.HasPrefix(ev.kind, "agent_thought")
		if !said {
			return
		}
		if p := s.running(); p != nil && !s.reported {
			w.Saw(silent)
			if !s.active && s.stateSeq < p.answered {
				w.find(silent, ev, "", []int{p.seq}, "The agent sends %s for the prompt, and has not told the state running.",
					ev.kind)
			}
		}
		if s.state == "requires_action" && !s.reported {
			w.Saw(blocked)
			w.find(blocked, ev, "", []int{s.stateSeq}, "The agent sends %s while it says that it waits for the user.", ev.kind)
		}
	}
	return r
}

// running is the oldest prompt that is part of the conversation, and whose work is not over.
func (s *session) running() *prompt {
	for _, p := range s.prompts {
		if p.answered > 0 && !p.failed && !p.ended {
			return p
		}
	}
	return nil
}

// cancels judges how work ends that was cancelled.
func cancels() *rule {
	r := newRule("V2-CANCEL", "Cancelled work ends with its last updates, and then idle with cancelled.")
	other := r.Inconclusive("other-reason", "the work ended with another reason, which may have crossed the cancel",
		"CAN-001")
	late := r.Fail("late-update", "an update of a tool call of the cancelled work comes after idle with cancelled",
		"CAN-001")
	queued := r.Fail("inserted", "a prompt that the cancel ended becomes part of the conversation", "CAN-002")
	code := r.Warn("queued-code", "a prompt that the cancel ended has another error than -32800", "CAN-002")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil {
			return
		}
		switch {
		case ev.kind == "state_update" && ev.u.Get("state").Is("idle") && s.cancel > 0 && s.active:
			w.Saw(other)
			if stop := ev.u.Get("stopReason").Str(); stop != "cancelled" {
				w.find(other, ev, "", []int{s.cancel}, "The work ended with %q after the cancel; the two may have crossed.", stop)
			}
		case ev.kind == "tool_call_update" && s.cancelled > 0 && s.resume == nil:
			id := ev.u.Get("toolCallId").Str()
			t := s.tools[id]
			w.Saw(late)
			if t != nil && t.first < s.cancelled && t.ended == 0 && t.turn == len(s.prompts) && !s.listed["tool call "+id] {
				w.find(late, ev, id, []int{s.cancelled}, "Tool call %q is updated after the state idle with cancelled.", id)
			}
		case ev.answers("session/prompt") && ev.asked != nil && ev.asked.prompt != nil && ev.asked.prompt.cancelled > 0 &&
			s.cancelled > ev.asked.prompt.cancelled:
			w.Saw(queued, code)
			if ev.result.Exists() {
				w.find(queued, ev, "", []int{ev.asked.prompt.cancelled, ev.Ref},
					"The prompt became part of the conversation after it was cancelled and the session was idle.")
			}
		}
		if ev.answers("session/prompt") && ev.asked != nil && ev.asked.prompt != nil && ev.asked.prompt.cancelled > 0 &&
			ev.err.Exists() {
			w.Saw(code)
			if got, _ := ev.err.Get("code").Int(); got != -32800 {
				w.find(code, ev, "", []int{ev.Ref}, "The prompt that was cancelled is answered with error %d, not with -32800.",
					got)
			}
		}
	}
	return r
}

// echo judges that a prompt is shown as a message.
func echo() *rule {
	r := newRule("V2-ECHO", "A prompt is shown as a message with the id of its answer.")
	missing := r.Fail("missing", "the work of a prompt is over, and its message was not shown", "PRM-002")
	twice := r.Fail("same-id", "two prompts have one message id", "PRM-002")
	ids := map[string]int{}
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if s == nil || !ev.agent() {
			return
		}
		if ev.answers("session/prompt") && ev.result.Exists() {
			id := s.id + " " + ev.result.Get("messageId").Str()
			w.Saw(twice)
			if before := ids[id]; before > 0 {
				w.find(twice, ev, "", []int{before}, "The answer has the messageId of an earlier prompt.")
			}
			ids[id] = ev.Seq
		}
		if ev.kind != "state_update" || !ev.u.Get("state").Is("idle") || !s.active {
			return
		}
		for _, p := range s.prompts {
			if p.answered == 0 || p.failed || p.ended || p.id == "" {
				continue
			}
			w.Saw(missing)
			if s.messages[p.id] == nil {
				w.find(missing, ev, p.id, []int{p.seq, p.answered},
					"The work of the prompt is over, and its message %q was not shown.",
					p.id)
			}
		}
	}
	return r
}

// replays judges what comes with a resume.
func replays() *rule {
	r := newRule("V2-RESUME", "A resume replays the history if it was asked for, then tells the state, then is answered.")
	silent := r.Fail("not-silent", "a resume without replayFrom replays the history", "SES-003")
	state := r.Fail("no-state", "no state comes before the answer", "SES-003")
	order := r.Fail("history-after-state", "history comes after the state", "SES-004")
	other := r.Fail("other-ids", "a message of the history has an id that the live session did not show", "SES-004")
	gone := r.Fail("gone", "a message of the user is not in the history, under the id that it had", "SES-004")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || s.resume == nil {
			return
		}
		history := strings.HasPrefix(ev.kind, "user_message") || strings.HasPrefix(ev.kind, "agent_") ||
			ev.kind == "tool_call_update"
		switch {
		case history && !s.resume.history && !s.active:
			w.find(silent, ev, "", []int{s.resume.seq}, "%s comes with a resume that did not ask for the history.", ev.kind)
		case history && s.resume.history && s.resume.state > 0 && !s.active:
			w.find(order, ev, "", []int{s.resume.state}, "%s of the history comes after the state.", ev.kind)
		case ev.answers("session/resume") && ev.result.Exists():
			w.Saw(state, silent, order)
			if s.resume.state == 0 {
				w.find(state, ev, "", []int{s.resume.seq}, "No state_update comes before the answer to the resume.")
			}
			if shown, whole := s.lived[s.id]; whole && s.resume.history {
				w.Saw(other, gone)
				for _, id := range s.resume.messages {
					if !shown[id].live {
						w.find(other, ev, id, []int{s.resume.seq}, "The history has a message %q, which the live session did not show.",
							id)
					}
				}
				for id, m := range shown {
					if m.live && m.user && !slices.Contains(s.resume.messages, id) {
						w.find(gone, ev, id, []int{m.first, s.resume.seq}, "The message %q of the user is not in the history.", id)
					}
				}
			}
		}
	}
	return r
}

// closes judges what comes from sessions that are closed.
func closes() *rule {
	r := newRule("V2-CLOSE", "A closed session has ended its work and is silent.")
	speaks := r.Fail("not-silent", "an update or a request comes after the close was answered", "SES-006", "UPD-005")
	working := r.Fail("no-idle", "the close was answered while work was active, without idle", "SES-006")
	unknown := r.Fail("unknown", "an update names a session that was never opened", "UPD-005")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil {
			return
		}
		if ev.Kind != transcript.Response && s.closed > 0 {
			w.find(speaks, ev, ev.kind, []int{s.closed}, "The agent speaks of the session after its close was answered.")
		}
		if ev.answers("session/close") && ev.result.Exists() && s.opened > 0 {
			w.Saw(speaks, working)
			if s.active {
				w.find(working, ev, "", []int{s.stateSeq}, "The close is answered while the state is %s.", s.state)
			}
		}
	}
	r.ends = func(w *watch, s *session) {
		w.Saw(unknown)
		if s.opened == 0 && !s.asked && s.stateSeq+len(s.messages)+len(s.tools) > 0 {
			w.Report(unknown, s.conn, s.id, "", nil, "The agent sent updates for session %q, which was never opened.", s.id)
		}
	}
	return r
}

// background judges the list of background work.
func background() *rule {
	r := newRule("V2-BACKGROUND", "Background work, once reported, is on every state, from its announcement to its end.")
	left := r.Fail("left-out", "a state has no list of background work, and one before had", "STA-002")
	early := r.Fail("not-announced", "an item is listed that was not announced", "STA-002")
	removed := r.Fail("not-ended", "an item is removed that has not ended", "STA-002")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || ev.kind != "state_update" {
			return
		}
		list := ev.u.Get("background")
		if s.reported {
			w.Saw(left)
			if list.Kind() != wire.Array {
				w.find(left, ev, "", nil, "The state has no list of background work, and one before had.")
				return
			}
		}
		now := map[string]bool{}
		for b := range list.Items() {
			k := key(b)
			now[k] = true
			w.Saw(early)
			if k != "" && !s.known(k) && s.whole && s.resume == nil {
				w.find(early, ev, k, nil, "The %s is listed as background work and was not announced.", k)
			}
		}
		for k := range s.listed {
			w.Saw(removed)
			if !now[k] && k != "" && !s.over(k) && s.resume == nil {
				w.find(removed, ev, k, nil, "The %s is no more background work and has not ended.", k)
			}
		}
	}
	return r
}

func (s *session) lookUp(k string) *item {
	if id, ok := strings.CutPrefix(k, "terminal "); ok {
		return s.terminals[id]
	}
	return s.tools[strings.TrimPrefix(k, "tool call ")]
}

func (s *session) known(k string) bool { t := s.lookUp(k); return t != nil && t.announced }

func (s *session) over(k string) bool { t := s.lookUp(k); return t == nil || t.ended > 0 }

// terminals judges what the agent tells of its terminals.
func terminals() *rule {
	r := newRule("V2-TERMINAL", "A terminal has an id of its own, an absolute folder, and output in base64.")
	base := r.Fail("base64", "a piece of output is no base64 by itself", "UPD-004")
	cwd := r.Fail("cwd", "the folder of a terminal is not absolute", "UPD-004")
	reused := r.Fail("reused", "a terminal that has ended begins again", "UPD-004")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || ev.kind != "terminal_update" && ev.kind != "terminal_output_chunk" {
			return
		}
		id := ev.u.Get("terminalId").Str()
		w.Saw(base, cwd, reused)
		for _, data := range []wire.Value{ev.u.Get("data"), ev.u.Path("output.data")} {
			if data.Kind() != wire.String {
				continue
			}
			if _, err := base64.StdEncoding.DecodeString(data.Str()); err != nil {
				w.find(base, ev, id, nil, "A piece of the output of terminal %q is no base64.", id)
			}
		}
		if dir := ev.u.Get("cwd"); dir.Kind() == wire.String && !absolute(dir.Str()) {
			w.find(cwd, ev, id, nil, "The cwd %q of terminal %q is not absolute.", dir.Str(), id)
		}
		if t := s.terminals[id]; t != nil && t.ended > 0 && ev.u.Get("command").Kind() == wire.String && s.resume == nil {
			w.find(reused, ev, id, []int{t.ended}, "Terminal %q has ended, and begins again.", id)
		}
	}
	return r
}

// absolute reports whether a path is, on any system.
func absolute(p string) bool {
	return path.IsAbs(p) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`)
}

// paths judges the paths of diffs and places.
func paths() *rule {
	r := newRule("V2-PATHS", "The paths of diffs and places are absolute.")
	diff := r.Fail("diff", "a path of a diff is not absolute", "UPD-006")
	place := r.Fail("place", "the path of a place is not absolute", "UPD-006")
	r.see = func(w *watch, ev *event) {
		call := ev.u
		if ev.agent() && ev.Method == "session/request_permission" && ev.Kind == transcript.Request {
			call = ev.params.Path("subject.toolCall")
		} else if ev.kind != "tool_call_update" {
			return
		}
		for l := range call.Get("locations").Items() {
			w.Saw(place)
			if p := l.Get("path"); p.Kind() == wire.String && !absolute(p.Str()) {
				w.find(place, ev, p.Str(), nil, "The place %q is not absolute.", p.Str())
			}
		}
		for c := range call.Get("content").Items() {
			for change := range c.Get("changes").Items() {
				for _, key := range []string{"path", "oldPath"} {
					if p := change.Get(key); p.Kind() == wire.String {
						w.Saw(diff)
						if !absolute(p.Str()) {
							w.find(diff, ev, p.Str(), nil, "The %s %q of the diff is not absolute.", key, p.Str())
						}
					}
				}
			}
		}
	}
	return r
}

func ofClient(id, sentence string) *rule {
	r := newRule(id, sentence)
	r.Side = rules.OfClient
	return r
}

// clientLogin judges that a client logs in only where it can.
func clientLogin() *rule {
	r := ofClient("V2-CLIENT-LOGIN", "A client logs in and out only where the agent offers a method.")
	none := r.Fail("no-method", "auth/login or auth/logout is called, and the agent offers no method", "INIT-004")
	r.see = func(w *watch, ev *event) {
		if ev.asks("auth/login") || ev.asks("auth/logout") {
			w.Saw(none)
			if ev.conn.version == 2 && !ev.conn.methods {
				w.find(none, ev, ev.Method, nil, "The client called %s, and the agent offers no method.", ev.Method)
			}
		}
	}
	return r
}

// clientPermission judges how a client answers permission requests.
func clientPermission() *rule {
	r := ofClient("V2-CLIENT-PERMISSION", "A client chooses what was offered, and nothing for cancelled work.")
	offered := r.Fail("not-offered", "the option was not offered", "PER-001")
	late := r.Fail("after-cancel", "an option was chosen for work that was cancelled", "CAN-003")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Response || ev.asked == nil ||
			ev.asked.method != "session/request_permission" || !ev.result.Path("outcome.outcome").Is("selected") {
			return
		}
		w.Saw(offered, late)
		if id := ev.result.Path("outcome.optionId").Str(); !slices.Contains(ev.asked.options, id) {
			w.find(offered, ev, "", []int{ev.Ref}, "The client chose %q, which was not offered.", id)
		}
		if ev.asked.late {
			w.find(late, ev, "", []int{ev.Ref}, "The client chose an option after it had cancelled the work.")
		}
	}
	return r
}

// clientCancel judges that a client cancels only what it can.
func clientCancel() *rule {
	r := ofClient("V2-CLIENT-CANCEL", "A client cancels only a tool call or a terminal that can be cancelled.")
	cannot := r.Lint("over", "the item has ended, or was never announced", "CAN-004")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if s == nil || !ev.asks("tool_call/cancel") && !ev.asks("terminal/cancel") {
			return
		}
		w.Saw(cannot)
		t := s.tools[ev.params.Get("toolCallId").Str()]
		if ev.Method == "terminal/cancel" {
			t = s.terminals[ev.params.Get("terminalId").Str()]
		}
		if t == nil || t.ended > 0 {
			w.find(cannot, ev, "", nil, "The client sent %s for an item that is not there or has ended.", ev.Method)
		}
	}
	return r
}
