package replay_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// story is what the model says in the recorded session: an edit, a reply that
// is broken off, and one after the session was loaded.
const story = `
turns:
  - - - text: I'll rename it.
      - tool: write_file
        args: {path: $WORK/main.go, content: "package main // bar\n"}
    - - text: Renamed.
  - - - text: Once upon a time
      - fail: {hang: true, after_chunks: 1}
  - - - text: Done.
`

var prompts = []string{"Rename foo to bar in main.go.", "Tell me a long story.", "Go on please."}

func model(log *transcript.Transcript, work string) *fakellm.Server {
	script, err := fakellm.ParseScript("story", []byte(story),
		func(s string) (string, error) { return strings.ReplaceAll(s, "$WORK", work), nil })
	Expect(err).NotTo(HaveOccurred())
	c := fakellm.Config{Script: script, Transcript: log}
	for i, p := range prompts {
		c.Prompts = append(c.Prompts, fakellm.Prompt{Index: i + 1, Text: p})
	}
	server, err := fakellm.Start(c)
	Expect(err).NotTo(HaveOccurred())
	return server
}

// place is a directory as an agent would report it, with a workspace and a home.
func place() (work, home string) {
	root, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	work, home = filepath.Join(root, "work"), filepath.Join(root, "home")
	for _, d := range []string{work, home} {
		Expect(os.Mkdir(d, 0o755)).To(Succeed())
	}
	return work, home
}

func environment(home, llm string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "OPENAI_BASE_URL=" + llm + "/v1",
		"OPENAI_API_KEY=sk-test"}
}

// recorded is a session with the reference agent through the proxy: a tool
// call, a permission, a cancel, a load. A fault makes the agent another one.
func recorded(fault ...string) *transcript.Transcript {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	work, home := place()
	Expect(os.WriteFile(filepath.Join(work, "main.go"), []byte("package main // foo\n"), 0o644)).To(Succeed())
	file := filepath.Join(GinkgoT().TempDir(), "r.jsonl")
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	llm := model(log, work)
	defer llm.Close()
	agent, err := mockclient.Start(ctx, log, 0,
		mockclient.Command{Path: self(), Args: append([]string{"proxy", file, self(), "refagent"}, fault...),
			Env: environment(home, llm.URL()), Dir: work, Grace: 30 * time.Second})
	Expect(err).NotTo(HaveOccurred())
	e := mockclient.NewEditor(agent, mockclient.Options{Policy: mockclient.Allow()})
	defer e.Close(ctx)
	_, err = e.Initialize(ctx)
	Expect(err).NotTo(HaveOccurred())
	s, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: work})
	Expect(err).NotTo(HaveOccurred())
	Expect(s.Prompt(ctx, mockclient.Text(prompts[0])).Wait(ctx)).To(Equal("end_turn"))
	turn := s.Prompt(ctx, mockclient.Text(prompts[1]))
	Expect(log.Await(ctx, turn.Entry.Seq, mockclient.MessageSaid("Once upon a time")).Met()).To(BeTrue())
	_, err = s.Cancel()
	Expect(err).NotTo(HaveOccurred())
	Expect(turn.Wait(ctx)).To(Equal("cancelled"))
	before := log.Len()
	s, err = e.LoadSession(ctx, s.ID, mockclient.SessionOptions{Cwd: work})
	Expect(err).NotTo(HaveOccurred())
	Expect(log.Await(ctx, before, mockclient.MessageSaid("Once upon a time")).Met()).
		To(BeTrue()) // the end of the history
	Expect(s.Prompt(ctx, mockclient.Text(prompts[2])).Wait(ctx)).To(Equal("end_turn"))
	Expect(e.Close(ctx).Exit.Code).To(Equal(0))

	f, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	t, err := replay.Read(recordings.V1(), f, nil)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// again replays a recording in another place, to an agent with a fault or none.
