package invariants

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// sseForm judges how events are framed.
func sseForm() *rule {
	r := newRule("SSE-FORM", "A run is answered by a stream of server-sent events, each with one event as its data, "+
		"or in the binary form where that was asked for.")
	kind := r.Fail("type", "the status is 200 and the content type another", "HTTP-001")
	unasked := r.Fail("unasked", "the answer is in the binary form, which was not asked for", "HTTP-010")
	exact := r.Fail("exact", "the content type of the binary form has something behind it", "HTTP-012")
	frame := r.Fail("frame", "a frame of the binary form is no event", "HTTP-012")
	tail := r.Fail("tail", "bytes that are no frame follow the end of the run", "HTTP-012")
	once := r.Warn("not-always", "the answer is not in the binary form, although it was asked for and another one was",
		"HTTP-011")
	returns := r.Fail("carriage-returns", "lines end with a carriage return", "HTTP-003")
	junk := r.Fail("data", "the data is no event", "HTTP-002")
	open := r.Warn("unterminated", "no empty line ends the last event", "HTTP-004")
	mark := r.Lint("mark", "the stream begins with a byte order mark", "HTTP-004")
	given := false // an answer was in the binary form
	r.ends = func(w *watch, s *stream) {
		if !given {
			return
		}
		w.Saw(once)
		if s.refused > 0 {
			w.Report(once, 0, s.session, "", []int{s.refused}, "The Accept header %q admits %s, which other answers have, "+
				"and the answer has %s.", s.accept, aguiproto.MediaType, endpoint.EventStream)
		}
	}
	r.see = func(w *watch, s *stream, ev *event) {
		switch ev.Kind {
		case transcript.Notification:
			w.Saw(junk)
			if s.binary {
				w.Saw(frame)
			}
		case transcript.Malformed:
			if s.binary {
				w.find(frame, ev, "", nil, "A frame of the stream is no event: %s.", ev.Problem)
				return
			}
			w.Saw(junk)
			w.find(junk, ev, "", nil, "The data of an event is no event: %s.", ev.Problem)
		case transcript.Response:
			if status, _ := ev.v.Get("status").Int(); status != 200 {
				return
			}
			w.Saw(kind)
			accept := ev.v.Get("accept").Str()
			switch got := ev.v.Get("type").Str(); {
			case got == endpoint.EventStream:
				if aguiproto.Admitted(accept) {
					s.refused, s.accept = ev.Seq, accept
				}
			case got == aguiproto.MediaType:
				given = true
				w.Saw(unasked, exact)
				// Who sends no Accept header leaves it open.
				if accept != "-" && !aguiproto.Admitted(accept) {
					w.find(unasked, ev, "", nil, "The answer has the content type %s, and the Accept header %q does not admit "+
						"it.", got, cmp.Or(accept, endpoint.EventStream))
				}
				if whole := strings.TrimSpace(ev.v.Get("headers").Get("content-type").Str()); whole != "" && whole != got {
					w.find(exact, ev, "", nil, "The content type is %q and must be exactly %s: the official client takes it for "+
						"server-sent events.", whole, got)
				}
			default:
				w.find(kind, ev, "", nil, "The answer has the status 200 and the content type %q, not %s.", got,
					endpoint.EventStream)
			}
		case transcript.Ended:
			if s.binary {
				w.Saw(tail)
				// Before the end of the run it is truncated, see RUN-FRAME.
				if left := ev.v.Get("tail").Str(); left != "" && s.phase != idle && s.phase != active {
					w.find(tail, ev, "", nil, "Behind the last event, %s.", left)
				}
				return
			}
			if events, _ := ev.v.Get("events").Int(); events == 0 {
				return
			}
			w.Saw(returns, open, mark)
			if n, _ := ev.v.Get("carriageReturns").Int(); n > 0 {
				w.find(returns, ev, "", nil, "%d lines of the stream end with a carriage return: the official client finds no "+
					"event in them.", n)
			}
			if yes, _ := ev.v.Get("unterminated").Bool(); yes && ev.v.Get("end").Is(endpoint.Closed) {
				w.find(open, ev, "", nil, "The body ends without an empty line behind the last event.")
			}
			if yes, _ := ev.v.Get("byteOrderMark").Bool(); yes {
				w.find(mark, ev, "", nil, "The stream begins with a byte order mark.")
			}
		}
	}
	return r
}

