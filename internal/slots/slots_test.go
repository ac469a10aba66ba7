package slots

import (
	"context"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestSlots(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "slots")
}

// left returns how many of the given number of slots are left after 60 checks, in each of which processes waited for a
// processor for the given time.
func left(most int, waited time.Duration) int {
	ctx, stop := context.WithCancel(context.Background())
	s, tick, ended := make(Slots, most), make(chan time.Time), make(chan struct{})
	var sum time.Duration
	go func() {
		defer close(ended)
		s.fit(ctx, 0, tick, func() time.Duration { sum += waited; return sum })
	}()
	for range 60 {
		tick <- time.Time{}
	}
	stop()
	<-ended
	return most - len(s)
}

// offers reports whether fit would add a slot while the given number of two slots are taken.
func offers(taken int, waited time.Duration) bool {
	s := make(Slots, 2)
	for range taken {
		s <- struct{}{}
	}
	return s.offer(waited)
}

var _ = Describe("how many scenarios run at once", func() {
	It("is more while all slots are taken and the processors are idle", func() {
		Expect(offers(2, 10*time.Millisecond)).To(BeTrue())
		Expect(offers(2, 150*time.Millisecond)).To(BeFalse())
		Expect(offers(1, 10*time.Millisecond)).To(BeFalse())
	})

	It("is less while the processors have no time, but at least twice as many as processors", func() {
		least := 2 * runtime.NumCPU()
		Expect(left(least+8, 200*time.Millisecond)).To(Equal(least + 6))
		Expect(left(least+8, 150*time.Millisecond)).To(Equal(least + 8))
		Expect(left(least+1, 200*time.Millisecond)).To(Equal(least))
	})
})
