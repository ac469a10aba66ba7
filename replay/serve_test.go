package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	acpgo "github.com/coder/acp-go-sdk"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// goClient is a client on the Go library whose user interface is busy until free
// is closed.
type goClient struct {
	acpgo.Client
	free chan struct{}
}

func (c goClient) SessionUpdate(context.Context, acpgo.SessionNotification) error {
	<-c.free
	return nil
}

// dial plays a script or a recording in this process, to be talked to on the
// two pipes.
func dial(s *serve.Server) (in io.WriteCloser, out io.ReadCloser, done chan int) {
	inR, inW, err := os.Pipe()
	Expect(err).NotTo(HaveOccurred())
	outR, outW, err := os.Pipe()
	Expect(err).NotTo(HaveOccurred())
	s.In, s.Out, s.Err = inR, outW, io.Discard
	done = make(chan int, 1)
	go func() {
		code := s.Serve(context.Background())
		outW.Close()
		inR.Close()
		done <- code
	}()
	return inW, outR, done
}

func played(text string) *language.AgentScript {
	s, err := acp.V1().Parse("x/y", "y.txtar", []byte("# Test.\nrole agent\n"+text))
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return s.Agent
}

// server plays a script, or without one a recording.
func server(script *language.AgentScript) *serve.Server {
	if script == nil {
		return &serve.Server{Protocol: recordings.V1(), Agent: replay.Recorded(recordings.V1(), recorded())}
	}
	return &serve.Server{Protocol: recordings.V1(), Script: &script.Script}
}

// drive lets our own editor prompt an agent once, and cancel if asked to. It
// leaves when the turn has ended and what is said to come after that has come.
func drive(script *language.AgentScript, cancel bool, after ...transcript.Expectation) results.Result {
	s := server(script)
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	s.Log = log
	view, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	agent := mockclient.InProcess(view, 0, func(ctx context.Context, in io.Reader, out io.Writer) error {
		s.In, s.Out, s.Err = in, out, io.Discard
		if code := s.Serve(ctx); code != 0 {
			return fmt.Errorf("exit status %d", code)
		}
		return nil
	})
	e := mockclient.NewEditor(agent, mockclient.Options{Policy: mockclient.Allow()})
	defer e.Close(ctx)
	if _, err := e.Initialize(ctx); err == nil {
		if session, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: GinkgoT().TempDir()}); err == nil {
			turn := session.Prompt(ctx, mockclient.Text("Say hello."))
			if cancel {
				view.Await(ctx, turn.Entry.Seq, mockclient.Updated("agent_message_chunk"))
				_, _ = session.Cancel()
			}
			_, _ = turn.Wait(ctx)
			for _, x := range after {
				view.Await(ctx, turn.Entry.Seq, x)
			}
		}
	}
	e.Close(ctx)
	return judge.Editor(results.Result{ID: "x"}, script, []replay.Session{{Log: log}})
}