// runFrame judges where runs begin and end.
func runFrame() *rule {
	r := newRule("RUN-FRAME", "A stream is runs, one after the other, each from RUN_STARTED to one end.")
	first := r.Fail("first", "another event comes before RUN_STARTED", "RUN-001")
	nested := r.Fail("nested", "a run starts within a run", "RUN-005")
	after := r.Fail("after-finished", "an event comes after RUN_FINISHED", "RUN-003", "RUN-009")
	afterError := r.Fail("after-error", "an event comes after RUN_ERROR", "RUN-004", "RUN-009")
	late := r.Lint("late-error", "RUN_ERROR comes after RUN_FINISHED", "RUN-009")
	truncated := r.Fail("truncated", "the stream ends without the end of its run", "RUN-002")
	cut := r.Fail("cut", "the connection breaks within a run", "HTTP-007", "RUN-002")
	left := r.Fail("left-open", "the body is not closed after the end of the run", "HTTP-005")
	r.see = func(w *watch, s *stream, ev *event) {
		if isEnd(ev) {
			endOf(w, s, ev, truncated, cut, left)
			return
		}
		if ev.kind == "" {
			return
		}
		w.Saw(first, nested, after, afterError)
		switch {
		case s.phase == idle && ev.kind != "RUN_STARTED" && ev.kind != "RUN_ERROR":
			w.find(first, ev, "", nil, "The stream begins with %s.", ev.kind)
		case s.phase == active && ev.kind == "RUN_STARTED":
			w.find(nested, ev, "", nil, "RUN_STARTED comes while run %q is active.", s.runID)
		case s.phase == finished && ev.kind == "RUN_ERROR":
			w.Saw(late)
			w.find(late, ev, "", []int{s.ended},
				"RUN_ERROR comes after RUN_FINISHED: it is allowed, and clients of 0.x fail on it.")
		case s.phase == finished && ev.kind != "RUN_STARTED":
			w.find(after, ev, ev.kind, []int{s.ended}, "%s comes after RUN_FINISHED.", ev.kind)
		case s.phase == failed && ev.kind != "RUN_STARTED":
			w.find(afterError, ev, ev.kind, []int{s.ended}, "%s comes after RUN_ERROR.", ev.kind)
		}
	}
	return r
}

// endOf judges the end of a stream.
func endOf(w *watch, s *stream, ev *event, truncated, cut, left int) {
	how := ev.v.Get("end").Str()
	if !slices.Contains([]string{endpoint.Closed, endpoint.Cut, endpoint.LeftOpen}, how) {
		return
	}
	w.Saw(truncated, cut, left)
	why := "."
	if tail := ev.v.Get("tail").Str(); tail != "" {
		why = ": " + tail + "."
	}
	switch {
	case how == endpoint.LeftOpen:
		w.find(left, ev, "", []int{s.ended}, "The body was still open a good while after the end of the run.")
	case s.phase == finished || s.phase == failed:
	case how == endpoint.Cut:
		w.find(cut, ev, "", nil, "The connection broke before the end of the run: %s.", ev.v.Get("problem").Str())
	case s.events == 0:
		w.find(truncated, ev, "", nil, "The stream ended without an event%s", why)
	default:
		w.find(truncated, ev, "", nil,
			"The stream ended without RUN_FINISHED or RUN_ERROR; the official client calls that a success%s", why)
	}
}

// runID judges the ids of runs.
func runID() *rule {
	r := newRule("RUN-ID", "A run bears the ids of the input, at its beginning and at its end.")
	other := r.Fail("thread", "threadId is not that of the input", "RUN-006")
	run := r.Fail("run", "runId of the requested run is not that of the input", "RUN-006")
	agree := r.Fail("disagree", "RUN_FINISHED names another run than RUN_STARTED", "RUN-006")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind != "RUN_STARTED" && ev.kind != "RUN_FINISHED" {
			return
		}
		id := ev.v.Get("runId").Str()
		if want := s.input.Get("threadId"); want.Kind() == wire.String && want.Str() != "" {
			w.Saw(other)
			if got := ev.v.Get("threadId").Str(); got != want.Str() {
				w.find(other, ev, ev.kind, []int{s.ref}, "%s has the threadId %q, and the input %q.", ev.kind, got, want.Str())
			}
		}
		if ev.kind == "RUN_FINISHED" && s.phase == active {
			w.Saw(agree)
			if id != s.runID {
				w.find(agree, ev, "", nil, "RUN_FINISHED has the runId %q, and RUN_STARTED had %q.", id, s.runID)
			}
		}
	}
	// Which run is the requested one, the end shows: runs before it are history.
	r.ends = func(w *watch, s *stream) {
		want := s.input.Get("runId").Str()
		if want == "" || s.runs == 0 {
			return
		}
		w.Saw(run)
		if s.runID != want {
			w.Report(run, 0, s.session, "", []int{s.ref}, "The last run of the stream has the runId %q, and the input %q.",
				s.runID, want)
		}
	}
	return r
}

