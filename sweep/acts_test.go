package sweep_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

var _ = Describe("a table of acts", func() {
	table := func(text string) *sweep.Acts[*sweep.Builder] {
		return (&sweep.Acts[*sweep.Builder]{
			Flags: []string{"loud"},
			Conditions: map[string]func(*sweep.Builder) bool{
				"loud": func(b *sweep.Builder) bool { return b.Act.Is("loud") },
				"idle": func(b *sweep.Builder) bool { return b.Point.State == "idle" },
			},
			Values: map[string]func(*sweep.Builder) script.Word{
				"who":  func(*sweep.Builder) script.Word { return script.Text("the world") },
				"none": func(*sweep.Builder) script.Word { return script.Word{} },
			},
		}).Read(text)
	}
	written := func(text, state string) (string, []string) {
		t := table(text)
		s := &sweep.Script{Planner: &sweep.Planner{Renamed: map[string]string{"OLD-1": "NEW-1"}}}
		b := sweep.NewBuilder(sweep.Situation{Script: s, Act: t.List[0], Point: sweep.Point{State: state}}, "T")
		t.Write(b)
		a, keep := b.Archive()
		var kept []string
		for _, l := range a.Lines {
			if keep[l.String()] {
				kept = append(kept, l.String())
			}
		}
		return string(a.Text()), kept
	}

	It("writes lines whose conditions hold, with values and parts, and keeps what is done", func() {
		text, kept := written(`
act greet kind=talk rank=2 needs=speech loud [idle] {
	do say {who} {none}
	[idle] check OLD-1 answers
	[!idle] check never
	[!loud|idle] check never
	[loud|idle] twice 100%
	check answers
}
part twice {
	group {
		heard {1}
		heard {1}
	}
}
`, "idle")
		Expect(text).To(Equal("# T\ngolden off\nsay 'the world'\ncheck NEW-1 answers\ngroup {\n  heard 100%\n" +
			"  heard 100%\n}\ncheck answers-2\n"))
		Expect(kept).To(Equal([]string{"say 'the world'"}))
	})

	DescribeTable("is refused where it is wrong", func(text, want string) {
		Expect(func() { written(text, "idle") }).To(PanicWith(ContainSubstring(want)))
	},
		Entry("a condition", "act a {\n\t[busy] x\n}\n", `acts:2: there is no condition "busy"`),
		Entry("the condition of an act", "act a [!busy] {\n}\n", `acts:1: there is no condition "busy"`),
		Entry("an option", "act a size=2 {\n}\n", `acts:1: there is no option "size=2"`),
		Entry("a flag", "act a quiet {\n}\n", `acts:1: there is no option "quiet"`),
		Entry("a value", "act a {\n\tsay {whom}\n}\n", `acts:2: there is no value {whom}`),
	)
})
