package scenarios_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("what a scenario waited", func() {
	It("is part of its duration, each for what it was", func() {
		e := engine()
		linger := 30 * time.Millisecond
		e.Linger = &linger
		r := run(e, "prompt 'Say hello.'\nawait turn\nrestart\nprompt 'Go on.'\nawait turn\n\n-- llm.yaml --\nturns:\n  - - - text: Hello.\n  - - - text: On.\n")
		w := r.Waits
		Expect(w.Start).To(BeNumerically(">", 0), text(r))
		Expect(w.Exit).To(BeNumerically(">", 0))
		Expect(w.Linger).To(BeNumerically(">=", linger))
		Expect(w.Deadline).To(BeZero())
		Expect(w.Start + w.Exit + w.Linger).To(BeNumerically("<", r.Duration))
	})

	It("is what a line took whose time ran out", func() {
		r := run(engine(), "prompt 'Say hello.'\nawait permission within=50ms\n\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n    - gate: open\n")
		Expect(r.Waits.Deadline).To(BeNumerically(">=", 50*time.Millisecond), text(r))
		Expect(r.Waits.Deadline).To(BeNumerically("<", r.Duration))
	})
})
