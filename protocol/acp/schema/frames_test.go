package schema_test

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/wire"
)

// realFrame is a frame as an agent or an editor really sent it.
type realFrame struct {
	to      schema.Direction
	answers string
	frame   wire.Frame
	raw     []byte
	want    []string // severity, path and message of each problem
}

func realFrames(t testing.TB) []realFrame {
	t.Helper()
	text, err := os.ReadFile("testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []realFrame
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		v, err := wire.Parse(bytes.Clone(s.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		f := realFrame{to: schema.ToAgent, answers: v.Get("answers").Str(), frame: wire.Classify(v.Get("frame")),
			raw: v.Get("frame").Raw()}
		if v.Get("to").Is("editor") {
			f.to = schema.ToEditor
		}
		for want := range v.Get("want").Items() {
			f.want = append(f.want, want.Str())
		}
		all = append(all, f)
	}
	return all
}

// problems is what Check says, a line for each.
func problems(d schema.Direction, f wire.Frame, answered string) (all []string) {
	schema.V1().Check(d, f, answered, func(p schema.Problem) {
		all = append(all, p.Severity.String()+" "+p.String())
	})
	return all
}

var _ = Describe("real frames", func() {
	It("have exactly the problems that were reviewed", func() {
		frames := realFrames(GinkgoTB())
		Expect(len(frames)).To(BeNumerically(">", 30))
		for _, f := range frames {
			Expect(f.frame.Problem).To(BeEmpty())
			Expect(problems(f.to, f.frame, f.answers)).To(Equal(f.want), "%s", f.raw)
		}
	})

	It("cost no allocation when nothing is wrong", func() {
		v := schema.V1()
		report := func(schema.Problem) {}
		for _, f := range soundFrames(GinkgoTB()) {
			Expect(testing.AllocsPerRun(10, func() {
				v.Check(f.to, f.frame, f.answers, report)
			})).To(BeZero(), "%s", f.raw)
		}
	})
})

// soundFrames are those in which nothing is wrong.
func soundFrames(t testing.TB) []realFrame {
	return slices.DeleteFunc(realFrames(t), func(f realFrame) bool { return len(f.want) > 0 })
}

func BenchmarkCheck(b *testing.B) {
	frames := soundFrames(b)
	v := schema.V1()
	size := 0
	for _, f := range frames {
		size += len(f.raw)
	}
	report := func(schema.Problem) {}
	b.ReportAllocs()
	b.SetBytes(int64(size / len(frames)))
	for i := 0; b.Loop(); i++ {
		f := &frames[i%len(frames)]
		v.Check(f.to, f.frame, f.answers, report)
	}
}

// BenchmarkFrame is all that a frame costs before anybody looks at it: parsing,
// taking apart and checking.
func BenchmarkFrame(b *testing.B) {
	frames := soundFrames(b)
	v := schema.V1()
	size := 0
	for _, f := range frames {
		size += len(f.raw)
	}
	report := func(schema.Problem) {}
	var d wire.Doc
	b.ReportAllocs()
	b.SetBytes(int64(size / len(frames)))
	for i := 0; b.Loop(); i++ {
		f := &frames[i%len(frames)]
		v.Check(f.to, wire.ClassifyLine(&d, f.raw), f.answers, report)
	}
}

func FuzzCheck(f *testing.F) {
	for _, real := range realFrames(f) {
		f.Add(real.raw, real.to == schema.ToAgent, real.answers)
	}
	f.Fuzz(func(t *testing.T, line []byte, toAgent bool, answered string) {
		d := schema.ToEditor
		if toAgent {
			d = schema.ToAgent
		}
		var doc wire.Doc
		schema.V1().Check(d, wire.ClassifyLine(&doc, line), answered, func(p schema.Problem) {
			if p.Path == "" || p.Message == "" {
				t.Fatalf("%q: got a problem without a place or a message: %+v", line, p)
			}
		})
	})
}
