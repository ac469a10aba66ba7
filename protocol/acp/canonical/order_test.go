package canonical_test

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
)

// event is a frame with what the test itself knows about it: the rules of the
// canonical order are written down here a second time, one pair at a time.
type event struct {
	frame
	n       int // in the order made; a response refers to its request by it
	session string
	role    string // content, act, answer, update, state, gap
	kind    string // of a state
	call    string
	open    bool   // the call had not ended before this update
	moves   bool   // starts or ends the call
	opens   bool   // opens a session
	bounds  string // answer of the agent: which states it bounds: "all", "modes", ""
	permit  bool   // the answer to a permission request
	effect  bool   // writes a file that no call names
	of      string // effect: the call that names the file
	answers int    // the event of the request; -1
	message string // chunk: which message it belongs to
	first   bool   // chunk: the first of its message
	speaks  bool   // ends a message
}

// commute reports whether two neighbours may change places without a change
// of the text.
func commute(a, b event) bool {
	if a.session != b.session && a.session != "" && b.session != "" {
		return !(a.opens && b.opens) // sections are in the order in which sessions are opened
	}
	for _, p := range [][2]event{{a, b}, {b, a}} {
		x, y := p[0], p[1]
		switch {
		case x.role == "state":
			return !(y.role == "state" && x.kind == y.kind || y.opens || y.session != "" && y.bounds == "all" ||
				y.bounds == "modes" && (x.kind == "current_mode_update" || x.kind == "config_option_update"))
		case x.role == "answer":
			waits := x.permit && (y.moves && y.call == x.call || y.effect && (y.of == "" || y.of == x.call))
			return !(y.role == "act" || y.n == x.answers || waits)
		case x.message != "" && !x.first && !y.speaks:
			return true // it joins its message wherever it stands
		}
	}
	return a.role == "update" && b.role == "update" && a.call != b.call && a.open && b.open
}

// maker makes a conversation that an agent might have.
type maker struct {
	t      *rapid.T
	events []event
	ids    int
	word   int
	speaks map[string]string // the message that goes on, by session
}

func (m *maker) add(e event) int {
	e.n = len(m.events)
	m.events = append(m.events, e)
	return e.n
}

func (m *maker) name(what string) string {
	m.word++
	return fmt.Sprintf("%s-%03d", what, m.word)
}

func (m *maker) ask(session, method, params string, e event) (n, id int) {
	m.ids++
	e.frame, e.session, e.role, e.answers = toAgent("%s", request(m.ids, method, params)), session, "act", -1
	return m.add(e), m.ids
}

func (m *maker) reply(session string, to, id int, value, bounds string, speaks bool) {
	m.add(event{frame: toEditor("%s", result(id, value)), session: session, role: "content", answers: to,
		bounds: bounds, speaks: speaks})
	if speaks {
		m.speaks[session] = ""
	}
}

func (m *maker) update(session, kind, members string, e event) {
	e.frame, e.session, e.answers = toEditor("%s", updates(session, kind, members)), session, -1
	if e.role == "" {
		e.role = "content"
	}
	if e.role != "state" {
		e.speaks = true
		m.speaks[session] = ""
	}
	m.add(e)
}

func (m *maker) request(session, method, params string, e event) (n, id int) {
	m.ids++
	e.frame, e.session, e.role, e.answers, e.speaks = toEditor("%s", request(m.ids, method, params)), session,
		"content", -1, true
	m.speaks[session] = ""
	return m.add(e), m.ids
}

func (m *maker) answer(session string, to, id int, value string, e event) {
	e.frame, e.session, e.role, e.answers = toAgent("%s", result(id, value)), session, "answer", to
	m.add(e)
}

func (m *maker) chunk(session, kind string) {
	e := event{frame: toEditor("%s", chunk(session, kind, m.name("text")+" ")), session: session, role: "content",
		answers: -1}
	e.message, e.speaks = m.speaks[session], true
	if e.message == "" || e.message[:3] != kind[:3] {
		e.message, e.first = m.name(kind[:9]), true
		m.speaks[session] = e.message
	}
	m.add(e)
}

