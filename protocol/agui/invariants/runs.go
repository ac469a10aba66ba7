package invariants

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// sseForm checks how the events of a stream are framed.
func sseForm(w *watch) {
	given := false // some answer came in the binary form
	w.eachStream(func(s *stream) {
		if !given {
			return
		}
		if w.Saw("not-always"); s.refused > 0 {
			w.Report("not-always", 0, s.session, "", []int{s.refused},
				"The Accept header %q admits %s, and other responses have that "+
					"type, but this response has %s.", s.accept, aguiproto.MediaType, endpoint.EventStream)
		}
	})
	w.On(func(ev *event) {
		if w.Saw("data"); ev.binary {
			w.Saw("frame")
		}
	}, anyEvent)
	w.On(func(ev *event) {
		if ev.binary {
			w.judge("frame", true, ev, "", nil, "A frame of the stream is not an event: %s.", ev.Problem)
			return
		}
		w.judge("data", true, ev, "", nil, "The data of a server-sent event is not an AG-UI event: %s.", ev.Problem)
	}, string(transcript.Malformed))
	w.On(func(ev *event) {
		if status, _ := ev.v.Get("status").Int(); status != 200 {
			return
		}
		got, accept := ev.v.Get("type").Str(), ev.v.Get("accept").Str()
		binary, admitted := got == aguiproto.MediaType, aguiproto.Admitted(accept)
		w.judge("type", !binary && got != endpoint.EventStream, ev, "", nil,
			"The response has status 200 but content type %q instead of %s.", got, endpoint.EventStream)
		if got == endpoint.EventStream && admitted {
			ev.refused, ev.accept = ev.Seq, accept
		}
		if !binary {
			return
		}
		given = true
		// A request without an Accept header allows any form.
		w.judge("unasked", accept != "-" && !admitted, ev, "", nil,
			"The response has content type %s, but the Accept header %q does not admit that type.", got,
			cmp.Or(accept, endpoint.EventStream))
		whole := strings.TrimSpace(ev.v.Get("headers").Get("content-type").Str())
		w.judge("exact", whole != "" && whole != got, ev, "", nil, "The content type is %q and must be exactly %s: "+
			"the official client reads this body as server-sent events.", whole, got)
	}, string(transcript.Response))
	w.On(func(ev *event) {
		if left := ev.v.Get("tail").Str(); ev.binary {
			// If the stream ends before its run has ended, RUN-FRAME reports this.
			w.judge("tail", left != "" && ev.over(), ev, "", nil, "After the last event, %s.", left)
			return
		}
		if events, _ := ev.v.Get("events").Int(); events == 0 {
			return
		}
		n, _ := ev.v.Get("carriageReturns").Int()
		w.judge("carriage-returns", n > 0, ev, "", nil,
			"%d lines of the stream end with a carriage return: the official client finds no event in them.", n)
		yes, _ := ev.v.Get("unterminated").Bool()
		end := ev.v.Get("end").Str()
		w.judge("unterminated", yes && (end == endpoint.Closed || end == endpoint.Unseen && ev.over()), ev, "", nil,
			"The body ends without an empty line after the last event.")
		yes, _ = ev.v.Get("byteOrderMark").Bool()
		w.judge("mark", yes, ev, "", nil, "The stream begins with a byte order mark.")
	}, ended)
}

// ended is the topic of the end of a stream.
const ended = string(transcript.Ended)