// runClosed judges that a run leaves nothing open.
func runClosed() *rule {
	r := newRule("RUN-CLOSED", "All that a run opened is closed before RUN_FINISHED.")
	var points [families]int
	for f, name := range called {
		points[f] = r.Fail(strings.ReplaceAll(name, " ", "-"), "a "+name+" is open at RUN_FINISHED", "RUN-007")
	}
	step := r.Fail("step", "a step is open at RUN_FINISHED", "RUN-007")
	sub := r.Fail("subagent", "a subagent is active at RUN_FINISHED", "RUN-007", "SUB-001")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind != "RUN_FINISHED" || s.phase != active {
			return
		}
		w.Saw(step, sub)
		w.Saw(points[:]...)
		for _, k := range s.openItems() {
			w.find(points[k.family], ev, k.id, []int{s.items[k].at}, "The run finished while %s %q was open.",
				called[k.family], k.id)
		}
		steps := slices.SortedFunc(maps.Keys(s.steps), func(a, b [2]string) int { return s.steps[a] - s.steps[b] })
		for _, name := range steps {
			w.find(step, ev, name[1], []int{s.steps[name]}, "The run finished while step %q was open.", name[1])
		}
		for _, id := range slices.Sorted(maps.Keys(s.agents)) {
			if a := s.agents[id]; a.announced && !a.over {
				w.find(sub, ev, id, nil, "The run finished while subagent %q was active.", id)
			}
		}
	}
	return r
}

// stepPair judges steps.
func stepPair() *rule {
	r := newRule("STEP-PAIR", "A step is started while its name is free, and finished by who started it.")
	twice := r.Fail("twice", "a step is started whose name is open", "STEP-001")
	none := r.Fail("not-open", "a step is finished that is not open", "STEP-001")
	r.see = func(w *watch, s *stream, ev *event) {
		name := ev.v.Get("stepName").Str()
		at := s.steps[[2]string{ev.owner, name}]
		switch ev.kind {
		case "STEP_STARTED":
			if w.Saw(twice); at > 0 {
				w.find(twice, ev, name, []int{at}, "Step %q is started while it is open.", name)
			}
		case "STEP_FINISHED":
			if w.Saw(none); at == 0 {
				w.find(none, ev, name, nil, "Step %q is finished, and was not open.", name)
			}
		}
	}
	return r
}

// interrupts judges the interrupts at the end of a run.
func interrupts() *rule {
	r := newRule("INTERRUPT", "A run that waits for answers names each interrupt by an id of its own.")
	none := r.Fail("none", "the outcome is interrupt, and there is no interrupt", "INT-001")
	twice := r.Fail("twice", "two interrupts have the same id", "INT-001")
	call := r.Warn("call", "an interrupt names a tool call that was not made", "INT-002")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind != "RUN_FINISHED" || !ev.v.Path("outcome.type").Is("interrupt") {
			return
		}
		w.Saw(none, twice)
		list := ev.v.Path("outcome.interrupts")
		if list.Len() == 0 {
			w.find(none, ev, "", nil, "The outcome is interrupt, and names nothing that could be answered.")
		}
		ids := map[string]bool{}
		for i := range list.Items() {
			id, of := i.Get("id").Str(), i.Get("toolCallId").Str()
			if ids[id] {
				w.find(twice, ev, id, nil, "Two interrupts have the id %q.", id)
			}
			ids[id] = true
			if of == "" {
				continue
			}
			w.Saw(call)
			if s.items[key{tool, of}] == nil && !s.inputCall(of) {
				w.find(call, ev, of, nil, "An interrupt is about the tool call %q, which was not made.", of)
			}
		}
	}
	return r
}

