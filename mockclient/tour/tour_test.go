// Package tour_test is a suite as the author of an agent would write it: one
// agent, the editor, and what a user may expect of the two.
package tour_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

func TestTour(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "a tour of mockclient")
}

// renamer is the agent under test: it replaces foo by bar in main.go, after
// asking.
func renamer(_ context.Context, in io.Reader, out io.Writer) error {
	type frame struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			SessionID string `json:"sessionId"`
			Cwd       string `json:"cwd"`
		} `json:"params"`
		Result struct {
			Content string `json:"content"`
			Outcome struct {
				OptionID string `json:"optionId"`
			} `json:"outcome"`
		} `json:"result"`
	}
	lines := bufio.NewScanner(in)
	send := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	update := func(text string) {
		send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}`, text)
	}
	next := func() (f frame, ok bool) {
		if !lines.Scan() {
			return f, false
		}
		return f, json.Unmarshal(lines.Bytes(), &f) == nil
	}
	file := ""
	for {
		f, ok := next()
		if !ok {
			return nil
		}
		switch f.Method {
		case "initialize":
			send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`, f.ID)
		case "session/new":
			file = filepath.Join(f.Params.Cwd, "main.go")
			send(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`, f.ID)
		case "session/prompt":
			update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit ` +
				`main.go","kind":"edit","status":"pending"}`)
			send(`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s1",` +
				`"toolCall":{"toolCallId":"t1"},"options":[` +
				`{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"n","name":"Reject",` +
				`"kind":"reject_once"}]}}`)
			answer, ok := next()
			cancelled := false
			for ok && answer.Method == "session/cancel" {
				cancelled = true
				answer, ok = next()
			}
			if answer.Result.Outcome.OptionID == "y" && !cancelled {
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}`)
				send(`{"jsonrpc":"2.0","id":"w","method":"fs/write_text_file","params":{"sessionId":"s1","path":%q,`+
					`"content":"package main // func bar\n"}}`, file)
				next()
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`)
			} else {
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}`)
			}
			stop := "end_turn"
			if cancelled {
				stop = "cancelled"
			}
			send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":%q}}`, f.ID, stop)
		}
	}
}

var _ = Describe("the renamer", func() {
	var (
		dir     string
		editor  *mockclient.Editor
		session *mockclient.Session
	)
	begin := func(ctx SpecContext, policy *mockclient.Policy) {
		dir = GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main // func foo\n"), 0o600)).To(Succeed())
		log, err := transcript.New(transcript.Header{Agent: "renamer"},
			transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		editor = mockclient.NewEditor(mockclient.InProcess(log, 0, renamer), mockclient.Options{Policy: policy})
		DeferCleanup(func(ctx SpecContext) { editor.Close(ctx) })
		_, err = editor.Initialize(ctx)
		Expect(err).NotTo(HaveOccurred())
		session, err = editor.NewSession(ctx, mockclient.SessionOptions{Cwd: dir})
		Expect(err).NotTo(HaveOccurred())
	}
	main := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "main.go"))
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	It("edits when it may", func(ctx SpecContext) {
		begin(ctx, mockclient.Allow())
		turn := session.Prompt(ctx, mockclient.Text("Rename foo to bar in main.go."))
		Eventually(editor.Transcript()).WithContext(ctx).Should(turn.Ended("end_turn"))
		Expect(editor.Transcript()).To(mockclient.ToolCallUpdated("in_progress").
			After(mockclient.PermissionRequested()))
		Expect(editor.Transcript()).To(mockclient.PermissionAnswered("selected").
			Before(mockclient.Requested("fs/write_text_file")))
		Expect(main()).To(Equal("package main // func bar\n"))
	})
	It("does nothing when it may not", func(ctx SpecContext) {
		begin(ctx, mockclient.Reject())
		turn := session.Prompt(ctx, mockclient.Text("Rename foo to bar in main.go."))
		Eventually(ctx, editor).Should(turn.Ended("end_turn"))
		Expect(editor).To(mockclient.ToolCallUpdated("failed"))
		Expect(editor).NotTo(mockclient.Requested("fs/write_text_file"))
		Expect(main()).To(Equal("package main // func foo\n"))
	})
	It("stops when it is cancelled while it asks", func(ctx SpecContext) {
		begin(ctx, mockclient.Always(mockclient.Answer{Hold: true}))
		turn := session.Prompt(ctx, mockclient.Text("Rename foo to bar in main.go."))
		Eventually(ctx, editor).Should(mockclient.PermissionRequested())
		_, err := session.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, editor).Should(turn.Ended("cancelled"))
		Expect(editor).To(mockclient.PermissionAnswered("cancelled"))
		Expect(main()).To(Equal("package main // func foo\n"))
	})
})