// turn makes one turn of a session.
func (m *maker) turn(session string) {
	prompt, id := m.ask(session, "session/prompt",
		fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, m.name("prompt")),
		event{speaks: true})
	m.speaks[session] = ""
	var open []string
	ended := map[string]bool{}
	held := []func(){}
	// A few kinds of events in each turn, so that rare pairs meet.
	kinds := rapid.SliceOfN(rapid.SampledFrom([]string{"message", "thought", "plan", "call", "update", "state",
		"permission", "read", "write", "cancel", "mode", "held"}), 1, 5).Draw(m.t, "kinds")
	for range rapid.IntRange(0, 14).Draw(m.t, "length") {
		switch rapid.SampledFrom(kinds).Draw(m.t, "event") {
		case "message":
			m.chunk(session, "agent_message_chunk")
		case "thought":
			m.chunk(session, "user_message_chunk")
		case "plan":
			m.update(session, "plan", fmt.Sprintf(`"entries":[{"content":%q,"priority":"high","status":"pending"}]`,
				m.name("plan")), event{})
		case "call":
			call := m.name("call")
			m.update(session, "tool_call", fmt.Sprintf(`"toolCallId":%q,"title":%q`, call, m.name("title")),
				event{call: call})
			open = append(open, call)
		case "update":
			if len(open) == 0 {
				continue
			}
			call := rapid.SampledFrom(open).Draw(m.t, "call")
			status := rapid.SampledFrom([]string{"", `"status":"in_progress",`, `"status":"completed",`}).
				Draw(m.t, "status")
			m.update(session, "tool_call_update",
				fmt.Sprintf(`"toolCallId":%q,%s"title":%q`, call, status, m.name("title")),
				event{role: "update", call: call, open: !ended[call], moves: status != ""})
			ended[call] = ended[call] || status == `"status":"completed",`
		case "state":
			kind := rapid.SampledFrom([]string{"current_mode_update", "session_info_update", "usage_update"}).
				Draw(m.t, "kind")
			m.word++
			m.update(session, kind, map[string]string{
				"current_mode_update": fmt.Sprintf(`"currentModeId":"mode-%d"`, m.word),
				"session_info_update": fmt.Sprintf(`"title":"title-%d"`, m.word),
				"usage_update":        fmt.Sprintf(`"used":%d,"size":9`, m.word),
			}[kind], event{role: "state", kind: kind})
		case "permission":
			call := ""
			if len(open) > 0 {
				call = rapid.SampledFrom(open).Draw(m.t, "call")
			} else {
				call = m.name("call")
				open = append(open, call)
			}
			n, id := m.request(session, "session/request_permission",
				fmt.Sprintf(`{"sessionId":%q,"toolCall":{"toolCallId":%q,"title":%q},"options":[{"optionId":"o1",`+
					`"name":"Yes","kind":"allow_once"}]}`, session, call, m.name("ask")), event{call: call})
			held = append(held, func() {
				m.answer(session, n, id, `{"outcome":{"outcome":"selected","optionId":"o1"}}`,
					event{permit: true, call: call})
			})
		case "read":
			n, id := m.request(session, "fs/read_text_file",
				fmt.Sprintf(`{"sessionId":%q,"path":%q}`, session, m.name("/dir/file")), event{})
			content := m.name("read")
			held = append(held, func() { m.answer(session, n, id, fmt.Sprintf(`{"content":%q}`, content), event{}) })
		case "write":
			path, of := m.name("/dir/file"), ""
			if rapid.Bool().Draw(m.t, "named") {
				of = m.name("call")
				m.update(session, "tool_call", fmt.Sprintf(`"toolCallId":%q,"title":%q`, of, path), event{call: of})
				open = append(open, of)
			}
			n, id := m.request(session, "fs/write_text_file",
				fmt.Sprintf(`{"sessionId":%q,"path":%q,"content":"x"}`, session, path), event{effect: true, of: of})
			held = append(held, func() { m.answer(session, n, id, `{}`, event{}) })
		case "cancel":
			m.add(event{frame: toAgent("%s", notification("session/cancel", fmt.Sprintf(`{"sessionId":%q}`, session))),
				session: session, role: "act", answers: -1})
		case "mode":
			n, id := m.ask(session, "session/set_mode",
				fmt.Sprintf(`{"sessionId":%q,"modeId":"mode-%d"}`, session, m.word), event{})
			m.reply(session, n, id, fmt.Sprintf(`{"_meta":{"n":%d}}`, id), "modes", false)
		case "held":
			for _, answer := range held {
				answer()
			}
			held = nil
		}
	}
	for _, answer := range held {
		answer()
	}
	m.reply(session, prompt, id, fmt.Sprintf(`{"stopReason":"end_turn","_meta":{"n":%d}}`, id), "all", true)
}

