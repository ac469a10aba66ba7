package transcript

import (
	"fmt"
	"strings"
)

// AllOf is met when all are, at the same entry or at different ones, and
// unmeetable as soon as one is.
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

// AnyOf is met when one is, and unmeetable when none can be.
func AnyOf(xs ...Expectation) Expectation {
	return compound("or", xs, func(parts []*part) (Verdict, string) {
		verdict := Unmeetable
		for _, p := range parts {
			if p.verdict == Met {
				return Met, p.reason
			}
			verdict = min(verdict, p.verdict)
		}
		why := make([]string, len(parts))
		for i, p := range parts {
			why[i] = p.why()
		}
		return verdict, strings.Join(why, "; ")
	})
}

// compound feeds each entry to all parts and combines their verdicts.
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

// Not is met as long as x is not, and unmeetable once x is met. Awaiting it
// ends at once: it is meant for Judge, and for OnceMet.
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

// OnceMet waits for the precondition; at the entry that meets it, must has to
// be met as well, judged over the same stretch, or the whole is unmeetable.
// That turns "eventually" and "never" into a question with a moment.
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

// Before is met by the first x, unless y comes first. Where y never comes, any
// x is before it; an entry that is both counts as x.
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

// After is met by the first x that follows the first y: by an entry later than
// the one that meets y.
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

// frozen keeps the first final verdict, also where it stands before the first
// entry.
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
