package mockclient_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

// talk lets an agent play a conversation about terminals; each step returns
// the answer as JSON text or "error code". $T is the last terminal's id.
func talk(o mockclient.Options, steps ...string) ([]string, *mockclient.Editor) {
	GinkgoHelper()
	done := make(chan []string, 1)
	dir := GinkgoT().TempDir()
	e := edit(o, func(p *peer) {
		p.handshake()
		var got []string
		id := ""
		for i, step := range steps {
			method, params, _ := strings.Cut(step, " ")
			params = strings.NewReplacer("$T", id, "$DIR", dir).Replace(params)
			m := p.ask(i+1, "terminal/"+method, fmt.Sprintf(`{"sessionId":"s"%s}`, params))
			answer := string(m.v.Get("result").Raw())
			if code := m.v.Path("error.code"); code.Exists() {
				answer = "error " + code.Text()
			}
			if t := m.v.Path("result.terminalId"); t.Exists() {
				id, answer = t.Str(), "created"
			}
			got = append(got, answer)
		}
		done <- got
	})
	open(e, dir)
	var got []string
	Eventually(done).Should(Receive(&got))
	return got, e
}

const onT = ` ,"terminalId":"$T"`

func create(command string, more ...string) string {
	words := strings.Fields(command)
	args := ""
	for i, w := range words[1:] {
		args += strings.Repeat(",", min(i, 1)) + fmt.Sprintf("%q", w)
	}
	return fmt.Sprintf(`create ,"command":%q,"args":[%s]%s`, words[0], args, strings.Join(more, ""))
}

