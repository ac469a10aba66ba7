package transcript

// Verdict is the answer of an Expectation so far.
type Verdict uint8

// The three verdicts. Met and Unmeetable end a wait; Unmet may still change.
const (
	Unmet Verdict = iota
	Met
	Unmeetable
)

// String names the verdict in lower case.
func (v Verdict) String() string {
	return [...]string{"unmet", "met", "unmeetable"}[min(v, Unmeetable)]
}

// Fold is the state of one expectation over one stretch of a transcript. It
// sees each entry once, in order, and answers with the verdict after it and the
// reason for that verdict, a phrase that may be empty.
type Fold func(Entry) (Verdict, string)

// Expectation is a condition on a stretch of a transcript. It is a value: the
// same one may be awaited, judged and combined many times. It is also a gomega
// matcher for a *Transcript, or for anything with a method Transcript, and
// makes Eventually stop early once the verdict cannot change.
type Expectation struct {
	// Description is a noun phrase: "the turn's end with end_turn".
	Description string
	// Start begins a fold. Nil never becomes met. A fold is asked no more
	// once it answered Unmeetable, or Met where Empty is not Met too.
	Start func() Fold
	// Empty is the verdict over no entries at all. An expectation that Empty
	// meets says what must not happen: it is met until it is unmeetable.
	Empty Verdict
	// Outlives says that the agent's exit does not decide the expectation,
	// because entries of another source may.
	Outlives bool

	revocable bool   // Met may become Unmeetable later
	joint     string // the word that joins the parts in the description
	progress  *progress
}

// Expect makes an expectation from a noun phrase and a fold. An expectation made
// this way remembers how far a matcher has looked, so that polling it costs no
// more than the new entries.
func Expect(description string, start func() Fold) Expectation {
	return Expectation{Description: description, Start: start, progress: &progress{}}
}

// First is met by the first entry for which match is true.
func First(description string, match func(Entry) bool) Expectation {
	return Expect(description, func() Fold {
		return func(e Entry) (Verdict, string) {
			if match(e) {
				return Met, ""
			}
			return Unmet, "no such entry"
		}
	})
}

// wavers reports whether Met is not the last word on x.
func (x Expectation) wavers() bool { return x.revocable || x.Empty == Met }

// part is one expectation at work over one stretch.
type part struct {
	x       Expectation
	fold    Fold
	verdict Verdict
	reason  string
}

func (x Expectation) begin() *part {
	p := &part{x: x, verdict: x.Empty}
	if x.Start != nil {
		p.fold = x.Start()
	}
	if p.verdict == Unmet {
		p.reason = "nothing has happened"
	}
	return p
}

func begin(xs []Expectation) []*part {
	parts := make([]*part, len(xs))
	for i, x := range xs {
		parts[i] = x.begin()
	}
	return parts
}

// final reports whether no entry can change the verdict.
func (p *part) final() bool {
	return p.fold == nil || p.verdict == Unmeetable || p.verdict == Met && !p.x.wavers()
}

func (p *part) see(e Entry) {
	if !p.final() {
		p.verdict, p.reason = p.fold(e)
	}
}

// why is the reason with the name of what it is about.
func (p *part) why() string {
	if p.reason == "" {
		return p.x.Description
	}
	return p.x.Description + ": " + p.reason
}
