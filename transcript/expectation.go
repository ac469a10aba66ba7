package transcript

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
)

// Verdict is the current result of an Expectation.
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

// Fold is the state of one expectation over a range of a transcript. It gets
// each entry once, in order. It returns the verdict after that entry, and the
// reason as a phrase, which may be empty.
type Fold func(Entry) (Verdict, string)

// Expectation is a condition on a range of a transcript. It is a value that can
// be awaited, judged and combined any number of times. It is also a gomega
// matcher for a *Transcript, or for a value with a method Transcript. It makes
// Eventually stop once the verdict cannot change.
type Expectation struct {
	// Description is a noun phrase such as "the turn's end with end_turn".
	Description string
	// Start returns a new fold. If Start is nil, the verdict is always Empty. A
	// fold gets no more entries after it has returned Unmeetable. The same is true
	// after Met, unless Empty is Met.
	Start func() Fold
	// Empty is the verdict if there are no entries. If Empty is Met, the
	// expectation forbids something: it is met until it becomes unmeetable.
	Empty Verdict
	// Outlives means that the agent's exit does not decide the expectation,
	// because entries from another source may still decide it.
	Outlives bool

	revocable bool   // Met may still become Unmeetable
	joint     string // the word between the parts in the description
	progress  *progress
}

// Expect returns an expectation with a noun phrase and a fold. The expectation
// remembers how far a gomega matcher has read, so that polling only reads new
// entries.
func Expect(description string, start func() Fold) Expectation {
	return Expectation{Description: description, Start: start, progress: &progress{}}
}

// First returns an expectation that is met by the first entry for which match
// is true.
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

// part is the evaluation of one expectation over a range.
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

// final reports whether the verdict can no longer change.
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

// AllOf returns an expectation that is met when all of xs are met, by the same
// or by different entries. It is unmeetable as soon as one of xs is.
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

// AnyOf returns an expectation that is met when one of xs is met. It is
// unmeetable when all of xs are.
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

// compound returns an expectation that passes each entry to all of xs and
// combines their verdicts.
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

// Not returns an expectation that is met until x is met, and is then
// unmeetable. It is for Judge and OnceMet; an Await of it returns immediately.
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

// OnceMet returns an expectation that waits for the precondition. The entry
// that meets the precondition decides: if all of must are met at that point,
// OnceMet is met, else it is unmeetable. All are judged over the same range. In
// this way, "eventually" and "never" conditions can be checked at a defined
// moment.
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

// Before returns an expectation that is met by the first match of x, unless y
// is met earlier. If y is never met, any match of x counts. An entry that meets
// both counts as x.
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

// After returns an expectation that is met by the first match of x after the
// first match of y. The entry that meets y does not count for x.
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

// frozen returns a copy of x whose first decided verdict never changes, even if
// there are no entries.
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