var _ = Describe("serve", func() {
	It("judges by checks what the editor did", func() {
		res := drive(played(`
on prompt {
	tool a 'Edit' kind=edit status=pending
	permission a allow_once:yes reject_once:no as P
	await P
	text 'It was $P.outcome.optionId'
	end end_turn
}
check allowed
answered P kind=allow_once option=yes
check PERM-010 denied
answered P kind=reject_once
check never-asked
sent session/prompt count=1 sessionId=session-1
! sent session/cancel
`), false)
		Expect(res.Verdict).To(Equal(results.Fail))
		Expect(res.Checks).To(HaveLen(3))
		Expect(res.Checks[0].Verdict).To(Equal(results.Pass))
		Expect(res.Checks[1].Verdict).To(Equal(results.Fail))
		Expect(res.Checks[2].Verdict).To(Equal(results.Pass))
		Expect(res.Findings).To(BeEmpty())
	})

	It("judges what the editor did beside its connections only where it was started from here", func() {
		script := played(`
on prompt {
	text 'Hello.'
	end end_turn
}
check shown
shown 'Hello' where='H'
check ended
ended
check stayed
! left-open
`)
		verdicts := func(seen *replay.Seen) (list []results.Verdict) {
			log, err := transcript.New(transcript.Header{}, transcript.Options{})
			Expect(err).NotTo(HaveOccurred())
			for _, c := range judge.Editor(results.Result{ID: "x"}, script, []replay.Session{{Log: log, Seen: seen}}).
				Checks {
				list = append(list, c.Verdict)
			}
			return list
		}
		Expect(verdicts(nil)).To(Equal([]results.Verdict{results.Skip, results.Skip, results.Pass}))
		Expect(verdicts(&replay.Seen{Printed: "other"})).
			To(Equal([]results.Verdict{results.Skip, results.Pass, results.Pass}))
		Expect(verdicts(&replay.Seen{Printed: "H", Late: true})).
			To(Equal([]results.Verdict{results.Lint, results.Lint, results.Pass}))
		Expect(verdicts(&replay.Seen{Printed: "Hello"})).
			To(Equal([]results.Verdict{results.Pass, results.Pass, results.Pass}))
	})

	It("misses nothing on the screen of an editor that left before all was said", func() {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		log.AppendFrame(0, transcript.Editor,
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`), 0)
		log.Event(0, transcript.Process, transcript.StdinClosed, "", struct{}{})
		script := played("on prompt {\n\tend end_turn\n}\ncheck all\nshown 'piece 20' where='piece 1'\n")
		res := judge.Editor(results.Result{ID: "x"}, script,
			[]replay.Session{{Log: log, Seen: &replay.Seen{Printed: "piece 1"}}})
		Expect(res.Checks[0].Verdict).To(Equal(results.Skip))
	})

	It("waits for a cancel, and skips checks about what the editor never came to", func() {
		s := played(`
on prompt {
	text 'A long answer'
	await cancel
	permission a reject_once:no as LATE
	await LATE
	end cancelled
}
on close {
	request _x '{}' as NEVER
}
check late
answered LATE outcome=cancelled
check never
answered NEVER
`)
		res := drive(s, true)
		Expect(res.Verdict).To(Equal(results.Pass), "%v %v", res.Checks, res.Findings)
		Expect(res.Checks[1].Verdict).To(Equal(results.Skip))
	})

	DescribeTable("asks of an editor that left only what it can have seen",
		func(then string, stays time.Duration, want results.Verdict) {
			log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
			Expect(err).NotTo(HaveOccurred())
			script := played("on prompt {\nend end_turn\npermission a allow_once:yes as P\n" + then +
				"\n}\ncheck PERM-015 x\nanswered P\n")
			s := server(script)
			s.Log = log
			in, out, done := dial(s)
			go func() {
				defer in.Close()
				lines := bufio.NewScanner(out)
				for _, line := range []string{
					`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,` +
						`"clientCapabilities":{}}}`,
					`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`,
					`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[]}}`,
				} {
					fmt.Fprintln(in, line)
					lines.Scan()
				}
				for lines.Scan() && !strings.Contains(lines.Text(), "request_permission") {
				}
				if then != "await P" {
					lines.Scan() // what the agent says after it has asked
				}
				<-time.After(stays)
			}()
			Expect(<-done).To(Equal(0))
			out.Close()
			res := judge.Editor(results.Result{ID: "x"}, script, []replay.Session{{Log: log}})
			Expect(res.Checks[0].Verdict).To(Equal(want), "%+v", res.Checks[0])
		},
		Entry("a request that it left beside", "await P", time.Duration(0), results.Skip),
		Entry("a request that it may not have seen, nor what came behind", "text late", time.Duration(0), results.Skip),
		Entry("a request that it let pass", "text late", 1100*time.Millisecond, results.Fail),
	)

	DescribeTable("asks of an editor that left in its turn", func(method string, want results.Verdict) {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		log.AppendFrame(0, transcript.Editor,
			[]byte(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[]}}`),
			0)
		log.Event(0, transcript.Process, transcript.StdinClosed, "", struct{}{})
		asked := log.AppendFrame(0, transcript.Agent,
			[]byte(`{"jsonrpc":"2.0","id":4,"method":"`+method+`","params":{}}`), 0)
		log.Event(0, transcript.Note, serve.Named, "", map[string]any{"name": "P", "seq": asked.Seq})
		script := played("on prompt {\nrequest x '{}' as P\n}\ncheck PERM-015 x\nanswered P\n")
		res := judge.Editor(results.Result{ID: "x"}, script, []replay.Session{{Log: log}})
		Expect(res.Checks[0].Verdict).To(Equal(want), "%+v", res.Checks[0])
	},
		Entry("no more than it could answer", "session/request_permission", results.Skip),
		Entry("whether the connection is there", "_acp-test/still_there", results.Fail),
	)

	It("finds an editor that breaks the rules", func() {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		script := played("on prompt {\nend end_turn\n}\ncheck x\nsent session/prompt\n")
		s := server(script)
		s.Log = log
		in, out, done := dial(s)
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`,
			`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"nobody","prompt":[]}}`,
		} {
			fmt.Fprintln(in, line)
			_, err = out.Read(make([]byte, 1000))
			Expect(err).NotTo(HaveOccurred())
		}
		in.Close()
		Expect(<-done).To(Equal(0))
		out.Close()
		res := judge.Editor(results.Result{ID: "x"}, script, []replay.Session{{Log: log}})
		Expect(res.Verdict).To(Equal(results.Fail))
	})

	It("plays every shipped scenario to a correct editor", func() {
		list, err := acp.V1().ForEditors()
		Expect(err).NotTo(HaveOccurred())
		for _, s := range list {
			base := filepath.Base(s.ID)
			if strings.HasPrefix(base, "m15") || strings.HasPrefix(base, "m16") {
				continue // they need a workspace: careless_test.go plays them
			}
			if strings.HasPrefix(base, "m20") || strings.HasPrefix(base, "m12-") || strings.HasPrefix(base, "m11") ||
				base == "m10-crash-mid-turn" || base == "m09-cancel-unanswered" {
				continue // slow, or about processes: the command's tests run them
			}
			cancel := strings.HasPrefix(base, "m09") || strings.HasPrefix(base, "m08")
			if base == "m08-permission-and-cancel" {
				cancel = false // nothing shows that it begins but the permission, which our editor answers
				continue
			}
			var after []transcript.Expectation
			if base == "m05-after-the-turn" {
				after = append(after, mockclient.ToolCallUpdated("completed"))
			}
			res := drive(s.Agent, cancel, after...)
			for _, k := range res.Checks {
				Expect(k.Verdict).To(BeElementOf(results.Pass, results.Skip), "%s: %v", k.ID, k.Failure)
			}
		}
	})

	It("plays a recording to an editor, with the paths of now", func() {
		res := drive(nil, false)
		Expect(res.Verdict).To(Equal(results.Pass), "%v", res.Findings)
	})
})

var _ = Describe("a client on the Go library", func() {
	It("loses the connection in a long burst", func() {
		list, err := acp.V1().ForEditors()
		Expect(err).NotTo(HaveOccurred())
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		var script *language.AgentScript
		for _, x := range list {
			if x.ID == "editors/m01-burst-long" {
				script = x.Agent
			}
		}
		s := server(script)
		s.Log = log
		in, out, done := dial(s)
		busy := goClient{free: make(chan struct{})}
		c := acpgo.NewClientSideConnection(busy, in, out)
		ctx := context.Background()
		_, err = c.Initialize(ctx, acpgo.InitializeRequest{ProtocolVersion: acpgo.ProtocolVersionNumber})
		Expect(err).NotTo(HaveOccurred())
		session, err := c.NewSession(ctx,
			acpgo.NewSessionRequest{Cwd: GinkgoT().TempDir(), McpServers: []acpgo.McpServer{}})
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Prompt(ctx, acpgo.PromptRequest{SessionId: session.SessionId,
			Prompt: []acpgo.ContentBlock{acpgo.TextBlock("Say hello.")}})
		Expect(err).To(HaveOccurred())
		close(busy.free)
		out.Close() // as the library left it
		in.Close()
		<-done
		res := judge.Editor(results.Result{ID: "editors/m01-burst-long"}, script, []replay.Session{{Log: log}})
		Expect(res.Verdict).To(Equal(results.Fail))
		Expect(res.Checks[0].Verdict).To(Equal(results.Fail))
		Expect(res.Checks[0].Slug).To(Equal("connection-survives"))
	})
})

// editors are the clients from npm that tests talk to.
func editors() string {
	dir, err := filepath.Abs("../ci/editors")
	Expect(err).NotTo(HaveOccurred())
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".installed-from")); err != nil {
		Fail("the clients from npm are not installed; run: ci/install-npm ci/editors")
	}
	return dir
}

var _ = Describe("clients from npm", Label("large"), func() {
	// The agent is a recording, played by the command.
	play := func(run func(dir string, agent []string) *exec.Cmd) string {
		dir := GinkgoT().TempDir()
		bin := filepath.Join(dir, "acp-test")
		build := exec.Command("go", "build", "-o", bin, "../cmd/acp-test")
		text, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
		file := filepath.Join(dir, "session.jsonl")
		f, err := os.Create(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(recorded().Save(f)).To(Succeed())
		Expect(f.Close()).To(Succeed())
		work, home := place()
		cmd := run(editors(), []string{bin, "serve", file, "--out", filepath.Join(dir, "out")})
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "HOME="+home, "PROMPT="+prompts[0])
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}
	node := func(dir string) string { return filepath.Join(dir, "node_modules", "node", "bin", "node") }

	It("the official TypeScript library finishes normally", func() {
		out := play(func(dir string, agent []string) *exec.Cmd {
			return exec.Command(node(dir), append([]string{filepath.Join(dir, "sdk-client.mjs")}, agent...)...)
		})
		Expect(out).To(ContainSubstring(`{"stopReason":"end_turn","text":"I'll rename it.Renamed."}`))
	})

	It("the official TypeScript library is a client of version 2", func() {
		dir := GinkgoT().TempDir()
		bin := filepath.Join(dir, "acp-test")
		text, err := exec.Command("go", "build", "-o", bin, "../cmd/acp-test").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
		cmd := exec.Command(bin, "editors", "--protocol", "acp-v2", "--run", "n0[1-9]|n1[0-9]|n2|m13", "--out",
			filepath.Join(dir, "out"), "--", node(editors()), filepath.Join(editors(), "sdk-client-2.mjs"), "{agent}")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(ContainSubstring("24 scenarios: 24 pass"))
	})

	It("acpx finishes normally", func() {
		out := play(func(dir string, agent []string) *exec.Cmd {
			return exec.Command(node(dir), filepath.Join(dir, "node_modules", "acpx", "dist", "cli.js"),
				"--approve-all", "--agent", strings.Join(agent, " "), "exec", prompts[0])
		})
		Expect(bytes.Contains([]byte(out), []byte("Renamed."))).To(BeTrue(), out)
		Expect(out).To(ContainSubstring("end_turn"))
	})
})
