//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// A model behind the reference agent of a place.
type model struct {
	*fakellm.Server
	log *transcript.Transcript
}

func (p *place) model(script string) model {
	GinkgoHelper()
	parsed, err := fakellm.ParseScript("llm.yaml", []byte(script), func(s string) (string, error) {
		return strings.ReplaceAll(s, "$DIR", p.dir), nil
	})
	Expect(err).NotTo(HaveOccurred())
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	s, err := fakellm.Start(fakellm.Config{Script: parsed, Transcript: log})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.Close)
	p.env = append(p.env, "OPENAI_BASE_URL="+s.URL()+"/v1")
	return model{s, log}
}

// reaches waits until the model holds its answer at a gate.
func (m model) reaches(gate string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o := m.log.Await(ctx, 0, transcript.Expect("the gate "+gate, func() transcript.Fold {
		return func(e transcript.Entry) (transcript.Verdict, string) {
			if e.Kind == transcript.Gate && e.JSON().Get("gate").Is(gate) {
				return transcript.Met, ""
			}
			return transcript.Unmet, ""
		}
	}))
	Expect(o.Verdict).To(Equal(transcript.Met), "%v", o.Cause)
}

// ask prompts the reference agent.
func (p *place) ask(args ...string) ended {
	GinkgoHelper()
	return p.run(append([]string{"prompt", "--agent", "reference"}, args...)...)
}

// asking is a prompt that goes on.
type asking struct {
	*exec.Cmd
	out *gbytes.Buffer
	err bytes.Buffer
}

func (p *place) asking(args ...string) *asking {
	GinkgoHelper()
	a := &asking{Cmd: p.command(append([]string{"prompt"}, args...)...), out: gbytes.NewBuffer()}
	a.Stdout, a.Stderr = a.out, &a.err
	Expect(a.Start()).To(Succeed())
	DeferCleanup(func() { _ = a.Process.Kill() })
	return a
}

// agent writes an agent of a shell script. got reads a line, which is kept in
// the file got, and say writes one. It has been asked for a prompt, as request
// 3 in the session s, when the script begins.
func (p *place) agent(lines ...string) {
	GinkgoHelper()
	p.write("agent", `#!/bin/sh
got() { IFS= read -r line || exit 0; printf '%s\n' "$line" >> `+p.dir+`/got; }
say() { printf '%s\n' "$1"; }
got; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
got; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
got
`+strings.Join(lines, "\n")+"\n")
}

// says are the messages that the script of agent got after the prompt.
func (p *place) answers() []string {
	GinkgoHelper()
	return strings.Split(strings.TrimSpace(p.read("got")), "\n")[3:]
}

const (
	ends    = `say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; got`
	options = `"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"a","name":"A",` +
		`"kind":"allow_always"},{"optionId":"n","name":"N","kind":"reject_once"}]`
)

// asks is a permission request as a line of an agent's script.
func asks(toolCall string) string {
	return `say '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":` +
		toolCall + `,` + options + `}}'; got`
}

func alive(pid string) func() error {
	return func() error {
		n, err := strconv.Atoi(strings.TrimSpace(pid))
		if err != nil {
			return err
		}
		return syscall.Kill(n, 0)
	}
}

const renames = `
replies:
  - - text: I'll rename it.
      chunks: [I'll, " rename it."]
    - tool: write_file
      args: {path: main.go, content: "bar\n"}
  - - text: Done.
`

