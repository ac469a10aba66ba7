package replay_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// edit plays one shipped scenario to our own editor in a workspace of its own
// and returns the checks that failed. careless replaces its answers to methods.
func edit(name string, careless map[string]func(*mockclient.Request)) []string {
	GinkgoHelper()
	list, err := acp.V1().ForEditors()
	Expect(err).NotTo(HaveOccurred())
	work := GinkgoT().TempDir()
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	var script *scenarios.AgentScript
	for _, x := range list {
		if x.ID != "editors/"+name {
			continue
		}
		script = x.Agent
		for name, data := range x.Files() {
			Expect(os.WriteFile(filepath.Join(work, name), data, 0o600)).To(Succeed())
		}
	}
	Expect(script).NotTo(BeNil(), "no scenario %s", name)
	s := server(script)
	s.Log = log
	view, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	e := mockclient.NewEditor(mockclient.InProcess(view, 0, func(ctx context.Context, in io.Reader, out io.Writer) error {
		s.In, s.Out, s.Err = in, out, io.Discard
		if code := s.Serve(ctx); code != 0 {
			return fmt.Errorf("exit status %d", code)
		}
		return nil
	}), mockclient.Options{Terminals: &mockclient.Terminals{Real: true, Allow: []string{"*"}, Env: os.Environ()}, Handlers: careless})
	defer e.Close(ctx)
	_, err = e.Initialize(ctx)
	Expect(err).NotTo(HaveOccurred())
	session, err := e.NewSession(ctx, mockclient.SessionOptions{Cwd: work})
	Expect(err).NotTo(HaveOccurred())
	_, err = session.Prompt(ctx, mockclient.Text("Say hello.")).Wait(ctx)
	Expect(err).NotTo(HaveOccurred())
	e.Close(ctx)
	red := []string{}
	for _, c := range judge.Editor(scenarios.Result{ID: "x"}, script, []replay.Session{{Log: log}}).Checks {
		if c.Verdict != scenarios.Pass && c.Verdict != scenarios.Skip {
			red = append(red, c.Slug)
		}
	}
	return red
}

// always answers each request with the same.
func always(result any) func(*mockclient.Request) {
	return func(r *mockclient.Request) { r.Reply(result) }
}

var _ = Describe("files and terminals of an editor", func() {
	const read, write = "fs/read_text_file", "fs/write_text_file"
	DescribeTable("are asked for by scenarios that tell a careless editor from ours",
		func(name string, careless map[string]func(*mockclient.Request), want ...string) {
			var own sync.WaitGroup
			own.Go(func() {
				defer GinkgoRecover()
				Expect(edit(name, nil)).To(BeEmpty(), "our own editor")
			})
			Expect(edit(name, careless)).To(ConsistOf(want))
			own.Wait()
		},
		Entry("always the whole file", "m15-files", map[string]func(*mockclient.Request){
			read: always(map[string]any{"content": "one\ntwo\nthree\n"}),
		}, "second-line", "limit-alone", "from-the-third", "missing-is-an-error"),
		Entry("lines without their carriage returns", "m15-line-ends", map[string]func(*mockclient.Request){
			read: always(map[string]any{"content": "one\ntwo\nthree\n"}),
		}, "line-ends-stay", "second-line", "last-line", "beyond-the-end", "no-lines"),
		Entry("any path", "m15-outside", map[string]func(*mockclient.Request){
			read: always(map[string]any{"content": "root:x:0:0"}), write: always(map[string]any{}),
		}, "writes-stay-inside", "reads-stay-inside", "relative-write", "relative-read"),
		Entry("no missing folder", "m15-outside", map[string]func(*mockclient.Request){
			write: func(r *mockclient.Request) { r.Fail(-32603, "there is no such folder") },
		}, "creates-the-file"),
		Entry("output cut at its end and inside of a character", "m16-output-limit", map[string]func(*mockclient.Request){
			"terminal/output": always(map[string]any{"output": "begin-\uFFFD", "truncated": false}),
		}, "whole-characters", "keeps-the-end", "says-that-it-cut"),
		Entry("all of the output", "m16-large-output", map[string]func(*mockclient.Request){
			"terminal/output": func(r *mockclient.Request) {
				text := make([]byte, 2000)
				for i := range text {
					text[i] = 'x'
				}
				r.Reply(map[string]any{"output": string(text), "truncated": false})
			},
		}, "keeps-the-end", "says-that-it-cut"),
		Entry("a status before the exit", "m16-kill", map[string]func(*mockclient.Request){
			"terminal/output": always(map[string]any{"output": "", "truncated": false, "exitStatus": map[string]any{"exitCode": 0}}),
		}, "runs"),
		Entry("output of what was released", "m16-terminals", map[string]func(*mockclient.Request){
			"terminal/output": always(map[string]any{"output": "still here", "truncated": false}),
		}, "use-after-release"),
	)
})
