package transcript_test

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/transcript"
)

func a(name string) transcript.Expectation {
	return transcript.First("a "+name, func(e transcript.Entry) bool { return e.Method == name })
}

var errTimer = errors.New("the step's 1s are over")

// at once: a context that has ended, so that Await must decide by the past.
func over() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errTimer)
	return ctx
}

// await waits in a goroutine and returns once the wait has begun.
func await(t *transcript.Transcript, ctx context.Context, after int,
	x transcript.Expectation) <-chan transcript.Outcome {
	began := make(chan struct{})
	var once sync.Once
	start := x.Start
	x.Start = func() transcript.Fold {
		fold := start()
		return func(e transcript.Entry) (transcript.Verdict, string) {
			once.Do(func() { close(began) })
			return fold(e)
		}
	}
	if t.Len() <= after {
		note(t, "a past entry, so that the fold is seen to begin")
	}
	out := make(chan transcript.Outcome, 1)
	go func() { out <- t.Await(ctx, after, x) }()
	<-began
	return out
}

var _ = Describe("Await", func() {
	var t *transcript.Transcript
	ctx := context.Background()
	BeforeEach(func() { t = empty() })

	It("is met by the past, but not by what lies before", func() {
		note(t, "x")
		o := t.Await(over(), 0, a("x"))
		Expect([]any{o.Met(), o.Entry.Seq, o.Cause}).To(Equal([]any{true, 1, nil}))
		o = t.Await(over(), 1, a("x"))
		Expect([]any{o.Verdict, o.Cause, o.Reason}).To(Equal([]any{transcript.Unmet, errTimer, "nothing has happened"}))
	})

	It("is met by what comes, whoever appends it", func() {
		out := await(t, ctx, 0, a("x"))
		note(t, "y")
		note(t, "x")
		o := <-out
		Expect([]any{o.Verdict, o.Entry.Seq}).To(Equal([]any{transcript.Met, 3}))
	})

	It("sees the parsed entry, and returns one that can be kept", func() {
		x := transcript.First("chunk 1", func(e transcript.Entry) bool {
			return e.JSON().Path("params.update.content.text").Is("chunk 1 of the answer ")
		})
		out := await(t, ctx, 0, x)
		agent(t, update(0))
		agent(t, update(1))
		agent(t, update(2))
		o := <-out
		Expect(o.Entry.JSON().Path("params.update.content.text").Str()).To(Equal("chunk 1 of the answer "))
	})

	It("ends with the cause of its context and the last reason", func() {
		timer, cancel := context.WithCancelCause(ctx)
		out := await(t, timer, 0, a("x"))
		note(t, "y")
		cancel(errTimer)
		o := <-out
		Expect([]any{o.Verdict, o.Cause, o.Reason, o.Entry}).
			To(Equal([]any{transcript.Unmet, errTimer, "no such entry", transcript.Entry{}}))
	})

	It("measures how long it waited", func() {
		t = with(transcript.Options{Now: ticks(time.Second)})
		Expect(t.Await(over(), 0, a("x")).Waited).To(Equal(time.Second))
	})

	It("ends when the last agent exits, with how it exited", func() {
		started(t, 0)
		out := await(t, ctx, 0, a("x"))
		exited(t, 0, 3)
		o := <-out
		Expect([]any{o.Verdict, o.Reason, o.Entry.Kind, o.Cause}).To(Equal([]any{
			transcript.Unmeetable, "the agent exited with status 3; no such entry", transcript.Exited, nil}))
		o = t.Await(ctx, 0, a("x"))
		Expect([]any{o.Verdict, o.Entry.Seq}).To(Equal([]any{transcript.Unmeetable, 2}))
		o = t.Await(ctx, t.Len(), a("x"))
		Expect(o.Reason).To(Equal("the agent exited with status 3; nothing has happened"))
	})

	It("names the signal that ended the agent", func() {
		started(t, 0)
		t.Event(0, transcript.Process, transcript.Exited, "", map[string]any{"signal": "SIGKILL"})
		Expect(t.Await(ctx, 0, a("x")).Reason).To(Equal("the agent was ended by SIGKILL; no such entry"))
	})

	It("does not end while another agent runs", func() {
		started(t, 0)
		started(t, 1)
		out := await(t, ctx, 0, a("x"))
		exited(t, 0, 0)
		note(t, "x")
		Expect((<-out).Verdict).To(Equal(transcript.Met))
	})

	It("judges a restarted agent by the new process", func() {
		started(t, 0)
		exited(t, 0, 0)
		started(t, 1)
		note(t, "x")
		Expect(t.Await(ctx, 0, a("x")).Verdict).To(Equal(transcript.Met))
	})

	It("is met by the exit itself", func() {
		started(t, 0)
		out := await(t, ctx, 0, transcript.First("the exit",
			func(e transcript.Entry) bool { return e.Kind == transcript.Exited }))
		exited(t, 0, 0)
		Expect((<-out).Verdict).To(Equal(transcript.Met))
	})

	It("waits on for what outlives the agent", func() {
		started(t, 0)
		x := a("x")
		x.Outlives = true
		out := await(t, ctx, 0, transcript.AllOf(x))
		exited(t, 0, 0)
		note(t, "x")
		Expect((<-out).Verdict).To(Equal(transcript.Met))
	})

	It("ends at once for what is met or unmeetable without any entry", func() {
		Expect(t.Await(ctx, 0, transcript.Not(a("x"))).Verdict).To(Equal(transcript.Met))
		Expect(t.Await(ctx, 0, transcript.AnyOf()).Verdict).To(Equal(transcript.Unmeetable))
		Expect(t.Await(over(), 0, transcript.Expectation{Description: "nothing"}).Verdict).To(Equal(transcript.Unmet))
	})

	It("serves many waiters and many writers", func() {
		var outs []<-chan transcript.Outcome
		for range 8 {
			outs = append(outs, await(t, ctx, 0, transcript.AllOf(a("x"), a("y"))))
		}
		var writers sync.WaitGroup
		for _, name := range []string{"x", "y"} {
			for range 4 {
				writers.Go(func() {
					for range 100 {
						agent(t, update(1))
						t.Event(0, transcript.Note, transcript.Noted, "", map[string]int{"a": 1})
					}
					note(t, name)
				})
			}
		}
		writers.Wait()
		for _, out := range outs {
			Expect((<-out).Verdict).To(Equal(transcript.Met))
		}
		for i, e := range all(t) {
			Expect(e.Seq == i+1).To(BeTrue())
		}
	})
})

var _ = Describe("Judge", func() {
	It("answers over a stretch, without the agent's exit", func() {
		t := empty()
		for _, name := range []string{"x", "y", "x"} {
			note(t, name)
		}
		exited(t, 0, 0)
		judge := func(after, to int, x transcript.Expectation) []any {
			o := t.Judge(after, to, x)
			return []any{o.Verdict, o.Entry.Seq}
		}
		Expect(judge(0, -1, a("x"))).To(Equal([]any{transcript.Met, 1}))
		Expect(judge(1, -1, a("x"))).To(Equal([]any{transcript.Met, 3}))
		Expect(judge(1, 2, a("x"))).To(Equal([]any{transcript.Unmet, 0}))
		Expect(judge(0, -1, a("z"))).To(Equal([]any{transcript.Unmet, 0}))
		Expect(judge(0, -1, transcript.Not(a("y")))).To(Equal([]any{transcript.Unmeetable, 2}))
		Expect(judge(0, 1, transcript.Not(a("y")))).To(Equal([]any{transcript.Met, 0}))
		Expect(judge(0, -1, transcript.AllOf(a("x"), transcript.Not(a("y"))))).
			To(Equal([]any{transcript.Unmeetable, 2}))
	})
})