var _ = Describe("prompt", func() {
	var p *place
	BeforeEach(func() { p = newPlace() })

	Describe("the output", func() {
		It("is the agent's text, with its tools and permissions on stderr", func() {
			p.model(renames)
			got := p.ask("Rename", "foo")
			Expect([]any{got.code, got.out}).To(Equal([]any{0, "I'll rename it.\nDone.\n"}))
			Expect(got.err).To(MatchRegexp(`^\[session\] sess_\w+: new
\[commands\] /status /tools /compact
\[permission\] Write main\.go \(edit\): rejected, use --write to allow it
\[tool\] Write main\.go \(edit, failed\): the user rejected this
$`))
			Expect(filepath.Join(p.dir, "main.go")).NotTo(BeAnExistingFile())
		})

		It("is only the agent's text with simple", func() {
			p.model(renames)
			Expect(p.ask("--output", "simple", "--write", "Rename foo")).
				To(Equal(ended{0, "I'll rename it.\nDone.\n", ""}))
			Expect(p.read("main.go")).To(Equal("bar\n"))
		})

		It("is every message with jsonl, byte for byte as in the saved session", func() {
			p.model(renames)
			got := p.ask("--output", "jsonl", "--write", "--save-session", "talk.jsonl", "Rename föö \U0001F600")
			Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}))
			log, err := transcript.Load(strings.NewReader(p.read("talk.jsonl")), acpframe.Classifier{})
			Expect(err).NotTo(HaveOccurred())
			want, methods := "", []string{}
			for e := range log.All() {
				if e.Frame() {
					want += string(e.Raw) + "\n"
					methods = append(methods, fmt.Sprintf("%s %s %s", e.Source, e.Kind, e.Method))
				}
			}
			Expect(got.out).To(Equal(want))
			Expect(methods).To(ContainElements("editor request initialize", "agent response session/new",
				"agent request session/request_permission",
				"editor response session/request_permission", "agent request fs/write_text_file",
				"agent notification session/update", "agent response session/prompt"))
			Expect(p.run("show", "talk.jsonl").code).To(Equal(0))
			info, err := os.Stat(filepath.Join(p.dir, "talk.jsonl"))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		})

		It("has with jsonl also what is not a message", func() {
			p.agent(`say 'no { message'`, `say ''`, ends)
			got := p.run("prompt", "--output", "jsonl", "x", "--", "./agent")
			Expect(got.code).To(Equal(0))
			Expect(got.out).To(ContainSubstring("\nno { message\n\n{"))
		})

		It("begins a message on a line of its own, and keeps one together", func() {
			say := func(id, text string) string {
				return `say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
					`"update":{"sessionUpdate":"agent_message_chunk",` + id + `"content":{"type":"text","text":"` +
					text + `"}}}}'`
			}
			other := `say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
				`"update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Think\n  hard"}}}'`
			p.agent(say("", "a"), say("", "b"), other, say("", "c"), say(`"messageId":"1",`, "d"), other,
				say(`"messageId":"1",`, "e"), say(`"messageId":"2",`, `f\n`), say(`"messageId":"3",`, "g"), ends)
			got := p.run("prompt", "x", "--", "./agent")
			Expect(got.out).To(Equal("ab\ncd" + "e\nf\ng\n"))
			Expect(got.err).To(Equal("[session] s: new\n[tool] Think hard (other, pending)\n"))
		})

		It("has a line for a tool call that only a permission request announced", func() {
			p.agent(asks(`{"toolCallId":"t","title":"Edit it","kind":"edit","locations":[{"path":"'$PWD'/a"}]}`),
				`say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
					`"update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}'`,
				`say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
					`"update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}'`, ends)
			Expect(p.run("prompt", "--write", "x", "--", "./agent").err).
				To(Equal("[session] s: new\n[permission] Edit it (edit): allowed once\n" +
					"[tool] Edit it (edit, completed)\n"))
		})

		It("keeps text and lines apart where both go to one place", func() {
			p.model(renames)
			c := p.command("prompt", "--agent", "reference", "--write", "Rename foo")
			both, err := c.CombinedOutput()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(both)).To(HaveSuffix("\nI'll rename it.\n[permission] Write main.go (edit): allowed once\n" +
				"[tool] Write main.go (edit, completed)\n[diff] main.go, +1 -0\n  @@ line 1 @@\n  +bar\nDone.\n"))
		})

		It("changes nothing of a terminal", func() {
			p.agent(`say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
				`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text",`+
				`"text":"a\u001b[31mb\u009bc"}}}}'`,
				`say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
					`"update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x\u001b]0;y\u0007z"}}}'`, ends)
			c := p.command("prompt", "x", "--", "./agent")
			c.Env = append(c.Env, "NO_COLOR=1")
			tty, err := pty.Start(c)
			Expect(err).NotTo(HaveOccurred())
			defer tty.Close()
			var text bytes.Buffer
			_, _ = text.ReadFrom(tty) // EIO is how a terminal ends
			Expect(status(c.Wait())).To(Equal(0))
			Expect(text.String()).To(Equal("[session] s: new\r\n" + `a\x1b[31mb\u009bc` + "\r\n" +
				`[tool] x\x1b]0;y\x07z` + " (other, pending)\r\n"))
		})
	})

	Describe("the text", func() {
		said := func(in string, args ...string) string {
			GinkgoHelper()
			p.agent(ends)
			got := p.with(in, append(append([]string{"prompt"}, args...), "--", "./agent")...)
			Expect(got.code).To(Equal(0), got.err)
			var asked struct {
				Params struct{ Prompt []struct{ Text string } }
			}
			Expect(json.Unmarshal([]byte(strings.Split(p.read("got"), "\n")[2]), &asked)).To(Succeed())
			Expect(asked.Params.Prompt).To(HaveLen(1))
			return asked.Params.Prompt[0].Text
		}
		It("is the words of the command line", func() { Expect(said("not this", "a", "b  <c>")).To(Equal("a b  <c>")) })
		It("is stdin without any", func() { Expect(said("one\ntwo\r\n\n")).To(Equal("one\ntwo")) })
		It("may mention files of the workspace where it was typed, and have others attached", func() {
			p.write("notes/one.txt", "first")
			p.write("dot.png", "\x89PNG\r\n\x1a\n")
			p.agent(ends)
			blocks := func(in string, args ...string) (all []map[string]any) {
				p.write("got", "")
				got := p.with(in, append(append([]string{"prompt"}, args...), "--", "./agent")...)
				Expect(got.code).To(Equal(0), got.err)
				var asked struct {
					Params struct{ Prompt []map[string]any }
				}
				Expect(json.Unmarshal([]byte(strings.Split(p.read("got"), "\n")[2]), &asked)).To(Succeed())
				return asked.Params.Prompt
			}
			text := "Look at @notes/one.txt, @no-such, @/etc/passwd and @../agent."
			all := blocks("", text, "--attach", "dot.png", "--attach", "https://example.com/spec.html")
			Expect(all).To(HaveLen(4))
			Expect(all[0]).To(HaveKeyWithValue("text", text))
			Expect(all[1]).To(And(HaveKeyWithValue("type", "resource_link"), HaveKeyWithValue("name", "dot.png")),
				"the agent takes no images")
			Expect(all[2]).To(HaveKeyWithValue("uri", "https://example.com/spec.html"))
			Expect(all[3]).To(HaveKeyWithValue("name", "one.txt"))
			Expect(blocks(text)).To(HaveLen(1), "what comes by stdin was not typed")
			got := p.run("prompt", "x", "--attach", "no.txt", "--", "./agent")
			Expect(got.err).To(Equal("acp-test: --attach no.txt: this is neither a file nor a URL\n"))
			Expect(got.code).To(Equal(2))
		})
		It("is stdin for a dash", func() { Expect(said("one", "-")).To(Equal("one")) })
	})

	It("says why the agent has no answer to a wrong command line", func() {
		p.write("notes.txt", "mine")
		p.write("empty.jsonl", "")
		for line, message := range map[string]string{
			"prompt": `prompt: no agent is named; give its command after --, a ` +
				`profile with --agent (--agent reference has a model built in), or an editor's settings.json ` +
				`with --settings`,
			"prompt x --":    `prompt: the agent's command is missing after --`,
			"prompt -- true": `prompt: the text is empty`,
			"prompt x --output txt -- true": `--output: there is no output "txt" (did you mean "text"?); ` +
				`expected one of text, simple, jsonl`,
			"prompt x --env X -- true":         `--env "X": K=V is expected`,
			"prompt x --cwd no -- true":        `--cwd: stat ` + p.dir + `/no: no such file or directory`,
			"prompt x --cwd notes.txt -- true": `--cwd: ` + p.dir + `/notes.txt is not a folder`,
			"prompt x --list-commands -- true": `prompt: unexpected argument "x": --list-commands ` +
				`sends no prompt`,
			"prompt x --agent no-one":  `no profile is named "no-one"`,
			"prompt x --agent no.yaml": `reading profile no.yaml: no such file or directory`,
			"prompt x --save-session notes.txt -- true": `--save-session: notes.txt is not a saved session, and ` +
				`prompt does not overwrite it`,
			"prompt x --save-session no/a -- true": `--save-session: open no/a: no such file or directory`,
			"prompt x --resume no.jsonl -- true":   `--resume: open no.jsonl: no such file or directory`,
			"prompt x --resume notes.txt -- true":  `--resume: notes.txt: line 1 of the transcript: `,
			"prompt x --start-timeout -1s -- true": `--start-timeout -1s: a time cannot be negative`,
			"prompt x -- no-such-agent":            `starting no-such-agent: no program "no-such-agent" in `,
			"prompt x -- ./notes":                  `starting notes: no program "` + p.dir + `/notes" in ` + p.dir,
		} {
			got := p.run(strings.Fields(line)...)
			Expect(got.err).To(HavePrefix("acp-test: "+message), line)
			Expect([]any{got.code, got.out}).To(Equal([]any{2, ""}), line)
		}
		Expect(p.read("notes.txt")).To(Equal("mine"))
	})

	Describe("what the agent may do", func() {
		It("is to ask in vain without a flag, and the editor offers neither writes nor terminals", func() {
			p.agent(asks(`{"toolCallId":"t","title":"Edit a","kind":"edit","locations":[{"path":"'$PWD'/a"}]}`),
				`say '{"jsonrpc":"2.0","id":8,"method":"fs/write_text_file","params":{"sessionId":"s",`+
					`"path":"'$PWD'/a","content":"x"}}'; got`,
				`say '{"jsonrpc":"2.0","id":9,"method":"terminal/create","params":{"sessionId":"s",`+
					`"command":"true"}}'; got`, ends)
			Expect(p.run("prompt", "x", "--", "./agent").code).To(Equal(0))
			Expect(p.read("got")).To(ContainSubstring(`"clientCapabilities":{"fs":{"readTextFile":true,` +
				`"writeTextFile":false},`))
			Expect(p.answers()[0]).To(ContainSubstring(`"optionId":"n"`))
			Expect(p.answers()[1]).To(ContainSubstring(`-32601`))
			Expect(p.answers()[2]).To(ContainSubstring(`-32601`))
			Expect(filepath.Join(p.dir, "a")).NotTo(BeAnExistingFile())
		})

		It("is to edit with --write, and nothing else", func() {
			p.agent(asks(`{"toolCallId":"t","title":"Run rm","kind":"execute"}`),
				asks(`{"toolCallId":"u","title":"Remove","kind":"delete","locations":[{"path":"'$PWD'/a"}]}`),
				asks(`{"toolCallId":"v","kind":"edit","content":[{"type":"diff","path":"'$PWD'/new/a",`+
					`"newText":"x"}]}`), ends)
			got := p.run("prompt", "--write", "x", "--", "./agent")
			Expect(got.err).To(Equal("[session] s: new\n[permission] Run rm (execute): rejected, use --yolo to allow it\n" +
				"[permission] Remove (delete): rejected, use --yolo to allow it\n[permission] v (edit): allowed once\n"))
			Expect(p.answers()[2]).To(ContainSubstring(`"optionId":"y"`))
		})

		It("is all with --yolo, and commands run in real terminals", func() {
			m := p.model(`
replies:
  - - tool: run_shell
      args: {command: "echo $OWN in $(pwd) > made; test -t 1 && echo on a terminal"}
    - text: Ran.
  - - text: Done.
`)
			p.env = append(p.env, "OWN=mine")
			got := p.ask("--yolo", "Run it")
			Expect(got).To(Equal(ended{0, "Ran.\nDone.\n", got.err}))
			Expect(p.read("made")).To(Equal("mine in " + p.dir + "\n"))
			Expect(got.err).To(ContainSubstring("(execute): allowed once\n"))
			seen := false
			for e := range m.log.All() {
				seen = seen || strings.Contains(string(e.Raw), "on a terminal\\r")
			}
			Expect(seen).To(BeTrue(), "the model is told what the command printed")
		})

		It("is never more than once", func() {
			p.agent(`say '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s",`+
				`"toolCall":{"toolCallId":"t","title":"T"},"options":[{"optionId":"a","name":"A",`+
				`"kind":"allow_always"},{"optionId":"r","name":"R","kind":"reject_always"}]}}'; got`,
				`say '{"jsonrpc":"2.0","id":8,"method":"session/request_permission","params":{"sessionId":"s",`+
					`"toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"A",`+
					`"kind":"allow_always"}]}}'; got`, ends)
			got := p.run("prompt", "--yolo", "x", "--", "./agent")
			Expect(p.answers()[0]).To(ContainSubstring(`"optionId":"r"`))
			Expect(p.answers()[1]).To(ContainSubstring(`"outcome":"cancelled"`))
			Expect(got.err).To(ContainSubstring("[permission] T (other): rejected for always, the agent offers no " +
				"option to allow it once\n"))
		})

		DescribeTable("is not to leave the workspace", func(flag string) {
			outside := GinkgoT().TempDir()
			work := filepath.Join(p.dir, "work")
			Expect(os.Mkdir(work, 0o755)).To(Succeed())
			Expect(os.Symlink(outside, filepath.Join(work, "link"))).To(Succeed())
			Expect(os.Symlink(filepath.Join(outside, "not-there"), filepath.Join(work, "dangling"))).To(Succeed())
			var lines, whys []string
			for i, path := range []string{outside + "/a", work + "/../a", work + "/link/a", work + "/dangling",
				"../a"} {
				lines = append(lines, asks(`{"toolCallId":"t`+strconv.Itoa(i)+
					`","title":"T","kind":"edit","locations":[{"path":"`+work+`/ok"},{"path":"`+path+`"}]}`))
				whys = append(whys, "[permission] T (edit): rejected, "+path+" is outside the workspace")
			}
			lines = append(lines, asks(`{"toolCallId":"u","title":"U","kind":"edit"}`),
				asks(`{"toolCallId":"w","title":"W","kind":"edit","rawInput":{"file_path":"/etc/passwd"},`+
					`"locations":[{"path":"`+work+`/ok"}]}`),
				`say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
					`"update":{"sessionUpdate":"tool_call","toolCallId":"x","title":"X","kind":"edit",`+
					`"locations":[{"path":"`+outside+`/a"}]}}}'`, asks(`{"toolCallId":"x"}`))
			whys = append(whys, "[permission] U (edit): rejected, the call names no file",
				"[permission] W (edit): rejected, /etc/passwd is outside the workspace",
				"[permission] X (edit): rejected, "+outside+"/a is outside the workspace")
			for _, path := range []string{outside + "/a", work + "/../a", work + "/link/a", work + "/dangling"} {
				lines = append(lines, `say '{"jsonrpc":"2.0","id":8,"method":"fs/write_text_file",`+
					`"params":{"sessionId":"s","path":"`+path+`","content":"x"}}'; got`)
				whys = append(whys, "[refused] "+path+": the path leaves the directories of the session")
			}
			lines = append(lines, `say '{"jsonrpc":"2.0","id":9,"method":"fs/write_text_file",`+
				`"params":{"sessionId":"s","path":"`+work+`/deep/ok","content":"fine"}}'; got`, ends)
			p.agent(lines...)
			got := p.run("prompt", flag, "--cwd", "work", "x", "--", "./agent")
			Expect(got.err).To(Equal("[session] s: new\n" + strings.Join(whys, "\n") + "\n[tool] X (edit, pending)\n"))
			Expect(filepath.Join(p.dir, "a")).NotTo(BeAnExistingFile())
			Expect(os.ReadDir(outside)).To(BeEmpty())
			Expect(p.read("work/deep/ok")).To(Equal("fine"))
		},
			Entry("with --write", "--write"),
			Entry("with --yolo", "--yolo"),
		)
	})

	Describe("the exit status", func() {
		It("is 1 for another stop reason than end_turn", func() {
			p.model("replies:\n  - - text: I can not say\n    - stop: length\n")
			got := p.ask("--output", "simple", "Say it all")
			Expect(got).To(Equal(ended{1, "I can not say\n", "acp-test: the turn ended with \"max_tokens\"\n"}))
		})

		It("is 1 without a stop reason", func() {
			p.agent(`say '{"jsonrpc":"2.0","id":3,"result":{}}'; got`)
			Expect(p.run("prompt", "--output", "simple", "x", "--", "./agent")).
				To(Equal(ended{1, "", "acp-test: the turn ended without a stop reason\n"}))
		})

		It("is 1 for an error", func() {
			p.agent(`say '{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no","data":{"why":"so"}}}'; got`)
			Expect(p.run("prompt", "--output", "simple", "x", "--", "./agent")).
				To(Equal(ended{1, "", "acp-test: session/prompt: no (-32603): {\"why\":\"so\"}\n"}))
		})

		It("is 1 for an agent that dies in the turn", func() {
			p.agent(`echo oops >&2; exit 3`)
			Expect(p.run("prompt", "--output", "simple", "x", "--", "./agent")).
				To(Equal(ended{1, "", "acp-test: the agent exited with status 3 before it answered session/prompt; " +
					"the end of its stderr:\n  oops\n"}))
		})

		DescribeTable("is 2 for an agent that does not come to a turn", func(script, message string) {
			p.write("agent", "#!/bin/sh\n"+script+"\n")
			got := p.run("prompt", "--start-timeout", "1s", "x", "--", "./agent")
			Expect(got).To(Equal(ended{2, "", "acp-test: agent: " + message + "\n"}))
		},
			Entry("and dies", "echo no key >&2; exit 3",
				"the agent exited with status 3 before it answered initialize; the end of its stderr:\n  no key"),
			Entry("and speaks something else", "read x; echo Welcome!; read x; exit 0",
				"waiting for the answer to initialize: nothing came in 1s (--start-timeout); it wrote lines to "+
					"stdout that are not messages: is a flag such as --acp missing?"),
			Entry("and is silent", "read x; sleep 100",
				"waiting for the answer to initialize: nothing came in 1s (--start-timeout)"),
			Entry("and speaks another version",
				`read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}'; sleep 100`,
				"the agent speaks protocol version 7, this editor speaks 1"),
		)

		It("is 2 for an agent that wants a login, with the ways there are", func() {
			got := p.ask("--env", "ACP_TEST_REFAGENT_LOGIN=agent", "x")
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(MatchRegexp(`^acp-test: Reference agent: session/new: authentication required ` +
				`\(-32000\): log in with the agent's own program first, or give it a key with --env; it offers the ` +
				`login methods .+ \(agent\)\n$`))
		})
	})

	Describe("the agent", func() {
		dumps := "#!/bin/sh\nenv > " // then the file
		variables := func() map[string]string {
			GinkgoHelper()
			env := map[string]string{}
			for line := range strings.Lines(p.read("seen")) {
				k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				env[k] = v
			}
			return env
		}

		It("gets the user's environment, what its settings add, and --env", func() {
			p.write("agent", dumps+p.dir+"/seen\n")
			p.env = append(p.env, "OPENAI_API_KEY=sk-real", "A=user", "B=user", "C=user")
			p.write("settings.json", `{"agent_servers": {"Own": {"command": "`+p.dir+
				`/agent", "env": {"B": "settings", "C": "settings", "ANTHROPIC_API_KEY": "sk-settings", `+
				`"ANTHROPIC_BASE_URL": "https://own.example", "D": "$HOME"}}}}`)
			Expect(p.run("prompt", "--settings", "settings.json", "--env", "C=flag", "x").code).To(Equal(2))
			env := variables()
			for k, v := range map[string]string{"OPENAI_API_KEY": "sk-real", "A": "user", "B": "settings", "C": "flag",
				"ANTHROPIC_API_KEY": "sk-settings", "ANTHROPIC_BASE_URL": "https://own.example", "D": "$HOME",
				"HOME": p.dir, "TERM": "xterm"} {
				Expect(env).To(HaveKeyWithValue(k, v))
			}
			Expect(env).NotTo(Or(HaveKey("OPENAI_BASE_URL"), HaveKey("GEMINI_API_KEY"), HaveKey("NO_COLOR")))
		})

		It("gets of a profile neither keys nor what points into a test", func() {
			p.write("agent", dumps+p.dir+"/seen\n")
			p.env = append(p.env, "SOME_API_KEY=sk-real")
			p.write("own.yaml", "name: own\ncommand: [./agent]\nenv: {SOME_API_KEY: sk-test, SOME_URL: $LLM/v1, "+
				"SOME_DIR: $HOME/x, QUIET: 'yes', PRICE: '5$$'}\nhome: {.own/settings: broken}\n")
			Expect(p.run("prompt", "--agent", "own.yaml", "x").code).To(Equal(2))
			env := variables()
			Expect(env).To(And(HaveKeyWithValue("SOME_API_KEY", "sk-real"), HaveKeyWithValue("QUIET", "yes"),
				HaveKeyWithValue("PRICE", "5$")))
			Expect(env).NotTo(Or(HaveKey("SOME_URL"), HaveKey("SOME_DIR")))
			Expect(filepath.Join(p.dir, ".own")).NotTo(BeADirectory())
		})

		It("is that of acp-test.yaml where nothing else names one", func() {
			p.agent(ends)
			p.write("acp-test.yaml", "command: [./agent]\n")
			p.write("sub/x", "")
			c := p.command("prompt", "x")
			c.Dir = filepath.Join(p.dir, "sub")
			Expect(status(c.Run())).To(Equal(0))
			Expect(p.read("got")).To(ContainSubstring(`"cwd":"` + p.dir + `/sub"`))
		})
	})

	Describe("--settings", func() {
		agent := func(name string) string { return `{"type": "custom", "command": "` + p.dir + `/` + name + `"}` }
		which := func(args ...string) ended {
			GinkgoHelper()
			for _, name := range []string{"one", "two"} {
				p.write(name, "#!/bin/sh\necho I am "+name+" >&2\n")
			}
			return p.run(append([]string{"prompt", "x", "--settings", "settings.json"}, args...)...)
		}

		It("takes the first agent that can be started, in the order of the file", func() {
			p.write("settings.json", `// mine
{"theme": "One", "agent_servers": {
  "registry": {"type": "registry"},
  "Zwei": `+agent("two")+`, /* first */
  "Eins": `+agent("one")+`,
},}`)
			Expect(which().err).To(HaveSuffix("I am two\n"))
			Expect(which("--agent", "Eins").err).To(HaveSuffix("I am one\n"))
			Expect(which("--agent", "eins").err).To(HaveSuffix("I am one\n"))
			Expect(which("--agent", "Einz").err).
				To(HavePrefix(`acp-test: settings.json: it has no agent "Einz" (did you mean "Eins"?); it has Zwei, ` +
					`Eins; left out: registry: `))
			Expect(which("--agent", "Zwei", "--", "./one").err).To(HaveSuffix("I am one\n"))
		})

		DescribeTable("says what is wrong with the file", func(text, message string) {
			p.write("settings.json", text)
			got := which()
			Expect(got.err).To(MatchRegexp("^acp-test: " + message))
			Expect(got.code).To(Equal(2))
		},
			Entry("broken", "{\n  \"agent_servers\": {\n    ]\n}", `settings\.json:3:5: `),
			Entry("not an object", `[]`, `settings\.json:1:\d: `),
			Entry("no command", `{"agent_servers": {"x": {"comand": "y"}}}`,
				`settings\.json:1:36: agent_servers\.x: unknown key "comand" \(did you mean "command"\?\)\n$`),
			Entry("no agents", `{"theme": "x"}`, `settings\.json: it has no agent_servers\n$`),
			Entry("agents no object", "{\n \"agent_servers\": [1]}",
				`settings\.json:2:\d+: agent_servers must be an object`),
			Entry("an agent no object", "{\n \"agent_servers\": {\"a\":\n 7}}",
				`settings\.json:3:\d: .*must be an object`),
			Entry("args no list", "{\n \"agent_servers\": {\"a\": {\"command\": \"x\",\n \"args\": \"y\"}}}",
				`settings\.json:3:\d+: .*a\.args must be a list of texts`),
			Entry("env no texts", "{\n \"agent_servers\": {\"a\": {\"command\": \"x\",\n \"env\": {\"A\": 1}}}}",
				`settings\.json:3:\d+: .*a\.env\.A must be a text, not 1`),
			Entry("a command of another type", `{"agent_servers": {"a": {"command": 7}}}`,
				`settings\.json:1:37: agent_servers\.a\.command must be a text, not 7\n`),
			Entry("none that can be started", `{"agent_servers": {"a": {"type": "registry"}}}`,
				`settings\.json: no entry in agent_servers can be started; left out: a: `),
			Entry("no program", `{"agent_servers": {"a": {"command": "/no/such"}}}`,
				`starting a: no program "/no/such" in /no\n`),
		)

		It("must be there", func() {
			Expect(which().err).To(Equal("acp-test: --settings: open settings.json: no such file or directory\n"))
		})
	})

	Describe("--resume", func() {
		const twice = `
turns:
  - {prompt: Remember 42, replies: [[{text: I will.}]]}
  - {prompt: Which number, when: {}, replies: [[{text: It was 42.}]]}
`
		var m model
		BeforeEach(func() { m = p.model(strings.ReplaceAll(twice, ", when: {}", "")) })

		It("goes on with a session of an earlier command, by its file or its id", func() {
			Expect(p.ask("--output", "simple", "--save-session", "talk.jsonl", "Remember 42").code).To(Equal(0))
			got := p.ask("--output", "simple", "--resume", "talk.jsonl", "--save-session", "talk.jsonl", "Which number")
			Expect(got.out).To(Equal("It was 42.\n"), "what was said before is not said again")
			id := regexp.MustCompile(`^\[session\] (sess_\w+): loaded\n$`).FindStringSubmatch(got.err)
			Expect(id).To(HaveLen(2), got.err)
			Expect(p.ask("--resume", id[1], "Which number").err).
				To(ContainSubstring("[session] " + id[1] + ": loaded\n"))
			Expect(p.ask("--resume", "talk.jsonl", "Which number").err).
				To(ContainSubstring("[session] " + id[1] + ": loaded\n"))
			last := ""
			for e := range m.log.All() {
				if e.Kind == transcript.ModelRequest {
					last = string(e.Raw)
				}
			}
			Expect(last).To(ContainSubstring("Remember 42"))
		})

		It("begins a new one where there is none, and says why", func() {
			got := p.ask("--output", "simple", "--resume", "sess_none", "Remember 42")
			Expect([]any{got.code, got.out}).To(Equal([]any{0, "I will.\n"}))
			Expect(got.err).To(MatchRegexp(`^\[session\] sess_\w+: new; session/load: unknown session "sess_none" ` +
				`\(-32002\); session/resume: unknown session "sess_none" \(-32002\)\n$`))
		})

		It("resumes where the agent cannot load", func() {
			p.write("agent", `#!/bin/sh
read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resu`+
				`me":{}}}}}'
read x; echo '{"jsonrpc":"2.0","id":2,"result":{}}'
read x; echo "$x" > `+p.dir+`/got; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; read x`)
			got := p.run("prompt", "--output", "jsonl", "--resume", "old", "x", "--", "./agent")
			Expect(got.err).To(Equal("[session] old: resumed; session/load: the agent does not advertise " +
				"agentCapabilities.loadSession\n"))
			Expect(p.read("got")).To(ContainSubstring(`"sessionId":"old"`))
		})
	})

	It("shows subagents indented, with their states, words and tools", func() {
		p.model(`
lanes:
  read: {when: {user~: Look at it, result~: .}, reply: [{text: "All green.\nTruly."}]}
  child: {when: {user~: Look at it}, reply: [{tool: search, args: {pattern: green}}]}
replies:
  - - tool: delegate
      args: {task: Look at it.}
  - - text: It is looked at.
`)
		got := p.ask("--yolo", "Have it looked at")
		Expect(got.out).To(Equal("It is looked at.\n"))
		Expect(got.err).To(MatchRegexp(`(?s)\n  \[subagent\] Look at it\.: running\n  \[tool\] .*search, ` +
			`completed\)\n` +
			`  \[Look at it\.\] All green\.\n  \[Look at it\.\] Truly\.\n  \[subagent\] Look at it\.: idle ` +
			`end_turn\n\[tool\] Delegate`))
	})

	It("tells an unknown agent that advertises providers where its model is, and guesses no base URL", func() {
		p.write("hello.txtar", "# A greeting.\ncheck greets\nprompt 'Say hello.'\nawait turn end_turn\ntext ~ Hello\n"+
			"-- llm.yaml --\nreplies:\n  - - text: Hello.\n")
		unknown := func(env ...string) ended {
			return p.run(append(append([]string{"run", "hello.txtar"}, env...), "--", "acp-test", "refagent")...)
		}
		got := unknown("--env", "ACP_TEST_REFAGENT_PROVIDERS=yes")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.err).To(HavePrefix("acp-test advertises providers: acp-test sets its model with providers/set"))
		Expect(p.read("acp-test-out/hello/transcript.jsonl")).To(ContainSubstring("providers/set"))
		Expect(unknown().err).NotTo(ContainSubstring("providers"))
	})

	It("takes secrets out of what it shows, and of a saved session", func() {
		p.model("replies:\n  - - text: The key is hunter2-hunter2.\n")
		p.env = append(p.env, "OWN_API_KEY=hunter2-hunter2")
		got := p.ask("--output", "simple", "--save-session", "talk.jsonl", "Tell")
		Expect(got.out).To(Equal("The key is REDACTED.\n"))
		Expect(p.read("talk.jsonl")).NotTo(ContainSubstring("hunter2"))
	})

	Describe("--list-commands", func() {
		It("lists what the agent names, in each output", func() {
			Expect(p.ask("--list-commands").out).
				To(Equal("/status                  Show the mode and the working directory of this session\n" +
					"/tools                   List the tools of the agent\n/compact                 Replace the " +
					"conversation by a summary of it\n"))
			Expect(p.ask("--list-commands", "--output", "simple")).
				To(Equal(ended{0, "/status\n/tools\n/compact\n", ""}))
			got := p.ask("--list-commands", "--output", "jsonl")
			for line := range strings.Lines(got.out) {
				Expect(line).To(HavePrefix(`{"jsonrpc":"2.0",`))
			}
			Expect(got.out).To(ContainSubstring("available_commands_update"))
			Expect(got.out).NotTo(ContainSubstring("session/prompt"))
		})

		It("takes the last list, with hints", func() {
			list := func(commands string) string {
				return `say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
					`"update":{"sessionUpdate":"available_commands_update","availableCommands":[` + commands + `]}}}'`
			}
			p.agent() // which waits for a prompt
			p.write("agent", strings.Replace(p.read("agent"), "\ngot\n",
				"\n"+list(`{"name":"a","description":"A"}`)+"\n"+
					list(`{"name":"web","description":"Search","input":{"hint":"query"}}`)+"\ngot\n", 1))
			Expect(p.run("prompt", "--list-commands", "--", "./agent").out).
				To(Equal("/web <query>             Search\n"))
		})
	})

	Describe("an interrupt", func() {
		It("cancels the turn", func() {
			m := p.model("replies:\n  - - text: Wait\n    - gate: mid\n    - text: never\n")
			a := p.asking("--agent", "reference", "--save-session", "talk.jsonl", "--output", "simple", "Count")
			m.reaches("mid")
			Eventually(a.out).WithTimeout(time.Minute).Should(gbytes.Say("Wait"))
			Expect(a.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(status(a.Wait())).To(Equal(130))
			Expect([]string{string(a.out.Contents()), a.err.String()}).
				To(Equal([]string{"Wait\n", "acp-test: cancelled\n"}))
			Expect(p.read("talk.jsonl")).To(ContainSubstring(`"method":"session/cancel"`))
		})

		It("is the same by SIGTERM, with its status", func() {
			m := p.model("replies:\n  - - text: Wait\n    - gate: mid\n    - text: never\n")
			a := p.asking("--agent", "reference", "Count")
			m.reaches("mid")
			Expect(a.Process.Signal(syscall.SIGTERM)).To(Succeed())
			Expect(status(a.Wait())).To(Equal(143))
		})

		It("answers what is asked afterwards with cancelled", func() {
			p.agent(`: > `+p.dir+`/prompted`, `got`, asks(`{"toolCallId":"t","title":"T","kind":"execute"}`),
				`say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; got`)
			a := p.asking("--yolo", "x", "--", "./agent")
			Eventually(filepath.Join(p.dir, "prompted")).WithTimeout(time.Minute).Should(BeAnExistingFile())
			Expect(a.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(status(a.Wait())).To(Equal(130))
			Expect(p.answers()[0]).To(ContainSubstring("session/cancel"))
			Expect(p.answers()[1]).To(ContainSubstring(`"outcome":"cancelled"`))
			Expect(a.err.String()).To(Equal("[session] s: new\n[permission] T (execute): cancelled\n" +
				"acp-test: cancelled, but the turn ended with \"end_turn\"\n"))
		})

		It("that is the second ends the agent and all it started", func() {
			p.agent(`trap '' INT TERM; sleep 1000 & echo $! > child; echo $$ > pid`, `got`, `: > cancelled`, `wait`)
			a := p.asking("x", "--", "./agent")
			Eventually(filepath.Join(p.dir, "pid")).WithTimeout(time.Minute).Should(BeAnExistingFile())
			Expect(a.Process.Signal(os.Interrupt)).To(Succeed())
			Eventually(filepath.Join(p.dir, "cancelled")).WithTimeout(time.Minute).Should(BeAnExistingFile())
			Expect(alive(p.read("pid"))()).To(Succeed())
			Expect(a.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(status(a.Wait())).To(Equal(130))
			Expect(a.err.String()).To(HaveSuffix("acp-test: cancelled; acp-test stopped the agent before " +
				"it answered\n"))
			Expect(alive(p.read("pid"))()).To(MatchError(syscall.ESRCH))
			Expect(alive(p.read("child"))()).To(MatchError(syscall.ESRCH))
		})

		It("ends an agent that does not even start", func() {
			p.write("agent", "#!/bin/sh\n: > started\nsleep 1000\n")
			a := p.asking("x", "--", "./agent")
			Eventually(filepath.Join(p.dir, "started")).WithTimeout(time.Minute).Should(BeAnExistingFile())
			Expect(a.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(status(a.Wait())).To(Equal(130))
			Expect(a.err.String()).To(Equal("acp-test: interrupted before a turn began\n"))
		})
	})

	It("does not leave the agent behind when it is killed itself", func() {
		p.agent(`echo $$ > p; mv p pid`, `sleep 1000`)
		a := p.asking("x", "--", "./agent")
		Eventually(filepath.Join(p.dir, "pid")).WithTimeout(time.Minute).Should(BeAnExistingFile())
		Expect(a.Process.Kill()).To(Succeed())
		_ = a.Wait()
		Eventually(alive(p.read("pid"))).WithTimeout(time.Minute).Should(MatchError(syscall.ESRCH))
	})
})
