package scenarios

import (
	"fmt"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Miss is the error of a line whose expectation was not met.
type Miss struct {
	Failure *transcript.Failure
	// Verdict is set if the line itself determines it (inconclusive). If it is 0, the check's class decides.
	Verdict results.Verdict
	// Effect means that the line expects an effect or an end. Its miss is a failure even in a check without
	// requirements.
	Effect bool
	// Unanswered is the requirement that the agent broke by sending no response before the timeout, or "". The miss breaks
	// it in addition to the requirements of the check.
	Unanswered string
	// Soft means that the script continues, because no later line depends on this one.
	Soft bool
	// setup means that the miss belongs to an implied step, such as the agent's start, and not to a line. It counts
	// against the scenario instead of a check.
	setup bool
	// turnOpen is the Seq of a prompt if its turn did not end although a line awaited the end; else 0.
	turnOpen int
	// turnEnd is the Seq of a turn end after a cancel, if its stop reason is not cancelled; else 0. A rule decides
	// whether that is a failure.
	turnEnd int
	// by is the entry that made a match impossible, or the zero Entry.
	by transcript.Entry
	// ofTool means that the line expects an effect of a tool call. at is the length of the transcript when the line
	// missed.
	ofTool bool
	// why is the reason why the miss proves nothing, or "".
	why string
	at  int
}

// reason explains in one sentence why the miss proves nothing.
func (m *Miss) reason() string {
	if m.why != "" {
		return m.why
	}
	if m.ofTool && m.Verdict == results.Inconclusive && m.Failure.Reason != "" {
		return m.Failure.Reason
	}
	return m.Failure.Error()
}

func (m *Miss) Error() string { return m.Failure.Error() }

// Skipped is the error that ends a scenario because it does not apply.
type Skipped struct{ Reason string }

func (s *Skipped) Error() string { return s.Reason }

// NoSituation returns an inconclusive Miss of a line because the agent did not bring about a situation.
func (r *run) NoSituation(l *Line, expected, observed string, entries ...int) *Miss {
	f := r.Failure(l, transcript.Outcome{})
	f.Expected, f.Observed, f.Entries = []string{expected}, observed, entries
	return &Miss{Failure: f, Verdict: results.Inconclusive}
}

// NotOpen returns the error of a line that names a session which is not open. The error is a mistake of the scenario,
// unless the agent refused to open a session.
func (r *run) NotOpen(name string) error {
	refusals := lists.Having(r.t.All(), func(e transcript.Entry) bool {
		return e.Source == transcript.Agent && e.Kind == transcript.Response && r.protocol().OpensSession(e.Method) &&
			e.JSON().Get("error").Exists()
	})
	if n := len(refusals); n > 0 {
		return &lacking{what: "session " + name, entry: refusals[n-1]}
	}
	return fmt.Errorf("session %s is not open", name)
}
