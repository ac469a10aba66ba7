package transcript_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

const (
	unmet      = transcript.Unmet
	met        = transcript.Met
	unmeetable = transcript.Unmeetable
)

// model is an expectation together with its meaning: a function of a whole
// stretch, computed the slow way.
type model struct {
	x    transcript.Expectation
	over func(stretch string) transcript.Verdict
}

func happened(name string) model {
	return model{a(name), func(s string) transcript.Verdict {
		if strings.Contains(s, name) {
			return met
		}
		return unmet
	}}
}

// unless is met by name and unmeetable once stop came before it.
func unless(name, stop string) model {
	start := func() transcript.Fold {
		return func(e transcript.Entry) (transcript.Verdict, string) {
			switch e.Method {
			case name:
				return met, ""
			case stop:
				return unmeetable, stop
			}
			return unmet, ""
		}
	}
	return model{transcript.Expect(name+" unless "+stop, start), func(s string) transcript.Verdict {
		if i := strings.IndexAny(s, name+stop); i >= 0 && s[i:i+1] == name {
			return met
		} else if i >= 0 {
			return unmeetable
		}
		return unmet
	}}
}

// firstMet is the length of the shortest prefix over which m has the verdict,
// -1 if none.
func shortest(m model, s string, v transcript.Verdict) int {
	for n := range len(s) + 1 {
		if m.over(s[:n]) == v {
			return n
		}
	}
	return -1
}

func values(ms []model) []transcript.Expectation {
	var xs []transcript.Expectation
	for _, m := range ms {
		xs = append(xs, m.x)
	}
	return xs
}

func allOf(ms ...model) model {
	return model{transcript.AllOf(values(ms)...), func(s string) transcript.Verdict {
		v := met
		for _, m := range ms {
			switch m.over(s) {
			case unmeetable:
				return unmeetable
			case unmet:
				v = unmet
			}
		}
		return v
	}}
}

func anyOf(ms ...model) model {
	return model{transcript.AnyOf(values(ms)...), func(s string) transcript.Verdict {
		v := unmeetable
		for _, m := range ms {
			switch m.over(s) {
			case met:
				return met
			case unmet:
				v = unmet
			}
		}
		return v
	}}
}

func not(m model) model {
	return model{transcript.Not(m.x), func(s string) transcript.Verdict {
		if shortest(m, s, met) >= 0 {
			return unmeetable
		}
		return met
	}}
}

func onceMet(pre model, must ...model) model {
	return model{transcript.OnceMet(pre.x, values(must)...), func(s string) transcript.Verdict {
		n := shortest(pre, s, met)
		if n < 0 {
			return pre.over(s)
		}
		if allOf(must...).over(s[:n]) == met {
			return met
		}
		return unmeetable
	}}
}

func before(x, y model) model {
	return model{x.x.Before(y.x), func(s string) transcript.Verdict {
		n, m := shortest(x, s, met), shortest(y, s, met)
		switch {
		case n >= 0 && (m < 0 || n <= m):
			return met
		case m >= 0:
			return unmeetable
		}
		return x.over(s)
	}}
}

func after(x, y model) model {
	return model{x.x.After(y.x), func(s string) transcript.Verdict {
		n := shortest(y, s, met)
		if n < 0 {
			return y.over(s)
		}
		return x.over(s[n:])
	}}
}

func models(depth int) *rapid.Generator[model] {
	return rapid.Custom(func(r *rapid.T) model {
		letter := rapid.SampledFrom([]string{"a", "b", "c"})
		kind := rapid.IntRange(0, 7).Draw(r, "kind")
		if depth == 0 {
			kind %= 2
		}
		inner := func() model { return models(depth-1).Draw(r, "inner") }
		some := func() []model { return rapid.SliceOfN(models(depth-1), 0, 3).Draw(r, "parts") }
		switch kind {
		case 0:
			return happened(letter.Draw(r, "name"))
		case 1:
			return unless(letter.Draw(r, "name"), "d")
		case 2:
			return allOf(some()...)
		case 3:
			return anyOf(some()...)
		case 4:
			return not(inner())
		case 5:
			return onceMet(inner(), some()...)
		case 6:
			return before(inner(), inner())
		}
		return after(inner(), inner())
	})
}

var _ = Describe("Combinators", func() {
	It("give, entry by entry, the verdict over the whole stretch", func() {
		rapid.Check(GinkgoTB(), func(r *rapid.T) {
			m := models(3).Draw(r, "expectation")
			s := rapid.StringMatching(`[abcde]{0,8}`).Draw(r, "stretch")
			t, _ := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
			for _, c := range s {
				note(t, string(c))
			}
			for n := range len(s) + 1 {
				if got, want := t.Judge(0, n, m.x), m.over(s[:n]); got.Verdict != want {
					r.Fatalf("%s over %q: got %v (%s), want %v", m.x.Description, s[:n], got.Verdict, got.Reason, want)
				}
			}
		})
	})

	It("await the first prefix that decides", func() {
		rapid.Check(GinkgoTB(), func(r *rapid.T) {
			m := models(3).Draw(r, "expectation")
			s := rapid.StringMatching(`[abcde]{0,8}`).Draw(r, "stretch")
			t, _ := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
			for _, c := range s {
				note(t, string(c))
			}
			want, at := unmet, 0
			for n := range len(s) + 1 {
				if want = m.over(s[:n]); want != unmet {
					at = n
					break
				}
			}
			if o := t.Await(over(), 0, m.x); o.Verdict != want || o.Entry.Seq != at {
				r.Fatalf("%s over %q: got %v at #%d, want %v at #%d", m.x.Description, s, o.Verdict, o.Entry.Seq, want,
					at)
			}
		})
	})

	DescribeTable("say what they are and why they are so",
		func(x transcript.Expectation, stretch, description, verdict string) {
			t := empty()
			for _, c := range stretch {
				note(t, string(c))
			}
			o := t.Judge(0, -1, x)
			Expect(x.Description).To(Equal(description))
			Expect(fmt.Sprintf("%v: %s", o.Verdict, o.Reason)).To(Equal(verdict))
		},
		Entry(nil, transcript.AllOf(a("a"), a("b")), "a", "a a and a b", "unmet: a b: no such entry"),
		Entry(nil, transcript.AnyOf(a("a"), a("b")), "", "a a or a b", "unmet: nothing has happened"),
		Entry(nil, transcript.AnyOf(a("a"), transcript.Not(a("b"))), "b", "a a or no a b",
			"unmet: a a: no such entry; no a b: it happened at #1"),
		Entry(nil, transcript.AllOf(transcript.AnyOf(a("a"), a("b")), a("c")), "a", "(a a or a b) and a c",
			"unmet: a c: no such entry"),
		Entry(nil, transcript.OnceMet(a("a"), a("b")), "ca", "once a a: a b", "unmeetable: a b: no such entry"),
		Entry(nil, transcript.OnceMet(a("a"), a("b")), "c", "once a a: a b", "unmet: a a: no such entry"),
		Entry(nil, a("a").Before(a("b")), "cba", "a a before a b", "unmeetable: a b came first, at #2"),
		Entry(nil, a("a").After(a("b")), "ab", "a a after a b", "unmet: none since a b"),
		Entry(nil, a("a").After(a("b")), "a", "a a after a b", "unmet: a b: no such entry"),
	)
})