// conversation is one with up to three sessions, in turn.
func conversation(t *rapid.T) []event {
	m := &maker{t: t, speaks: map[string]string{}}
	n, id := m.ask("", "initialize", `{"protocolVersion":1}`, event{})
	m.reply("", n, id, `{"protocolVersion":1}`, "", false)
	sessions := []string{"session-one", "session-two", "session-three"}[:rapid.IntRange(1, 3).Draw(t, "sessions")]
	for _, s := range sessions {
		n, id := m.ask(s, "session/new", `{"cwd":"/dir","mcpServers":[]}`, event{opens: true, speaks: true})
		m.reply(s, n, id, fmt.Sprintf(`{"sessionId":%q}`, s), "all", true)
		if rapid.Bool().Draw(t, "commands") {
			m.update(s, "available_commands_update",
				fmt.Sprintf(`"availableCommands":[{"name":%q,"description":"d"}]`, m.name("command")),
				event{role: "state", kind: "available_commands_update"})
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "turns") {
		for _, s := range sessions {
			m.turn(s)
			if rapid.IntRange(0, 3).Draw(t, "list") == 0 {
				n, id := m.ask("", "session/list", `{}`, event{})
				m.reply("", n, id, `{"sessions":[]}`, "", false)
			}
		}
	}
	return m.events
}

// possible reports whether b may come before a, which it follows.
func possible(a, b event) bool { return b.answers != a.n }

func framesOf(events []event) []frame {
	var frames []frame
	for _, e := range events {
		frames = append(frames, e.frame)
	}
	return frames
}

// firsts finds out anew which chunks begin a message after events have moved.
func firsts(events []event) {
	seen := map[string]bool{}
	for i, e := range events {
		if e.message != "" {
			events[i].first = !seen[e.message]
			seen[e.message] = true
		}
	}
}

var _ = Describe("the canonical order", func() {
	text := func(events []event) string { return render(framesOf(events), golden.Options{}) }

	It("is the same for every interleaving of independent entries", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			events := conversation(t)
			want := text(events)
			swaps := 0
			for range rapid.IntRange(1, 300).Draw(t, "tries") {
				at := rapid.IntRange(0, len(events)-2).Draw(t, "at")
				if commute(events[at], events[at+1]) && possible(events[at], events[at+1]) {
					events[at], events[at+1] = events[at+1], events[at]
					firsts(events)
					swaps++
				}
			}
			if got := text(events); got != want {
				t.Fatalf("after %d swaps of independent entries:\n%s", swaps, golden.Diff(want, got))
			}
		})
	})

	It("is the same in parts, each shown when it has settled, as in one piece", func() {
		parts := 0
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			log := transcriptOf(framesOf(conversation(t)))
			whole := canonical.Whole(false, log.All(), golden.Options{})
			if got := canonical.V1().Render(log.All(), golden.Options{}); got != whole {
				t.Fatalf("in parts it is another text:\n%s", golden.Diff(whole, got))
			}
			parts += canonical.Parts(false, log.All(), golden.Options{})
		})
		Expect(parts).To(BeNumerically(">", 100))
	})

	It("changes with every swap of dependent entries", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			events := conversation(t)
			want := text(events)
			dependent := map[[2]string][]int{} // by roles, so that rare pairs are tried too
			for i := range len(events) - 1 {
				if a, b := events[i], events[i+1]; !commute(a, b) && possible(a, b) && a.raw != b.raw {
					roles := [2]string{a.role, b.role}
					dependent[roles] = append(dependent[roles], i)
				}
			}
			for _, roles := range slices.SortedFunc(maps.Keys(dependent),
				func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
				at := rapid.SampledFrom(dependent[roles]).Draw(t, "at")
				swapped := slices.Clone(events)
				swapped[at], swapped[at+1] = swapped[at+1], swapped[at]
				if got := text(swapped); got == want {
					t.Fatalf("swapping these changed nothing:\n%s\n%s\n\n%s", events[at].raw, events[at+1].raw, want)
				}
			}
		})
	})

	It("does not depend on where chunks are cut", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			message := rapid.StringN(1, 200, -1).Draw(t, "message")
			cut := func(label string) []frame {
				frames := []frame{toAgent("%s", request(1, "session/prompt", `{"sessionId":"s","prompt":[]}`))}
				rest := []rune(message)
				for len(rest) > 0 {
					n := rapid.IntRange(0, len(rest)).Draw(t, label)
					frames = append(frames, toEditor("%s", chunk("s", "agent_message_chunk", string(rest[:n]))))
					rest = rest[n:]
				}
				return append(frames, toEditor("%s", result(1, `{"stopReason":"end_turn"}`)))
			}
			Expect(render(cut("one"), golden.Options{})).To(Equal(render(cut("other"), golden.Options{})))
		})
	})
})
