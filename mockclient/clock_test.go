package mockclient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// TestNoHiddenClock runs a whole turn in a synctest bubble: a permission that
// takes an hour, and a reader that stalls for ten seconds, take no time.
func TestNoHiddenClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			t.Fatal(err)
		}
		a := mockclient.InProcess(log, 0, serve(func(p *peer) {
			p.handshake()
			m := p.until("session/prompt", "")
			for range 2000 { // more than the pipe holds
				p.update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"some text"}}`)
			}
			p.ask(1, "session/request_permission", permissionParams)
			p.reply(m, `{"stopReason":"end_turn"}`)
		}))
		e := mockclient.NewEditor(a, mockclient.Options{Policy: mockclient.Always(mockclient.Answer{Kind: "allow_once",
			Delay: time.Hour})})
		ctx := context.Background()
		if _, err := e.Initialize(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a.Stall(10 * time.Second)
		turn := s.Prompt(ctx, mockclient.Text("go"))
		stop, err := turn.Wait(ctx)
		if err != nil || stop != "end_turn" {
			t.Fatalf("got %q, %v", stop, err)
		}
		if took := time.Since(began); took < time.Hour || took > 2*time.Hour {
			t.Errorf("the turn took %v of the bubble's time", took)
		}
		updates := 0
		for e := range log.All() {
			if acpframe.Update(e) != "" {
				updates++
			}
		}
		if updates != 2000 {
			t.Errorf("got %d updates, want 2000", updates)
		}
		e.Close(ctx)
	})
}

// TestPace lets an editor read each line a minute late and answer each request
// an hour late: what the agent sees is the same, but for the time.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 2)
		a := mockclient.InProcess(log, 0, serve(func(p *peer) {
			p.handshake()
			m := p.until("session/prompt", "")
			for range 10 {
				p.update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"some text"}}`)
			}
			got <- outcome(p.ask(1, "session/request_permission", permissionParams))
			got <- p.ask(2, "no/such/method", "{}").v.Path("error.code").Text()
			p.reply(m, `{"stopReason":"end_turn"}`)
		}))
		e := mockclient.NewEditor(a, mockclient.Options{Policy: mockclient.Allow()})
		ctx := context.Background()
		if _, err := e.Initialize(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		a.SetPace(mockclient.Pace{Read: func() time.Duration { return time.Minute },
			Answer: func() time.Duration { return time.Hour }})
		began := time.Now()
		stop, err := s.Prompt(ctx, mockclient.Text("go")).Wait(ctx)
		if err != nil || stop != "end_turn" {
			t.Fatalf("got %q, %v", stop, err)
		}
		if took := time.Since(began); took < 2*time.Hour+9*time.Minute || took > 3*time.Hour {
			t.Errorf("the turn took %v of the bubble's time", took)
		}
		if one, two := <-got, <-got; one != "selected yes" || two != "-32601" {
			t.Errorf("the agent got %q and %q", one, two)
		}
		e.Close(ctx)
	})
}