var _ = Describe("a scripted terminal", func() {
	It("runs nothing, and obeys the order of life", func() { // TERM-010, 012, 013, 014, 015, 017
		got, e := talk(mockclient.Options{},
			create("rm -rf /"), "output"+onT, "wait_for_exit"+onT, "kill"+onT, "output"+onT, "wait_for_exit"+onT,
			"release"+onT,
			"output"+onT, "wait_for_exit"+onT, "kill"+onT, "release"+onT)
		Expect(got).To(Equal([]string{
			"created", `{"output":"","truncated":false,"exitStatus":{"exitCode":0}}`, `{"exitCode":0}`, `{}`,
			`{"output":"","truncated":false,"exitStatus":{"exitCode":0}}`, `{"exitCode":0}`, `{}`,
			"error -32002", "error -32002", "error -32002", "error -32002"}))
		Expect(kinds(e.Transcript(), transcript.Terminal)).
			To(Equal([]string{"term-started", "term-exit", "term-released"}))
		Expect(e.Terminals()).To(ConsistOf(And(HaveField("Released", true), HaveField("Command", "rm -rf /"))))
	})
	It("does what the script says", func() {
		o := mockclient.Options{Terminals: &mockclient.Terminals{Script: []mockclient.ScriptedCommand{
			{Match: "go test*", Output: "FAIL é\n", Exit: 1}, {Match: "sleep *", Hold: true},
			{Match: "crash", Signal: "SIGSEGV"},
			{Match: "full", Error: &mockclient.RPCError{Code: -32603, Message: "no more terminals"}},
		}}}
		got, e := talk(o, create("go test ./..."), "output"+onT, create("go test x", `,"outputByteLimit":3`),
			"output"+onT,
			create("crash"), "wait_for_exit"+onT, create("full"), create("sleep 1"), "output"+onT, "kill"+onT,
			"output"+onT)
		Expect(got).To(Equal([]string{
			"created", `{"output":"FAIL é\n","truncated":false,"exitStatus":{"exitCode":1}}`,
			"created", `{"output":"é\n","truncated":true,"exitStatus":{"exitCode":1}}`,
			"created", `{"signal":"SIGSEGV"}`, "error -32603",
			"created", `{"output":"","truncated":false}`, `{}`,
			`{"output":"","truncated":false,"exitStatus":{"signal":"SIGKILL"}}`}))
		for _, t := range e.Terminals() {
			Expect(t.Released).To(BeFalse(), "the ledger knows what was never released")
		}
	})
	It("answers other requests while one waits, and ends the wait on $/cancel_request", func() {
		o := mockclient.Options{Terminals: &mockclient.Terminals{Script: []mockclient.ScriptedCommand{{Hold: true}}}}
		got := make(chan string, 3)
		e := edit(o, func(p *peer) {
			p.handshake()
			id := p.ask(1, "terminal/create", `{"sessionId":"s","command":"x"}`).v.Path("result.terminalId").Str()
			on := fmt.Sprintf(`{"sessionId":"s","terminalId":%q}`, id)
			p.send(`{"jsonrpc":"2.0","id":2,"method":"terminal/wait_for_exit","params":%s}`, on)
			p.send(`{"jsonrpc":"2.0","id":3,"method":"terminal/wait_for_exit","params":%s}`, on)
			p.ask(4, "terminal/output", on)
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`)
			got <- p.until("", "2").v.Path("error.code").Text()
			p.send(`{"jsonrpc":"2.0","method":"waiting"}`)
			got <- string(p.until("", "3").v.Get("result").Raw())
		})
		open(e, GinkgoT().TempDir())
		Eventually(got).Should(Receive(Equal("-32800")))
		await(e.Transcript(), named("waiting"))
		code := 5
		Expect(e.EndTerminal(e.Terminals()[0].ID, mockclient.ExitStatus{ExitCode: &code})).To(BeTrue())
		Expect(e.EndTerminal(e.Terminals()[0].ID, mockclient.ExitStatus{})).To(BeFalse())
		Eventually(got).Should(Receive(Equal(`{"exitCode":5}`)))
	})
	It("refuses what is malformed or leaves the workspace", func() {
		got, _ := talk(mockclient.Options{}, "create", `create ,"command":7`, create("x", `,"cwd":"relative"`),
			create("x", `,"cwd":"/"`),
			create("x", `,"cwd":"$DIR/none"`), create("x", `,"cwd":"$DIR"`), `output ,"terminalId":7`,
			`output ,"terminalId":"none"`)
		Expect(got).To(Equal([]string{"error -32602", "error -32602", "error -32602", "error -32602", "error -32002",
			"created", "error -32602", "error -32002"}))
	})
})

var _ = Describe("a real terminal", func() {
	BeforeEach(func() {
		if runtime.GOOS == "windows" {
			Skip("no pty")
		}
	})
	real := func(allow ...string) mockclient.Options {
		return mockclient.Options{Terminals: &mockclient.Terminals{Real: true, Allow: allow,
			Env: []string{"PATH=/usr/bin:/bin", "A=1"}}}
	}
	script := func(text string) string {
		path := GinkgoT().TempDir() + "/script"
		Expect(os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700)).To(Succeed())
		return path
	}
	It("runs allowed commands on a pty, with their environment", func() {
		path := script("tty -s && echo \"on a tty $A $B\"; pwd; exit 3")
		got, e := talk(real(path), create(path, `,"env":[{"name":"B","value":"2"}]`), "wait_for_exit"+onT, "output"+onT,
			"release"+onT)
		Expect(got[1]).To(Equal(`{"exitCode":3}`))
		Expect(got[2]).To(HavePrefix(`{"output":"on a tty 1 2\r\n/`))
		Expect(kinds(e.Transcript(), transcript.Terminal)).To(HaveEach(HavePrefix("term-")))
	})
	It("refuses what is not allowed, and notes it", func() {
		got, e := talk(real("echo *"), create("touch /x"), create("no-such-command"), create("echo hi"))
		Expect(got).To(Equal([]string{"error -32602", "error -32602", "created"}))
		Expect(codes(e.Transcript())).To(Equal([]string{"command-refused", "command-refused"}))
		got, _ = talk(real("*"), create("no-such-command"))
		Expect(got).To(Equal([]string{"error -32002"}))
	})
	It("kills, keeps the output, and frees", func() {
		path := script("echo begun; exec sleep 1000")
		got, e := talk(real("*"), create(path), "kill"+onT, "wait_for_exit"+onT, "output"+onT, "release"+onT,
			"output"+onT)
		Expect(got[1:3]).To(Equal([]string{`{}`, `{"signal":"SIGKILL"}`}))
		Expect(got[4:]).To(Equal([]string{`{}`, "error -32002"}))
		Expect(e.Terminals()[0].Exit.Signal).To(Equal("SIGKILL"))
	})
	It("cuts output at a character boundary, and keeps the tail", func() { // TERM-011
		path := script("i=0; while [ $i -lt 2000 ]; do printf 'añ€😀'; i=$((i+1)); done; printf end")
		got, _ := talk(real("*"), create(path, `,"outputByteLimit":11`), "wait_for_exit"+onT, "output"+onT)
		Expect(got[2]).To(Equal(`{"output":"€😀end","truncated":true,"exitStatus":{"exitCode":0}}`))
	})
	It("leaves nothing running when the connection ends, also what called setsid", func() {
		if runtime.GOOS != "linux" {
			Skip("needs /proc")
		}
		path := script("setsid sleep 1000 & trap '' HUP; sleep 1000 & echo ok; wait")
		got, e := talk(real("*"), create(path), "output"+onT)
		Expect(got[0]).To(Equal("created"))
		o := e.Transcript().Await(within(), 0,
			transcript.First("output", func(e transcript.Entry) bool { return e.Kind == transcript.TermOutput }))
		Expect(o.Met()).To(BeTrue())
		started := await(e.Transcript(),
			transcript.First("start", func(e transcript.Entry) bool { return e.Kind == transcript.TermStarted }))
		pid := started.JSON().Get("pid").Text()
		mark := ""
		env, _ := os.ReadFile("/proc/" + pid + "/environ")
		for kv := range strings.SplitSeq(string(env), "\x00") {
			if strings.HasPrefix(kv, "ACP_TEST_TERMINAL=") {
				mark = kv
			}
		}
		Expect(mark).NotTo(BeEmpty())
		Expect(marked(mark)).To(BeNumerically(">=", 2))
		e.Close(within())
		Expect(marked(mark)).To(BeZero())
	})
})

// marked counts the processes with a variable in their environment.
func marked(variable string) int {
	n := 0
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		env, _ := os.ReadFile("/proc/" + d.Name() + "/environ")
		if strings.Contains("\x00"+string(env), "\x00"+variable+"\x00") {
			n++
		}
	}
	return n
}

// FuzzTail: the tail is one, fits, begins at a character, and is as long as
// it can be.
func FuzzTail(f *testing.F) {
	f.Add("añ€😀", 5)
	f.Add("", 0)
	f.Add("\x80\x80", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		got := mockclient.Tail(text, limit)
		if !strings.HasSuffix(text, got) || len(got) > max(limit, 0) || !utf8.ValidString(got) {
			t.Fatalf("Tail(%q, %d) = %q", text, limit, got)
		}
		if left := len(text) - len(got); left > 0 {
			if _, n := utf8.DecodeLastRuneInString(text[:left]); len(got)+n <= limit {
				t.Fatalf("Tail(%q, %d) = %q could be longer", text, limit, got)
			}
		}
	})
}

// FuzzRange: ranges join to the whole, whatever the text.
func FuzzRange(f *testing.F) {
	f.Add("a\r\nb\n\nc", 2, 1)
	f.Add("", 1, 0)
	f.Fuzz(func(t *testing.T, text string, line, limit int) {
		line, limit = max(1, line%100), max(0, limit%100)
		before, part, after := mockclient.Range(text, 1, line-1), mockclient.Range(text, line, limit),
			mockclient.Range(text, line+limit, -1)
		if before+part+after != text {
			t.Fatalf("%q + %q + %q is not %q", before, part, after, text)
		}
		if n := strings.Count(part, "\n"); n > limit {
			t.Fatalf("%d lines where %d were asked for", n, limit)
		}
		if limit > 0 && part == "" && after != "" {
			t.Fatalf("Range(%q, %d, %d) is empty with %q to come", text, line, limit, after)
		}
	})
}