// usage judges the counts of tokens.
func usage() *rule {
	r := newRule("USAGE", "Counts of tokens are totals, or parts of them.")
	parts := r.Fail("parts", "a part is larger than what it is a part of", "RUN-013")
	sum := r.Fail("sum", "the total is not the sum", "RUN-013")
	r.see = func(w *watch, _ *stream, ev *event) {
		for u := range ev.v.Get("usage").Items() {
			count := func(name string) (n int64, ok bool) { return u.Get(name).Int() }
			input, in := count("inputTokens")
			output, out := count("outputTokens")
			w.Saw(parts)
			cached, _ := count("cachedInputTokens")
			written, _ := count("cacheWriteInputTokens")
			thought, _ := count("reasoningTokens")
			if in && cached+written > input || out && thought > output {
				w.find(parts, ev, "", nil, "Tokens of the cache or of reasoning are more than all: %s.", string(u.Raw()))
			}
			if total, ok := count("totalTokens"); ok && in && out {
				if w.Saw(sum); total != input+output {
					w.find(sum, ev, "", nil, "totalTokens is %d, and input and output are %d.", total, input+output)
				}
			}
		}
	}
	return r
}

var (
	traceText = regexp.MustCompile(`(?m)^\s+at .+\(.+:\d+:\d+\)|Traceback \(most recent call last\)|` +
		`^goroutine \d+ \[|^\s+File ".+", line \d+`)
	keyText = regexp.MustCompile(`\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}`)
)

// private judges that what is the server's stays there.
func private() *rule {
	r := newRule("PRIVATE", "Errors and state show nothing that is the server's own.")
	trace := r.Lint("trace", "the text of an error has a stack trace", "RUN-014")
	keys := r.Warn("key", "an event has what looks like a key", "SEC-001")
	own := r.Lint("own", "the state has members that begin with an underscore", "SEC-001")
	r.see = func(w *watch, s *stream, ev *event) {
		switch ev.kind {
		case "RUN_ERROR":
			if w.Saw(trace); traceText.MatchString(ev.v.Get("message").Str()) {
				w.find(trace, ev, "", nil, "The message of RUN_ERROR has a stack trace.")
			}
		case "STATE_SNAPSHOT":
			w.Saw(own)
			for name := range ev.v.Get("snapshot").Members() {
				if strings.HasPrefix(name, "_") && !s.input.Path("state").Get(name).Exists() {
					w.find(own, ev, name, nil, "The state has the member %q, which looks private.", name)
				}
			}
		}
		if ev.kind == "STATE_SNAPSHOT" || ev.kind == "RAW" || ev.kind == "RUN_ERROR" {
			if w.Saw(keys); keyText.Match(ev.Raw) {
				w.find(keys, ev, ev.kind, nil, "%s has what looks like a key.", ev.kind)
			}
		}
	}
	return r
}

// clock judges the timestamps of events.
func clock() *rule {
	r := newRule("CLOCK", "Timestamps do not go back.")
	back := r.Lint("back", "a timestamp is before the one of an earlier event", "SHP-001")
	r.see = func(w *watch, s *stream, ev *event) {
		if ts, ok := ev.v.Get("timestamp").Float(); ok && ev.kind != "" {
			if w.Saw(back); ts < s.last {
				w.find(back, ev, "", nil, "The timestamp of %s is before that of an earlier event.", ev.kind)
			}
		}
	}
	return r
}

// rawWeight judges what is sent beside the events.
func rawWeight() *rule {
	r := newRule("RAW-WEIGHT", "Raw events are few beside what is said, and wrap no event of the protocol.")
	heavy := r.Lint("heavy", "raw events are more than ten times what is said", "RAW-002")
	typed := r.Lint("typed", "RAW wraps an event of the protocol", "RAW-001")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind == "RAW" {
			if w.Saw(typed); knownType(ev.v.Path("event.type").Str()) {
				w.find(typed, ev, "", nil, "RAW wraps an event of the protocol, %s.", ev.v.Path("event.type").Str())
			}
		}
		if isEnd(ev) && s.raw > 0 {
			if w.Saw(heavy); s.raw > 10*s.useful && s.raw > 64<<10 {
				w.find(heavy, ev, "", nil, "%d bytes of the stream are raw events, beside %d of others.", s.raw, s.useful)
			}
		}
	}
	return r
}
