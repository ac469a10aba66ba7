package canonical_test

import (
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/sebdah/goldie/v2"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/transcript"
)

// an edit that the user allows, with commands that arrive when they like.
func edit() []frame {
	return []frame{
		toAgent(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,` +
			`"clientInfo":{"name":"editor","version":"1.2.3"},"clientCapabilities":{"fs":{"readTextFile":true}}}}`),
		toEditor(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"agent",` +
			`"version":"4.5.6-rc1"},"agentCapabilities":{"loadSession":true},"authMethods":[{"id":"key",` +
			`"name":"API key"}]}}`),
		toAgent(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp/run/work","mcpServers":[]}}`),
		toEditor(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001",` +
			`"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}}}`),
		toAgent(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"0b5c2f9e-5f0e-4a52-9d9b-c1f` +
			`6a2d7e001","prompt":[{"type":"text","text":"Rename foo to bar in main.go."}]}}`),
		toEditor("%s", updates("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "available_commands_update",
			`"availableCommands":[{"name":"plan","description":"Plan first","input":{"hint":"what"}},{"name":"web",`+
				`"description":"Search"}]`)),
		toEditor("%s", chunk("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "agent_message_chunk", "I'll ren")),
		toEditor("%s", chunk("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "agent_message_chunk", "ame it in /tmp/ru")),
		toEditor("%s", chunk("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "agent_message_chunk", "n/work/main.go.")),
		toEditor("%s", updates("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "tool_call",
			`"toolCallId":"call_77","kind":"edit","title":"Edit main.go","status":"pending",`+
				`"locations":[{"path":"/tmp/run/work/main.go","line":3}],"rawInput":{"path":"/tmp/run/work/main.go",`+
				`"content":"package main"}`)),
		toEditor(`{"jsonrpc":"2.0","id":0,"method":"session/request_permission",` +
			`"params":{"sessionId":"0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001","toolCall":{"toolCallId":"call_77"},` +
			`"options":[{"optionId":"y","name":"Allow once","kind":"allow_once"},{"optionId":"n","name":"Not ` +
			`now","kind":"reject_once"},{"optionId":"m","name":"Never","kind":"reject_once"}]}}`),
		toAgent(`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}`),
		toEditor("%s", updates("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "tool_call_update",
			`"toolCallId":"call_77","status":"in_progress"`)),
		toEditor(`{"jsonrpc":"2.0","id":"w","method":"fs/write_text_file","params":{"sessionId":"0b5c2f9e-5f0e-4a52-9` +
			`d9b-c1f6a2d7e001","path":"/tmp/run/work/main.go","content":"package main // func bar\n"}}`),
		toAgent(`{"jsonrpc":"2.0","id":"w","result":{}}`),
		toEditor("%s", updates("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "tool_call_update",
			`"toolCallId":"call_77","status":"completed","content":[{"type":"diff","path":"/tmp/run/work/main.go",`+
				`"oldText":"a\n","newText":"b\n"},{"type":"content","content":{"type":"text","text":"done"}}]`)),
		toEditor("%s", updates("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "usage_update",
			`"used":10,"size":100,"cost":{"amount":0.5,"currency":"EUR"}`)),
		toEditor("%s", chunk("0b5c2f9e-5f0e-4a52-9d9b-c1f6a2d7e001", "agent_message_chunk", "Done.")),
		toEditor(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"totalTokens":15}}}`),
	}
}

// everything the tables know, in one session, so that each form is seen once.
func everything() []frame {
	s := `"sessionId":"s-000001"`
	var frames []frame
	id := 100
	call := func(method, params, value string) {
		id++
		frames = append(frames, toAgent("%s", request(id, method, params)), toEditor("%s", result(id, value)))
	}
	asks := func(method, params, value string) {
		id++
		frames = append(frames, toEditor("%s", request(id, method, params)), toAgent("%s", result(id, value)))
	}
	says := func(kind, members string) {
		frames = append(frames, toEditor("%s", updates("s-000001", kind, members)))
	}
	call("authenticate", `{"methodId":"key"}`, `{}`)
	call("session/new", `{"cwd":"/tmp/run/work","mcpServers":[{"name":"m","command":"/bin/m","args":[],"env":[]}]}`,
		`{"sessionId":"s-000001","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"big",`+
			`"options":[{"value":"big","name":"Big"}]}]}`)
	call("session/set_mode", `{`+s+`,"modeId":"plan"}`, `{}`)
	says("current_mode_update", `"currentModeId":"plan"`)
	call("session/set_config_option", `{`+s+`,"configId":"model","value":"small"}`, `{"configOptions":[]}`)
	says("config_option_update", `"configOptions":[{"id":"think","name":"Think","type":"boolean","currentValue":true,`+
		`"category":"thought_level"}]`)
	says("session_info_update", `"title":null,"updatedAt":"2026-11-20T09:39:14.591Z"`)
	says("plan", `"entries":[{"content":"Look","priority":"high","status":"completed"},{"content":"Leap",`+
		`"priority":"low","status":"pending"}]`)
	says("user_message_chunk", `"messageId":"m-1","content":{"type":"image","mimeType":"image/png","data":"aGVsbG8="}`)
	says("agent_thought_chunk", `"messageId":"m-2","content":{"type":"resource_link","name":"readme",`+
		`"uri":"file:///tmp/run/work/README.md","size":12}`)
	says("agent_message_chunk", `"content":{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain",`+
		`"text":"inside"}}`)
	says("agent_message_chunk", `"content":{"type":"hologram","depth":3}`)
	says("notice", `"severity":"warning","title":"Slow"`)
	says("tool_call", `"toolCallId":"tc","title":"Run it","kind":"fly","status":null,"content":[{"type":"terminal",`+
		`"terminalId":"t-9"}],"name":"bash","_meta":{"pid":4711,"durationMs":12,"at":3}`)
	asks("terminal/create", `{`+s+
		`,"command":"go","args":["test"],"cwd":"/tmp/run/work","env":[{"name":"A","value":"b"}]}`,
		`{"terminalId":"t-9"}`)
	asks("terminal/output", `{`+s+`,"terminalId":"t-9"}`,
		`{"output":"ok\n","truncated":false,"exitStatus":{"exitCode":0,"signal":null}}`)
	asks("terminal/wait_for_exit", `{`+s+`,"terminalId":"t-9"}`, `{"exitCode":0,"signal":null}`)
	asks("terminal/kill", `{`+s+`,"terminalId":"t-9"}`, `{}`)
	asks("terminal/release", `{`+s+`,"terminalId":"t-9"}`, `{}`)
	asks("fs/read_text_file", `{`+s+`,"path":"/home/me/notes.txt","line":2,"limit":10}`, `{"content":"some text"}`)
	asks("elicitation/create", `{`+s+
		`,"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}`,
		`{"action":"accept","content":{"a":1}}`)
	asks("session/request_permission",
		`{`+s+`,"toolCall":{"toolCallId":"tc","title":"Run","kind":"execute"},"options":[]}`,
		`{"outcome":{"outcome":"cancelled"}}`)
	asks("session/request_permission",
		`{`+s+`,"toolCall":{"toolCallId":"tc"},"options":[{"optionId":"a b","name":"Yes","kind":"sometimes!"}]}`,
		`{"outcome":{"outcome":"selected","optionId":"other"}}`)
	asks("_agent/ask", `{`+s+`,"b":[1,"two"],"a":{"y":null,"x":true}}`, `{"fine":true}`)
	frames = append(frames,
		toEditor("%s", notification("elicitation/complete", `{"elicitationId":"e1"}`)),
		toEditor("%s", notification("_agent/note", `[1]`)),
		toAgent("%s", request(900, "session/prompt",
			`{`+s+`,"prompt":[{"type":"text","text":"one"},{"type":"text","text":"two",`+
				`"annotations":{"priority":1}}]}`)),
		toAgent("%s", notification("session/cancel", `{`+s+`}`)),
		toAgent("%s", notification("$/cancel_request", `{"requestId":900}`)),
		toEditor(`{"jsonrpc":"2.0","id":900,"error":{"code":-32800,"message":"cancelled","data":{"why":"asked"}}}`),
		toEditor(`{"jsonrpc":"2.0","id":901,"result":{}}`),
		toEditor(`{"jsonrpc":"2.0","id":902,"method":"session/prompt","params":{},"extra":1}`),
		toEditor("[INFO] started\x1b[0m"),
		toEditor("%s", updates("s-000001", "agent_message_chunk",
			`"content":{"type":"text","text":"`+strings.Repeat("long ", 200)+`"}`)),
		toEditor(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,`+
			`"update":{"sessionUpdate":"plan"}}}`),
	)
	call("session/load", `{`+s+`,"cwd":"/tmp/run/work","mcpServers":[]}`, `null`)
	call("session/resume", `{`+s+`,"cwd":"/tmp/run/work"}`, `{"modes":null}`)
	call("session/list", `{"cwd":"/tmp/run/work","cursor":"c"}`,
		`{"sessions":[{"sessionId":"s-000001","cwd":"/tmp/run/work","updatedAt":"2026-11-20"}],"nextCursor":null}`)
	call("session/close", `{`+s+`}`, `{}`)
	call("session/delete", `{`+s+`}`, `{}`)
	call("logout", `{}`, `{}`)
	return frames
}

var _ = Describe("rendering", func() {
	places := golden.Options{Work: "/tmp/run/work", Home: "/home/me", Temp: "/tmp/run"}
	check := func(name, text string) {
		goldie.New(GinkgoTB(), goldie.WithTestNameForDir(false)).Assert(GinkgoTB(), name, []byte(text))
	}

	It("shows an edit that the user allows", func() { check("edit", render(edit(), places)) })

	It("shows directories, also without the slash before them", func() {
		shown := func(text string) string {
			return render([]frame{toEditor("%s", chunk("s", "agent_message_chunk", text))},
				golden.Options{Work: "/tmp/run/work", Temp: "/tmp/run/tmp", Root: "/tmp/run", Home: "/root"})
		}
		for text, want := range map[string]string{
			"/tmp/run/work/a /tmp/run/b /tmp/run/tmp": "$WORK/a $RUN/b $TMP",
			"tmp/run/work/a (tmp/run/b)":              "WORK/a (RUN/b)",
			"lib-tmp/run/work x/tmp/run/work":         "lib-tmp/run/work x/tmp/run/work",
			"tmp/run/workshop root/a":                 "RUN/workshop root/a",
		} {
			Expect(shown(text)).To(ContainSubstring(`"`+want+`"`), text)
		}
	})

	It("keeps every chunk and the order of arrival when exact", func() {
		o := places
		o.Exact = true
		check("edit-exact", render(edit(), o))
	})

	It("shows everything there is", func() { check("everything", render(everything(), places)) })

	It("shows each entry by itself", func() {
		t := transcriptOf(append(edit()[9:13], toEditor("noise")))
		t.Event(0, transcript.Process, transcript.Started, "", map[string]any{"pid": 12})
		t.Event(0, transcript.Process, transcript.StdinClosed, "", struct{}{})
		t.Event(0, transcript.Process, transcript.Exited, "", map[string]any{"code": 1})
		t.Event(0, transcript.Model, transcript.Gate, "s-1", map[string]any{"n": 1, "gate": "mid"})
		t.Event(0, transcript.Note, transcript.Noted, "", map[string]any{"text": "two\nlines"})
		t.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk,
			Raw: []byte("warning\x1b[31m\nmore\n")})
		t.Append(transcript.Entry{Source: transcript.Editor, Kind: transcript.Written, Ref: 1, Problem: "broken pipe"})
		var b strings.Builder
		for e := range t.All() {
			line := canonical.V1().Line(e)
			Expect(line).NotTo(ContainSubstring("\n"))
			b.WriteString(line + "\n")
		}
		check("lines", b.String())
	})

	It("shows what a process did after its start, a new process apart", func() {
		t := transcriptOf(edit()[:4])
		t.Event(0, transcript.Process, transcript.Signalled, "", map[string]any{"signal": "SIGKILL"})
		t.Event(0, transcript.Process, transcript.Exited, "", map[string]any{"signal": "SIGKILL"})
		t.AppendFrame(1, transcript.Editor, []byte(edit()[0].raw), 0)
		t.AppendFrame(0, transcript.Agent, []byte("late"), 0)
		lines := strings.Split(canonical.V1().Render(t.All(), places), "\n")
		Expect(lines[4]).To(Equal(`--> signal signal="SIGKILL"`))
		Expect(lines[5]).To(HavePrefix(`<-- malformed "late"`))
		Expect(lines[6]).To(Equal(`<-- exit signal="SIGKILL"`))
		Expect(lines[7]).To(Equal("== agent started again"))
	})

	It("shows any change of a field, an unknown one too", func() {
		for _, at := range []string{`"b":[1,"two"]`, `"name":"bash"`, `"depth":3`, `"x":true`, `"limit":10`,
			`"priority":1`, `"why":"asked"`, `"extra":1`, `"fine":true`, `"size":12`} {
			frames := everything()
			found := false
			for i := range frames {
				if strings.Contains(frames[i].raw, at) {
					frames[i].raw = strings.Replace(frames[i].raw, at, at[:strings.Index(at, ":")]+`:"changed"`, 1)
					found = true
				}
			}
			Expect(found).To(BeTrue(), at)
			Expect(render(frames, places)).NotTo(Equal(render(everything(), places)), at)
		}
	})

	It("tells which of several open prompts was answered", func() {
		ask := func(id int) frame {
			return toAgent("%s", request(id, "session/prompt", `{"sessionId":"s","prompt":[]}`))
		}
		done := func(id int) frame { return toEditor("%s", result(id, `{"stopReason":"end_turn"}`)) }
		Expect(render([]frame{ask(1), ask(2), done(2), done(1)}, places)).
			To(HaveSuffix("<-- prompt#2 end_turn\n<-- end_turn\n"))
		Expect(render([]frame{ask(1), ask(2), done(1), done(2)}, places)).
			To(HaveSuffix("<-- prompt#1 end_turn\n<-- end_turn\n"))
		Expect(render([]frame{ask(1), done(1), ask(2), done(2)}, places)).NotTo(ContainSubstring("prompt#"))
	})

	It("numbers the cursors an agent gives, not those it did not", func() {
		list := func(id int, cursor string) frame {
			return toAgent("%s", request(id, "session/list", `{"cursor":"`+cursor+`"}`))
		}
		page := func(id int, next string) frame {
			return toEditor("%s", result(id, `{"sessions":[],"nextCursor":"`+next+`"}`))
		}
		Expect(render([]frame{list(1, "bogus"), page(1, "abc"), list(2, "abc"), page(2, "xyz")}, places)).To(Equal(
			"--> session/list cursor=\"bogus\"\n<-- ok sessions=[] nextCursor=\"cursor#1\"\n" +
				"--> session/list cursor=\"cursor#1\"\n<-- ok sessions=[] nextCursor=\"cursor#2\"\n"))
	})

	It("names the request that is taken back as it names the request", func() {
		Expect(render([]frame{toAgent("%s", request(7, "a b", `{}`)),
			toAgent("%s", notification("$/cancel_request", `{"requestId":7}`))},
			golden.Options{})).To(Equal("--> \"a b\"\n--> $/cancel_request \"a b\"\n"))
	})

	It("shows members that are there twice", func() {
		Expect(render([]frame{toEditor(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
			`"update":{"sessionUpdate":"current_mode_update","currentModeId":"a","currentModeId":"b"}}}`)}, places)).
			To(Equal("<-- current_mode_update b +currentModeId=\"a\"\n"))
	})

	DescribeTable("masks what differs from run to run", func(text, want string) {
		o := places
		o.Replace = []golden.Replacement{{Pattern: regexp.MustCompile(`pid=\d+`), With: "pid=<pid>"}}
		Expect(render([]frame{toEditor("%s", chunk("s-000001", "agent_message_chunk", text))}, o)).
			To(Equal("<-- agent_message " + want + "\n"))
	},
		Entry("directories", "/tmp/run/work/a /tmp/run/b /tmp/run/works /home/me /home/men /x/tmp/run",
			`"$WORK/a $TMP/b $TMP/works $HOME /home/men /x/tmp/run"`),
		Entry("times", "2026-11-20T09:39:14Z, 2026-11-20 09:39:14.5+01:00, 2026-11-20", `"<time>, <time>, <date>"`),
		Entry("times in milliseconds", "call_1795167079610_0 17951670796101", `"call_<ms>_0 17951670796101"`),
		Entry("uuids, by first use", "6f1c2a30-0000-4000-8000-000000000001 6F1C2A30-0000-4000-8000-000000000001 "+
			"6f1c2a30-0000-4000-8000-000000000002", `"uuid#1 uuid#1 uuid#2"`),
		Entry("the session inside text", "see s-000001.", `"see sess#1."`),
		Entry("what the profile says", "pid=12", `"pid=<pid>"`),
		Entry("not versions in text", "go1.26.0", `"go1.26.0"`),
	)

	It("masks a directory in a URI too, where a blank is escaped", func() {
		text := chunk("s", "agent_message_chunk", "/tmp/a b/work/x file:///tmp/a%20b/work/x")
		Expect(render([]frame{toEditor("%s", text)}, golden.Options{Work: "/tmp/a b/work"})).
			To(Equal("<-- agent_message \"$WORK/x file://$WORK/x\"\n"))
	})

	It("hashes long text after masking it", func() {
		long := func(dir string) string {
			return render([]frame{toEditor("%s", chunk("s", "agent_message_chunk", strings.Repeat(dir+"/a ", 100)))},
				golden.Options{Work: dir})
		}
		Expect(long("/tmp/one")).To(Equal(long("/tmp/number-two")))
		Expect(long("/tmp/one")).To(MatchRegexp(`^<-- agent_message "(\$WORK/a ){25}…" 800 bytes ` +
			`sha256:[0-9a-f]{8}\n$`))
	})

	It("puts what a profile declares free at the end", func() {
		note := func(s string) frame { return toEditor("%s", notification("_x/note", `{"text":"`+s+`"}`)) }
		o := golden.Options{Unordered: []string{"_x/*", "session_info_update"}}
		message := toEditor("%s", chunk("s", "agent_message_chunk", "hello"))
		one := render([]frame{note("b"), message, note("a")}, o)
		Expect(one).To(Equal("<-- agent_message \"hello\"\n<-- _x/note text=\"a\"\n<-- _x/note text=\"b\"\n"))
		Expect(render([]frame{note("a"), note("b"), message}, o)).To(Equal(one))
	})

	It("leaves out what a profile says may come or not", func() {
		message := toEditor("%s", chunk("s", "agent_message_chunk", "hello"))
		info := toEditor("%s", updates("s", "session_info_update", `"title":"x"`))
		o := golden.Options{Omit: []string{"_x/*", "session_info_update"}}
		Expect(render([]frame{info, toEditor("%s", notification("_x/note", `{}`)), message}, o)).
			To(Equal(render([]frame{message}, golden.Options{})))
	})

	It("shows nothing of values that a profile says are left to chance", func() {
		usage := func(cost string) string {
			return render([]frame{toEditor("%s",
				updates("s", "usage_update", `"used":1,"size":2,"cost":`+cost+`,"_meta":{"a":{"quota":`+cost+`}}`))},
				golden.Options{Values: []string{"cost", "quota"}})
		}
		Expect(usage(`{"amount":1,"currency":"USD"}`)).
			To(Equal("<-- usage_update used=1 size=2 cost=<any> _meta={a: {quota: <any>}}\n"))
		Expect(usage(`[1,2]`)).To(Equal(usage(`"three"`)))
	})

	It("shows nothing of members that a profile says may be there or not", func() {
		usage := func(rest string) string {
			return render([]frame{toEditor("%s", updates("s", "usage_update", `"used":1,"size":2`+rest))},
				golden.Options{Without: []string{"cost", "trace"}})
		}
		Expect(usage(`,"cost":{"amount":1},"trace":1,"_meta":{"a":1,"trace":2}`)).
			To(Equal("<-- usage_update used=1 size=2 _meta={a: 1}\n"))
		Expect(usage(`,"_meta":{"trace":2,"a":1}`)).To(Equal(usage(`,"trace":null,"_meta":{"a":1}`)))
	})

	Describe("with the updates of a tool call as one line", func() {
		call := func(id, rest string) frame {
			return toEditor("%s", updates("s", "tool_call", `"toolCallId":"`+id+`"`+rest))
		}
		update := func(id, rest string) frame {
			return toEditor("%s", updates("s", "tool_call_update", `"toolCallId":"`+id+`"`+rest))
		}
		message := toEditor("%s", chunk("s", "agent_message_chunk", "hello"))
		merged := func(frames ...frame) string { return render(frames, golden.Options{MergeCalls: true}) }

		It("shows what they come to, however it is cut up", func() {
			one := merged(call("c", `,"title":"Read a","kind":"read","status":"completed","rawInput":{"a":1},`+
				`"_meta":{"x":{"n":"t","r":1}}`), message)
			Expect(one).To(Equal("<-- tool_call call#1 read \"Read a\" completed rawInput={a: 1} _meta={x: {n: " +
				"\"t\", r: 1}}\n<-- agent_message \"hello\"\n"))
			Expect(merged(call("c", `,"title":"…","kind":"read","status":"pending","rawInput":{},`+
				`"_meta":{"x":{"n":"t"}}`), message,
				update("c", `,"title":"Read a","rawInput":{"a":1}`), update("c", `,"title":null,"_meta":{"x":{"r":1}}`),
				update("c", `,"status":"completed"`))).To(Equal(one))
		})
		It("keeps calls apart, and what ends differently", func() {
			lines := merged(call("c", `,"title":"1"`), call("d", `,"title":"2"`), update("d", `,"status":"failed"`),
				update("c", `,"status":"completed"`))
			Expect(lines).To(Equal("<-- tool_call call#1 \"1\" completed\n<-- tool_call call#2 \"2\" failed\n"))
		})
		It("shows an update of a call that nothing has told of", func() {
			Expect(merged(update("c", `,"status":"failed"`), update("c", `,"title":"x"`))).
				To(Equal("<-- tool_call_update call#1 \"x\" failed\n"))
		})
		It("does not merge what makes no sense", func() {
			Expect(strings.Count(merged(call("c", `,"_meta":7`), update("c", `,"_meta":[]`),
				toEditor("%s", notification("session/update", `{"sessionId":"s","update":7}`))), "\n")).To(Equal(2))
		})
	})

	It("connects no state with the prompt of a process that is gone", func() {
		running := toEditor("%s", updates("s", "state_update", `"state":"running"`))
		running.conn = 1
		log := transcriptOf([]frame{
			toAgent("%s", request(1, "session/resume", `{"sessionId":"s","cwd":"/w"}`)),
			toEditor("%s", result(1, `{}`)),
			toAgent("%s", request(2, "session/prompt", `{"sessionId":"s","prompt":[]}`)),
			toEditor("%s", result(2, `{"messageId":"m"}`)),
			toEditor("%s", chunk("s", "user_message_chunk", "Go.")), running,
		})
		Expect(canonical.Whole(true, log.All(), golden.Options{})).To(ContainSubstring("running"))
	})

	It("renders a long run in time that grows with its length", func() {
		const n = 20000
		var frames []frame
		for i := range n {
			frames = append(frames, toEditor("%s",
				updates("s", "tool_call_update", fmt.Sprintf(`"toolCallId":"c%d","title":"%d"`, i%7, i))))
		}
		Expect(strings.Count(render(frames, golden.Options{}), "\n")).To(Equal(n))
	})
})
