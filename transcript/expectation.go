package transcript

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
)

// Verdict is the answer of an Expectation so far.
type Verdict uint8

// The three verdicts. Met and Unmeetable end a wait; Unmet may still change.
const (
	Unmet Verdict = iota
	Met
	Unmeetable
)

// String returns the name of the verdict in lower case.
func (v Verdict) String() string {
	return [...]string{"unmet", "met", "unmeetable"}[min(v, Unmeetable)]
}

// Fold is the state of one expectation over one stretch of a transcript. It gets
// each entry once, in order, and returns the verdict after it and the reason, a
// phrase that may be empty.
type Fold func(Entry) (Verdict, string)

// Expectation is a condition on a stretch of a transcript. It is a value: it may
// be awaited, judged and combined many times. It is also a gomega matcher for a
// *Transcript, or for anything with a method Transcript, and stops Eventually
// once the verdict cannot change.
type Expectation struct {
	// Description is a noun phrase: "the turn's end with end_turn".
	Description string
	// Start begins a fold. With a nil Start the verdict stays Empty. A fold gets
	// no more entries once it returned Unmeetable or, unless Empty is Met, Met.
	Start func() Fold
	// Empty is the verdict over no entries at all. If Empty is Met, the
	// expectation says what must not happen: it is met until it is unmeetable.
	Empty Verdict
	// Outlives says that the agent's exit does not decide the expectation,
	// because entries of another source may.
	Outlives bool

	revocable bool   // Met may become Unmeetable later
	joint     string // the word that joins the parts in the description
	progress  *progress
}

// Expect returns an expectation from a noun phrase and a fold. Such an
// expectation remembers how far a matcher has read, so that polling costs no more
// than the new entries.
func Expect(description string, start func() Fold) Expectation {
	return Expectation{Description: description, Start: start, progress: &progress{}}
}

// First returns an expectation met by the first entry for which match is true.
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

// wavers reports whether a Met verdict of x can still change.
func (x Expectation) wavers() bool { return x.revocable || x.Empty == Met }

// part is one expectation that is being evaluated over one stretch.
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

func begin(xs []Expectation) []*part { return lists.Map(xs, Expectation.begin) }

// final reports whether no entry can change the verdict.
func (p *part) final() bool {
	return p.fold == nil || p.verdict == Unmeetable || p.verdict == Met && !p.x.wavers()
}

func (p *part) see(e Entry) {
	if !p.final() {
		p.verdict, p.reason = p.fold(e)
	}
}

// why returns the description of the expectation and the reason.
func (p *part) why() string {
	if p.reason == "" {
		return p.x.Description
	}
	return p.x.Description + ": " + p.reason
}

// AllOf is met when all of xs are, at the same entry or at different ones. It is
// unmeetable as soon as one of xs is.
func AllOf(xs ...Expectation) Expectation {
	return compound("and", xs, func(parts []*part) (Verdict, string) {
		var open *part
		for _, p := range parts {
			if p.verdict == Unmeetable {
				return Unmeetable, p.why()
			}
			if p.verdict == Unmet && open == nil {
				open = p
			}
		}
		if open != nil {
			return Unmet, open.why()
		}
		return Met, ""
	})
}

// AnyOf is met when one of xs is, and unmeetable when all of them are.
func AnyOf(xs ...Expectation) Expectation {
	return compound("or", xs, func(parts []*part) (Verdict, string) {
		verdict := Unmeetable
		for _, p := range parts {
			if p.verdict == Met {
				return Met, p.reason
			}
			verdict = min(verdict, p.verdict)
		}
		return verdict, strings.Join(lists.Map(parts, (*part).why), "; ")
	})
}

// compound returns an expectation that feeds each entry to all parts and combines
// their verdicts.
func compound(word string, xs []Expectation, combine func([]*part) (Verdict, string)) Expectation {
	c := Expect(join(word, xs), func() Fold {
		parts := begin(xs)
		return func(e Entry) (Verdict, string) {
			for _, p := range parts {
				p.see(e)
			}
			return combine(parts)
		}
	})
	c.Empty, _ = combine(begin(xs))
	c.joint = word
	for _, x := range xs {
		c.revocable = c.revocable || x.wavers()
		c.Outlives = c.Outlives || x.Outlives
	}
	return c
}

