package scenarios_test

import (
	"context"
	"net/url"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// remote is an engine whose agent has no process: it is reached at a URL.
func remote() *scenarios.Engine {
	e := engine()
	p := *e.Profile
	p.Command, p.URL = nil, "test://agent/?llm=$LLM"
	e.Profile = &p
	state := GinkgoT().TempDir()
	e.Connect = func(_ context.Context, t *transcript.Transcript, conn int, l agents.Launch) (*mockclient.Agent,
		error) {
		u, err := url.Parse(l.URL)
		if err != nil {
			return nil, err
		}
		inR, inW, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		outR, outW, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		go func() {
			defer outW.Close()
			_ = refagent.Run(context.Background(),
				refagent.Options{In: inR, Out: outW, StateDir: state, Getenv: func(name string) string {
					return map[string]string{"OPENAI_BASE_URL": u.Query().Get("llm") + "/v1",
						"OPENAI_API_KEY": "k"}[name]
				}})
		}()
		return transport.New(t, conn, transport.Pipes(inW, outR, 0), transport.Options{}), nil
	}
	return e
}

var _ = Describe("an agent without a process", func() {
	It("is talked to, judged and left", func() {
		e := remote()
		r := run(e, "check a\nprompt 'Say hello.'\nawait agent_message text~^Hello\nawait turn end_turn\nstall 1ms\n"+
			hello)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		log := transcriptOf(e, r)
		Expect(log.At(log.Len()).Kind).
			To(Or(Equal(transcript.Exited), Equal(transcript.Noted), Equal(transcript.CheckOpened)))
	})

	It("is not signalled, killed or started again: such a scenario does not apply", func() {
		for _, command := range []string{"kill", "signal TERM", "restart", "close-stdin", "descendants none",
			"! stderr ~ x"} {
			r := run(remote(), "prompt 'Say hello.'\nawait turn\ncheck a\n"+command+"\n"+hello)
			Expect(r.Verdict).To(Equal(results.Skip), "%s: %s", command, text(r))
			Expect(r.Reason).To(ContainSubstring("does not apply: the agent has no process here, it is reached at " +
				"test://agent/"))
		}
	})

	It("cannot be run where nothing reaches it", func() {
		e := remote()
		e.Connect = nil
		protocol := *e.Protocol
		protocol.Reach = nil
		e.Protocol = &protocol
		r := run(e, "check a\nprompt 'Say hello.'\nawait turn\n"+hello)
		Expect(text(r)).To(ContainSubstring("this protocol has no network transport"))
	})
})