func again(recording *transcript.Transcript, mode replay.Mode, fault string) results.Result {
	return patient(30*time.Second, recording, mode, fault)
}

// patient is again with a patience of its own.
func patient(patience time.Duration, recording *transcript.Transcript, mode replay.Mode, fault string) results.Result {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	work, home := place()
	for name, data := range recordings.Files(recording) {
		Expect(os.WriteFile(filepath.Join(work, name), data, 0o644)).To(Succeed())
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	llm := model(log, work)
	defer llm.Close()
	r := replay.Replay{ID: "session", File: "session.jsonl", Log: log, Judge: judge}
	r.Recording, r.Mode, r.Work, r.Home, r.Patience = recording, mode, work, home, patience
	r.Prompting = func(session string, n int, text string) {
		llm.Begin(fakellm.Prompt{Session: session, Index: n, Text: text})
	}
	r.Start = func(ctx context.Context, conn int) (*mockclient.Agent, error) {
		args := []string{"refagent"}
		if fault != "" {
			args = append(args, fault)
		}
		return mockclient.Start(ctx, log, conn,
			mockclient.Command{Path: self(), Args: args, Env: environment(home, llm.URL()), Dir: work,
				Grace: 30 * time.Second})
	}
	r.Want = r.Against
	return r.Run(ctx)
}

// changed is the lines of a difference that differ.
func changed(diff string) []string {
	return regexp.MustCompile(`(?m)^[-+](?:<--|-->).*`).FindAllString(diff, -1)
}

var _ = Describe("replay", Ordered, func() {
	var recording *transcript.Transcript
	BeforeAll(func() { recording = recorded() })

	It("repeats a session in another place, 50 times of 50", func() {
		for range 50 {
			res := again(recording, replay.Ordered, "")
			Expect(res.Verdict).To(Equal(results.Pass), "%v %v %s", res.Notes, res.Findings, res.Golden.Diff)
			Expect(res.Notes).To(BeEmpty())
		}
	})

	It("knows what was in the workspace", func() {
		Expect(recordings.Files(recording)).To(HaveKeyWithValue("main.go", []byte("package main // foo\n")))
	})

	It("waits for what the agent says between turns", func() {
		late := recorded("load-replays-late")
		for range 5 {
			res := again(late, replay.Ordered, "load-replays-late")
			Expect(res.Golden.State).To(Equal("match"), res.Golden.Diff)
			Expect(res.Notes).To(BeEmpty())
		}
	})

	DescribeTable("has other modes", func(mode replay.Mode) {
		res := again(recording, mode, "")
		Expect(res.Verdict).To(Equal(results.Pass), "%v %v %s", res.Notes, res.Findings, res.Golden.Diff)
	}, Entry("strict", replay.Strict), Entry("lenient", replay.Lenient))

	DescribeTable("shows what another agent does otherwise, in a few lines", func(fault, line string, most int) {
		res := again(recording, replay.Ordered, fault)
		Expect(res.Verdict).To(Equal(results.Fail))
		Expect(res.Golden.Diff).To(ContainSubstring(line))
		Expect(len(changed(res.Golden.Diff))).To(BeNumerically("<=", most), res.Golden.Diff)
	},
		Entry("another stop reason", "cancel-end-turn-settled", "+<-- end_turn", 2),
		Entry("a status that goes back", "tool-status-back", "+<-- tool_call_update call#1 in_progress", 2),
		Entry("a permission not asked for", "permission-never-asked", "-<-- request_permission call#1", 2),
	)

	It("does not hang on an agent that never answers or dies", func() {
		var all sync.WaitGroup // each waits for what does not come
		for _, fault := range []string{"prompt-never-answered", "cancel-crashes", "initialize-never-answered"} {
			all.Go(func() {
				defer GinkgoRecover()
				Expect(patient(time.Second, recording, replay.Ordered, fault).Verdict).To(Equal(results.Fail), fault)
			})
		}
		all.Wait()
	})
})