// runFrame checks where runs begin and end in a stream.
func runFrame(w *watch) {
	w.On(func(ev *event) {
		w.Saw("first", "nested", "after-finished", "after-error")
		switch starts := ev.kind == "RUN_STARTED"; {
		case ev.phase == idle && !starts && ev.kind != "RUN_ERROR":
			w.find("first", ev, "", nil, "The stream begins with %s.", ev.kind)
		case ev.phase == active && starts:
			w.find("nested", ev, "", nil, "RUN_STARTED comes while run %q is active.", ev.runID)
		case ev.phase == finished && ev.kind == "RUN_ERROR":
			w.judge("late-error", true, ev, "", []int{ev.ended},
				"RUN_ERROR comes after RUN_FINISHED: allowed, but clients of 0.x fail on it.")
		case ev.phase == finished && !starts:
			w.find("after-finished", ev, ev.kind, []int{ev.ended}, "%s comes after RUN_FINISHED.", ev.kind)
		case ev.phase == failed && !starts:
			w.find("after-error", ev, ev.kind, []int{ev.ended}, "%s comes after RUN_ERROR.", ev.kind)
		}
	}, anyEvent)
	w.On(func(ev *event) {
		how, why := ev.v.Get("end").Str(), "."
		if !slices.Contains([]string{endpoint.Closed, endpoint.Cut, endpoint.LeftOpen, endpoint.Unseen}, how) {
			return
		}
		w.Saw("truncated", "cut", "left-open")
		if tail := ev.v.Get("tail").Str(); tail != "" {
			why = ": " + tail + "."
		}
		switch {
		case how == endpoint.LeftOpen:
			w.find("left-open", ev, "", []int{ev.ended}, "The agent left the body open long after the end of the run.")
		case ev.over():
		case how == endpoint.Unseen:
			w.find("unseen", ev, "", nil,
				"The recording ends within a run%s It does not show whether the agent or the client closed "+
					"the stream: record --url shows it.", why)
		case how == endpoint.Cut:
			w.find("cut", ev, "", nil, "The connection broke before the end of the run: %s.", ev.v.Get("problem").Str())
		case ev.events == 0:
			w.find("truncated", ev, "", nil, "The stream ended without an event%s", why)
		default:
			w.find("truncated", ev, "", nil,
				"The stream ended without RUN_FINISHED or RUN_ERROR; the official client calls that a success%s", why)
		}
	}, ended)
}

// runID checks the ids of runs.
func runID(w *watch) {
	w.On(func(ev *event) {
		if want, got := ev.input.Get("threadId").Str(), ev.v.Get("threadId").Str(); want != "" {
			w.judge("thread", got != want, ev, ev.kind, []int{ev.ref},
				"%s has the threadId %q, but the input has %q.", ev.kind, got, want)
		}
	}, "RUN_STARTED", "RUN_FINISHED")
	w.On(func(ev *event) {
		if id := ev.v.Get("runId").Str(); ev.phase == active {
			w.judge("disagree", id != ev.runID, ev, "", nil,
				"RUN_FINISHED has the runId %q, but RUN_STARTED had %q.", id, ev.runID)
		}
	}, "RUN_FINISHED")
	// Only the last run of the stream must be the requested one; earlier runs are history. So the check is made at the
	// end.
	w.eachStream(func(s *stream) {
		want := s.input.Get("runId").Str()
		if want == "" || s.runs == 0 {
			return
		}
		if w.Saw("run"); s.runID != want {
			w.Report("run", 0, s.session, "", []int{s.ref},
				"The last run of the stream has the runId %q, but the input has %q.", s.runID, want)
		}
	})
}

// runClosed checks that a run which finishes leaves nothing open.
func runClosed(w *watch) {
	open := func(name string) string { return strings.ReplaceAll(name, " ", "-") }
	w.On(func(ev *event) {
		if ev.phase != active {
			return
		}
		w.Saw("step", "subagent")
		for _, name := range called {
			w.Saw(open(name))
		}
		for _, k := range ev.openItems() {
			w.find(open(called[k.family]), ev, k.id, ev.items[k].begun(), "The run finished while %s %q was open.",
				called[k.family], k.id)
		}
		steps := slices.SortedFunc(maps.Keys(ev.steps), func(a, b [2]string) int { return ev.steps[a] - ev.steps[b] })
		for _, name := range steps {
			w.find("step", ev, name[1], []int{ev.steps[name]}, "The run finished while step %q was open.", name[1])
		}
		for _, id := range slices.Sorted(maps.Keys(ev.agents)) {
			if a := ev.agents[id]; a.announced && !a.over {
				w.find("subagent", ev, id, nil, "The run finished while subagent %q was active.", id)
			}
		}
	}, "RUN_FINISHED")
}

// stepPair checks the starts and ends of steps.
func stepPair(w *watch) {
	w.On(func(ev *event) {
		name, at := ev.step()
		w.judge("twice", at > 0, ev, name, []int{at}, "Step %q is started again while it is open.", name)
	}, "STEP_STARTED")
	w.On(func(ev *event) {
		name, at := ev.step()
		w.judge("not-open", at == 0, ev, name, nil, "STEP_FINISHED names step %q, which is not open.", name)
	}, "STEP_FINISHED")
}

