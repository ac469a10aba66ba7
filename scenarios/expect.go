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
		unmet := "no such entry yet"
		return func(e transcript.Entry) (transcript.Verdict, string) {
			switch {
			case x.match(e) && taken[e.Seq]:
				unmet = fmt.Sprintf("another line of the group took #%d, and there was no second one", e.Seq)
				return transcript.Unmet, unmet
			case taken[e.Seq]:
				return transcript.Unmet, unmet
			case x.match(e):
				return x.decide(e)
			}
			if x.of.OfRequest() && x.matchKind(e) {
				return transcript.Unmeetable, "the response is " + x.run.protocol().Brief(e)
			}
			if x.endsWith(e) {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended first, at #%d, with %s", e.Seq, x.run.stopReason(e))
			}
			return transcript.Unmet, unmet
		}
	})
	expect.Outlives = x.of.Outlives
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
	case x.isTurn() && !x.wantsEnd(x.run.stopReason(e)):
		return transcript.Unmeetable, "the turn ended with " + x.run.protocol().Brief(e)
	case x.of.Name == "exit" && x.Arg != "":
		if got := exitStatus(e); got != x.Arg {
			return transcript.Unmeetable, "the agent ended with " + got
		}
	}
	return transcript.Met, ""
}

// wantsEnd reports whether a turn may end this way: with one of the reasons
// named; with any reason, but no error, if none is or "any" is.
func (x *bound) wantsEnd(reason string) bool {
	if x.Arg == "" {
		return reason != "error"
	}
	return OneOf(reason, x.Arg) || reason != "error" && OneOf("any", x.Arg)
}

// endsWith reports whether e ends the turn within which the pattern had to
// match. State may be reported at any time; so may what is not of a session.
func (x *bound) endsWith(e transcript.Entry) bool {
	if x.prompt == 0 || e.Ref != x.prompt || !x.run.endsTurn(e) {
		return false
	}
	return x.of.Inner || x.of.InnerArg != nil && x.of.InnerArg(x.Arg)
}

// awaited names what kind of thing is awaited: how a turn is to end belongs to it, the words of
// a text do not.
func (x *bound) awaited() string {
	if x.isTurn() {
		return strings.TrimSpace("the end of a turn " + x.Arg)
	}
	return x.of.Name
}

// opens reports whether the pattern is of something that must be open for the
// lines after it to mean anything: without it the harness has no situation to
// judge.
func (x *bound) opens() bool { return x.of.Opens || x.of.InnerArg != nil && x.of.InnerArg(x.Arg) }

// exitStatus is the status of an exit as text: "0", "1", "SIGKILL".
func exitStatus(e transcript.Entry) string {
	v := e.JSON()
	if s := v.Get("signal").Str(); s != "" {
		return s
	}
	code, _ := v.Get("code").Int()
	return strconv.FormatInt(code, 10)
}
