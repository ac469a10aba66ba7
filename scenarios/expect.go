package scenarios

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/transcript"
)

// expectation turns a bound pattern into something to await. It gives up early
// where the pattern can no longer match: a turn that ended otherwise, a turn
// that ended before what had to happen within it.
func (x *bound) expectation(taken map[int]bool) transcript.Expectation {
	expect := transcript.Expect(x.text, func() transcript.Fold {
		return func(e transcript.Entry) (transcript.Verdict, string) {
			if taken[e.Seq] {
				return transcript.Unmet, "another line of the group took it"
			}
			if x.match(e) {
				return x.decide(e)
			}
			if x.kind == "response" && x.matchKind(e) {
				return transcript.Unmeetable, "the response is " + brief(e)
			}
			if x.endsWith(e) {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended first, at #%d, with %s", e.Seq, stopReason(e))
			}
			return transcript.Unmet, "no such entry yet"
		}
	})
	expect.Outlives = x.kind == "model" || x.kind == "gate"
	return expect
}

// counts reports whether an entry is one that saw looks for: here what decide
// demands is a filter.
func (x *bound) counts(e transcript.Entry) bool {
	if !x.match(e) {
		return false
	}
	v, _ := x.decide(e)
	return v == transcript.Met
}

// decide judges an entry of the right kind whose argument is a demand rather
// than a filter: the first end of the turn has to be the one wanted.
func (x *bound) decide(e transcript.Entry) (transcript.Verdict, string) {
	switch {
	case x.kind == "turn" && !x.wantsEnd(stopReason(e)):
		return transcript.Unmeetable, "the turn ended with " + brief(e)
	case x.kind == "exit" && x.arg != "":
		if got := exitStatus(e); got != x.arg {
			return transcript.Unmeetable, "the agent ended with " + got
		}
	}
	return transcript.Met, ""
}

// wantsEnd reports whether a turn may end this way: with one of the reasons
// named; with any reason, but no error, if none is or "any" is.
func (x *bound) wantsEnd(reason string) bool {
	if x.arg == "" {
		return reason != "error"
	}
	return oneOf(reason, x.arg) || reason != "error" && oneOf("any", x.arg)
}

// endsWith reports whether e ends the turn within which the pattern had to
// match. State may be reported at any time; so may what is not of a session.
func (x *bound) endsWith(e transcript.Entry) bool {
	if x.prompt == 0 || e.Ref != x.prompt || !turnEnd(e) {
		return false
	}
	switch x.kind {
	case "agent_message", "agent_thought", "user_message", "tool_call", "tool_call_update", "plan", "content",
		"permission", "elicitation", "gate":
		return true
	case "method", "request":
		return strings.HasPrefix(x.arg, "fs/") || strings.HasPrefix(x.arg, "terminal/")
	}
	return false
}

// opens reports whether the pattern is of something that must be open for the
// lines after it to mean anything: without it the harness has no situation to
// judge.
func (x *bound) opens() bool {
	switch x.kind {
	case "gate", "permission", "elicitation":
		return true
	case "method", "request":
		return strings.HasPrefix(x.arg, "fs/") || strings.HasPrefix(x.arg, "terminal/")
	}
	return false
}

// exitStatus is the status of an exit as text: "0", "1", "SIGKILL".
func exitStatus(e transcript.Entry) string {
	v := e.JSON()
	if s := v.Get("signal").Str(); s != "" {
		return s
	}
	code, _ := v.Get("code").Int()
	return strconv.FormatInt(code, 10)
}

// brief says what a response is, for a reason.
func brief(e transcript.Entry) string {
	v := e.JSON()
	if err := v.Get("error"); err.Exists() {
		return fmt.Sprintf("error %s %q", err.Get("code").Text(), err.Get("message").Text())
	}
	if r := v.Get("result").Get("stopReason"); r.Exists() {
		return r.Text()
	}
	r := string(v.Get("result").Raw())
	if len(r) > 200 {
		r = r[:200] + "…"
	}
	return "result " + r
}
