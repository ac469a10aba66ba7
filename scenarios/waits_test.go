package scenarios_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("what a scenario waited", func() {
	It("is part of its duration, each for what it was", func() {
		e := engine()
		linger := 30 * time.Millisecond
		e.Linger = &linger
		r := run(e, "prompt 'Say hello.'\nawait turn\nrestart\nprompt 'Go on.'\nawait turn\n\n-- llm.yaml --\n"+
			"turns:\n  - - - text: Hello.\n  - - - text: On.\n")
		w := r.Waits
		Expect(w.Start).To(BeNumerically(">", 0), text(r))
		Expect(w.Exit).To(BeNumerically(">", 0))
		Expect(w.Linger).To(BeNumerically(">=", linger))
		Expect(w.Deadline).To(BeZero())
		Expect(w.Start + w.Exit + w.Linger).To(BeNumerically("<", r.Duration))
	})

	It("is no more than an agent rests, where it alone can bring about what is awaited", func() {
		DeferCleanup(scenarios.Resting(200 * time.Millisecond))
		e := engine()
		e.ExtraArgs = []string{"--fault", "mcp-ignored"}
		r := run(e, "mcp canary stdio\nprompt 'Say hello.'\nawait turn\ncheck SESSION-011\ncanary initialized\n"+
			"\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n")
		Expect(r.Checks[0].Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Vain).To(Equal([]results.Vain{{For: "an MCP server"}}))
		Expect(r.Waits.Deadline).To(BeNumerically(">=", 200*time.Millisecond))
	})

	It("is what a line took whose time ran out", func() {
		r := run(engine(), "prompt 'Say hello.'\nawait permission within=50ms\n\n-- llm.yaml --\nreplies:\n"+
			"  - - text: Hello.\n    - gate: open\n")
		Expect(r.Waits.Deadline).To(BeNumerically(">=", 50*time.Millisecond), text(r))
		Expect(r.Waits.Deadline).To(BeNumerically("<", r.Duration))
	})
})