// step returns the name of the step that an event is about. at is the Seq of the start of the step, or 0 if the step
// is not open.
func (ev *event) step() (name string, at int) {
	name = ev.v.Get("stepName").Str()
	return name, ev.steps[[2]string{ev.owner, name}]
}

// interrupts checks the interrupts at the end of a run.
func interrupts(w *watch) {
	w.On(func(ev *event) {
		if !ev.v.Path("outcome.type").Is("interrupt") {
			return
		}
		w.Saw("twice")
		list, ids := ev.v.Path("outcome.interrupts"), rules.Seen{}
		w.judge("none", list.Len() == 0, ev, "", nil, "The outcome is interrupt, but its list of interrupts is empty.")
		for i := range list.Items() {
			id, of := i.Get("id").Str(), i.Get("toolCallId").Str()
			if ids.Again(id) {
				w.find("twice", ev, id, nil, "Two interrupts have the id %q.", id)
			}
			if of != "" {
				w.judge("call", ev.items[key{tool, of}] == nil && !ev.inputCall(of).Exists(), ev, of, nil,
					"An interrupt is about the tool call %q, which the agent never made.", of)
			}
		}
	}, "RUN_FINISHED")
}

// usage checks the token counts.
func usage(w *watch) {
	w.On(func(ev *event) {
		for u := range ev.v.Get("usage").Items() {
			n := func(name string) int64 { n, _ := u.Get(name).Int(); return n }
			input, in := u.Get("inputTokens").Int()
			output, out := u.Get("outputTokens").Int()
			total, told := u.Get("totalTokens").Int()
			w.judge("parts", in && n("cachedInputTokens")+n("cacheWriteInputTokens") > input ||
				out && n("reasoningTokens") > output, ev, "", nil,
				"The cache or reasoning tokens exceed the input or output tokens: %s.", string(u.Raw()))
			if told && in && out {
				w.judge("sum", total != input+output, ev, "", nil,
					"totalTokens is %d, but input and output tokens add up to %d.", total, input+output)
			}
		}
	}, anyEvent)
}

var (
	traceText = lazy.Regexp(`(?m)^\s+at .+\(.+:\d+:\d+\)|Traceback \(most recent call last\)|` +
		`^goroutine \d+ \[|^\s+File ".+", line \d+`)
	keyText = lazy.Regexp(`\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}`)
)

// private checks that the server does not send private data, such as stack traces, private members of the state, or
// keys.
func private(w *watch) {
	w.On(func(ev *event) {
		w.judge("trace", traceText().MatchString(ev.v.Get("message").Str()), ev, "", nil,
			"The message of RUN_ERROR has a stack trace.")
	}, "RUN_ERROR")
	w.On(func(ev *event) {
		w.Saw("own")
		for name := range ev.v.Get("snapshot").Members() {
			if strings.HasPrefix(name, "_") && !ev.input.Path("state").Get(name).Exists() {
				w.find("own", ev, name, nil, "The state has the member %q; an underscore marks private members.", name)
			}
		}
	}, "STATE_SNAPSHOT")
	w.On(func(ev *event) {
		w.judge("key", keyText().Match(ev.Raw), ev, ev.kind, nil, "%s has text that looks like a secret key.", ev.kind)
	}, "STATE_SNAPSHOT", "RAW", "RUN_ERROR")
}

// clock checks that the timestamps of a stream never go back.
func clock(w *watch) {
	w.On(func(ev *event) {
		if ts, ok := ev.v.Get("timestamp").Float(); ok {
			w.judge("back", ts < ev.last, ev, "", nil,
				"The timestamp of %s is before an earlier event's timestamp.", ev.kind)
		}
	}, anyEvent)
}

// rawWeight checks the raw data that the agent sends in addition to the events.
func rawWeight(w *watch) {
	w.On(func(ev *event) {
		of := ev.v.Path("event.type").Str()
		w.judge("typed", knownType(of), ev, "", nil, "RAW wraps %s, an event of the protocol itself.", of)
	}, "RAW")
	w.On(func(ev *event) {
		if ev.raw > 0 {
			w.judge("heavy", ev.raw > 10*ev.useful && ev.raw > 64<<10, ev, "", nil,
				"%d bytes of the stream are raw events, but only %d bytes are other events.", ev.raw, ev.useful)
		}
	}, ended)
}
