package clients_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the vendors' clients", func() {
	for _, v := range vendors {
		for _, stream := range []bool{true, false} {
			It(fmt.Sprintf("hold a conversation: %s stream=%t", v.name, stream), func(ctx SpecContext) {
				talk(ctx, serving(), v, stream)
			}, SpecTimeout(20*time.Second))
		}
	}
})

func talk(ctx context.Context, r rig, v vendor, stream bool) {
	GinkgoHelper()
	lines := []line{{user: "Please say hello to me"}}
	next := func() said {
		GinkgoHelper()
		got, err := v.ask(ctx, r.URL(), lines, stream)
		Expect(err).NotTo(HaveOccurred(), "%s", r.URL())
		lines = append(lines, line{model: &got})
		if len(got.calls) > 0 {
			results := []string{"one", "two"}[:len(got.calls)]
			lines = append(lines, line{results: results})
		} else {
			lines = append(lines, line{user: "go on"})
		}
		return got
	}

	got := next()
	Expect(got.text).To(Equal("Hello, world ✓."))
	Expect(got.thinking).To(Equal("Let me see."))
	Expect(got.stop).To(Equal(v.stops[0]))
	Expect([]int64{got.in, got.out}).To(Equal([]int64{30, 7}))

	got = next()
	Expect(got.text).To(Equal("I will write."))
	Expect(got.stop).To(Equal(v.stops[3]))
	Expect(got.calls).To(HaveLen(1))
	Expect(got.calls[0].name).To(Equal("write_file"))
	Expect(got.calls[0].args).To(MatchJSON(`{"path":"/a","content":"x\n"}`))

	got = next()
	Expect(got.calls).To(HaveLen(2))
	Expect(got.calls[1].name).To(Equal("read_file"))
	Expect(got.calls[1].args).To(MatchJSON(`{"path":"/b"}`))
	Expect(got.calls[0].id).NotTo(Equal(got.calls[1].id))

	Expect(next().text).To(Equal("All done."))

	got = next()
	Expect(got.text).To(Equal("cut o"))
	Expect(got.stop).To(Equal(v.stops[1]))

	Expect(next().stop).To(Equal(v.stops[2]))

	Expect(next().text).To(Equal("after a retry"))
	Expect(r.field("model-request", "step")).To(Equal("7"))

	_, err := v.ask(ctx, r.URL(), lines, stream)
	Expect(err).To(HaveOccurred())
	Expect(r.field("model-fault", "fault")).To(Equal("disconnect mid-chunk"))
}