func join(word string, xs []Expectation) string {
	var b strings.Builder
	for i, x := range xs {
		if i > 0 {
			b.WriteString(" " + word + " ")
		}
		if x.joint != "" && x.joint != word && len(xs) > 1 {
			b.WriteString("(" + x.Description + ")")
		} else {
			b.WriteString(x.Description)
		}
	}
	return b.String()
}

// Not is met as long as x is not, and unmeetable once x is met. It is meant for
// Judge and OnceMet: an Await of it ends at once.
func Not(x Expectation) Expectation {
	not := Expect("no "+x.Description, func() Fold {
		p := x.begin()
		return func(e Entry) (Verdict, string) {
			if p.see(e); p.verdict == Met {
				return Unmeetable, fmt.Sprintf("it happened at #%d", e.Seq)
			}
			return Met, ""
		}
	})
	not.Empty = Met
	if x.Empty == Met {
		not.Empty = Unmeetable
	}
	not.Outlives = x.Outlives
	return not
}

// OnceMet waits for the precondition. At the entry that meets it, all of must
// have to be met too, judged over the same stretch, else OnceMet is unmeetable.
// It checks "eventually" and "never" conditions at a defined moment.
func OnceMet(precondition Expectation, must ...Expectation) Expectation {
	once := Expect("once "+precondition.Description+": "+join("and", must), func() Fold {
		pre, post := precondition.begin(), begin(must)
		return func(e Entry) (Verdict, string) {
			pre.see(e)
			for _, p := range post {
				p.see(e)
			}
			return moment(pre, post)
		}
	})
	once.Empty, _ = moment(precondition.begin(), begin(must))
	once.Outlives = precondition.Outlives
	return frozen(once)
}

func moment(pre *part, post []*part) (Verdict, string) {
	if pre.verdict != Met {
		return pre.verdict, pre.why()
	}
	for _, p := range post {
		if p.verdict != Met {
			return Unmeetable, p.why()
		}
	}
	return Met, ""
}

// Before is met by the first x, unless y comes first. If y never comes, any x is
// before it. An entry that meets both counts as x.
func (x Expectation) Before(y Expectation) Expectation {
	before := Expect(x.Description+" before "+y.Description, func() Fold {
		a, b := x.begin(), y.begin()
		return func(e Entry) (Verdict, string) {
			if a.see(e); a.verdict == Met {
				return Met, ""
			}
			if b.see(e); b.verdict == Met {
				return Unmeetable, fmt.Sprintf("%s came first, at #%d", y.Description, e.Seq)
			}
			return a.verdict, a.reason
		}
	})
	if before.Empty = x.Empty; x.Empty != Met && y.Empty == Met {
		before.Empty = Unmeetable
	}
	before.Outlives = x.Outlives
	return frozen(before)
}

// After is met by the first x after the first y. The entry that meets y does not
// count for x.
func (x Expectation) After(y Expectation) Expectation {
	after := Expect(x.Description+" after "+y.Description, func() Fold {
		a, b := x.begin(), y.begin()
		since := b.verdict == Met
		return func(e Entry) (Verdict, string) {
			if since {
				a.see(e)
				return a.verdict, a.reason
			}
			if b.see(e); b.verdict != Met {
				return b.verdict, b.why()
			}
			since = true
			return a.verdict, "none since " + y.Description
		}
	})
	if after.Empty = y.Empty; y.Empty == Met {
		after.Empty = x.Empty
	}
	after.revocable = x.wavers()
	after.Outlives = x.Outlives
	return after
}

// frozen returns x such that its first final verdict stays, even if it comes
// before the first entry.
func frozen(x Expectation) Expectation {
	start, empty := x.Start, x.Empty
	x.Start = func() Fold {
		fold, verdict, reason := start(), empty, ""
		return func(e Entry) (Verdict, string) {
			if verdict == Unmet {
				verdict, reason = fold(e)
			}
			return verdict, reason
		}
	}
	return x
}
