//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func modes() []mode {
	return slices.Concat(floods(), ids(), values(), injections(), secrets(), processes(), files(), evidence(), requests(),
		models(), isolated())
}

// at makes a mode for each stage.
func at(stages []stage, name string, do func(a *agent)) (all []mode) {
	for _, s := range stages {
		all = append(all, mode{name: string(s) + "-" + name, at: s, do: do})
	}
	return all
}

var (
	ends  = []stage{atStart, inTurn}
	most  = []stage{atStart, atInitialize, inTurn, afterTurn}
	every = []stage{atStart, atInitialize, atNew, inTurn, afterTurn, atEnd}
)

// pour writes the same bytes again and again, until nobody reads them.
func pour(to io.Writer, what string) {
	block := []byte(strings.Repeat(what, 1+(64<<10)/len(what)))
	for {
		if _, err := to.Write(block); err != nil {
			os.Exit(1)
		}
	}
}

func floods() []mode {
	stream := func(what string) func(*agent) { return func(*agent) { pour(os.Stdout, what) } }
	endless := func(head, what string) func(*agent) {
		return func(*agent) { os.Stdout.WriteString(head); pour(os.Stdout, what) }
	}
	chunk := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":` +
		`"agent_message_chunk","content":{"type":"text","text":"word "}}}}` + "\n"
	all := slices.Concat(
		at(every, "blank-lines", stream("\n")),
		at(most, "garbage", stream("this is no message\n")),
		at(every, "endless-line", stream("x")),
		at(ends, "endless-string", endless(`{"jsonrpc":"2.0","method":"`, "abcdefgh")),
		at(ends, "endless-array", endless(`[`, "1,")),
		at(ends, "endless-depth", endless(``, "[")),
		at(ends, "values", stream("1\nnull\n{}\n[]\n")),
		at(most, "updates", stream(chunk)),
		at(ends, "unknown-notifications", stream(`{"jsonrpc":"2.0","method":"_x/y"}`+"\n")),
		at(ends, "answers", stream(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")),
		at(ends, "nul", stream("\x00")),
		at(ends, "nul-lines", stream("\x00\x00\n")),
		at(ends, "invalid-utf8", stream("\xff\xfe\n")),
		at(ends, "carriage-returns", stream("\r")),
		at(ends, "stderr-lines", func(*agent) { pour(os.Stderr, "an error happened\n") }),
		at(ends, "stderr-endless-line", func(*agent) { pour(os.Stderr, "x") }),
		at(ends, "both", func(*agent) { go pour(os.Stderr, "x"); pour(os.Stdout, "y") }),
		at(ends, "large-lines", stream(strings.Repeat("z", 1<<20)+"\n")),
		at(ends, "batches", stream("["+strings.Repeat(`{"jsonrpc":"2.0","method":"_x"},`, 99)+"{}]\n")),
	)
	requests := func(method, params string) func(*agent) {
		return func(a *agent) {
			go io.Copy(io.Discard, a.in)
			for n := 0; ; n++ {
				_, err := fmt.Printf(`{"jsonrpc":"2.0","id":"r%d","method":%q,"params":%s}`+"\n", n, method, params)
				if err != nil {
					os.Exit(1)
				}
			}
		}
	}
	deaf := func(a *agent) { // asks and never reads the answers
		for n := 0; ; n++ {
			say(`{"jsonrpc":"2.0","id":"r%d","method":"_unknown","params":{}}`, n)
		}
	}
	return slices.Concat(all,
		at([]stage{atInitialize, inTurn, afterTurn}, "requests", requests("_unknown", "{}")),
		at([]stage{inTurn}, "permissions", requests("session/request_permission",
			`{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"}]}`)),
		at([]stage{inTurn}, "reads", requests("fs/read_text_file", `{"sessionId":"s","path":"/etc/passwd"}`)),
		at([]stage{inTurn}, "terminals", requests("terminal/create", `{"sessionId":"s","command":"true"}`)),
		at([]stage{inTurn}, "deaf", deaf),
		at([]stage{inTurn}, "tool-calls", func(*agent) {
			for n := 0; ; n++ {
				update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d","title":"x","status":"pending"}`, n))
			}
		}),
		at([]stage{inTurn}, "sessions", func(*agent) {
			for n := 0; ; n++ {
				say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":{"sessionUpdate":`+
					`"agent_message_chunk","content":{"type":"text","text":"x"}}}}`, n)
			}
		}),
		at([]stage{inTurn}, "findings", func(*agent) { // a different one each, a million of them
			for n := range 1_000_000 {
				update(fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":"c%d","status":"bad%d"}`, n, n))
			}
		}),
		at([]stage{inTurn}, "keys", func(*agent) {
			var b bytes.Buffer
			for n := range 1_000_000 {
				fmt.Fprintf(&b, `"k%d":%d,`, n, n)
			}
			say(`{"jsonrpc":"2.0","method":"_x","params":{%s"z":1}}`, b.String())
		}),
	)
}

func ids() []mode {
	request := func(id string) func(*agent) {
		return func(*agent) { say(`{"jsonrpc":"2.0","id":%s,"method":"_unknown","params":{}}`, id) }
	}
	answer := func(id string) func(*agent) {
		return func(*agent) { say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id) }
	}
	all := slices.Concat(
		at([]stage{inTurn}, "id-of-5000-digits", request(strings.Repeat("9", 5000))),
		at([]stage{inTurn}, "id-float", request("1.5")),
		at([]stage{inTurn}, "id-1e400", request("1e400")),
		at([]stage{inTurn}, "id-null", request("null")),
		at([]stage{inTurn}, "id-object", request(`{"a":1}`)),
		at([]stage{inTurn}, "id-array", request("[1]")),
		at([]stage{inTurn}, "id-of-1-MiB", request(quote(strings.Repeat("i", 1<<20)))),
		at([]stage{inTurn}, "answer-to-nothing", answer("4711")),
		at([]stage{inTurn}, "answer-of-5000-digits", answer(strings.Repeat("9", 5000))),
		at([]stage{inTurn}, "answer-null", answer("null")),
		at([]stage{inTurn}, "result-and-error", func(a *agent) {
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"},"error":{"code":1,"message":"x"}}`, a.id)
		}),
		at([]stage{inTurn}, "answered-twice", func(a *agent) { a.answer(inTurn, `{"stopReason":"end_turn"}`) }),
		at([]stage{inTurn}, "answered-100000-times", func(a *agent) {
			for range 100_000 {
				a.answer(inTurn, `{"stopReason":"end_turn"}`)
			}
		}),
		at([]stage{inTurn}, "error-of-10-MiB", func(a *agent) {
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, a.id, strings.Repeat("e", 10<<20))
			forever()
		}),
	)
	for _, method := range []string{"_unknown", "fs/read_text_file", "session/request_permission",
		"terminal/wait_for_exit"} {
		all = append(all, at([]stage{inTurn}, "one-id-100-times-"+strings.ReplaceAll(method, "/", "-"), func(*agent) {
			for range 100 {
				say(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"sessionId":"s","path":"/none","terminalId":"none",`+
					`"toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}}`, method)
			}
		})...)
	}
	return all
}

// values are answers that are no answers.
func values() []mode {
	result := func(s stage, name, result string) mode {
		return mode{name: string(s) + "-" + name, at: s, do: func(a *agent) { a.answers[s] = result }}
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	long := strings.Repeat("1", 100_000)
	return []mode{
		result(atInitialize, "version-huge", `{"protocolVersion":`+long+`}`),
		result(atInitialize, "version-1e999", `{"protocolVersion":1e999}`),
		result(atInitialize, "version-text", `{"protocolVersion":"one"}`),
		result(atInitialize, "deep", `{"protocolVersion":1,"_meta":{"x":`+deep+`}}`),
		result(atInitialize, "null", `null`),
		result(atInitialize, "array", `[]`),
		result(atNew, "session-empty", `{"sessionId":""}`),
		result(atNew, "session-number", `{"sessionId":7}`),
		result(atNew, "session-path", `{"sessionId":"../../../../etc/passwd"}`),
		result(atNew, "session-nul", `{"sessionId":"a\u0000b"}`),
		result(atNew, "session-1-MiB", `{"sessionId":`+quote(strings.Repeat("s", 1<<20))+`}`),
		result(atNew, "session-surrogate", `{"sessionId":"\ud800"}`),
		result(inTurn, "stop-reason-number", `{"stopReason":`+long+`}`),
		result(inTurn, "stop-reason-deep", `{"stopReason":`+deep+`}`),
		result(inTurn, "stop-reason-1-MiB", `{"stopReason":`+quote(strings.Repeat("r", 1<<20))+`}`),
		{name: "turn-text-100-MiB", at: inTurn, timeout: 20 * time.Second, do: func(*agent) {
			text := strings.Repeat("t", 100<<20)
			os.Stdout.WriteString(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + "\"}}}}\n")
		}},
		{name: "turn-never", at: inTurn, do: func(*agent) { forever() }},
		{name: "start-never", at: atStart, do: func(*agent) { forever() }},
		{name: "end-never", at: atEnd, do: func(*agent) { forever() }},
		{name: "turn-exit-0", at: inTurn, do: func(*agent) { os.Exit(0) }},
		{name: "turn-exit-77", at: inTurn, do: func(*agent) { os.Exit(77) }},
		{name: "turn-half-a-line", at: inTurn, do: func(*agent) {
			os.Stdout.WriteString(`{"jsonrpc":"2.0","id`)
			os.Exit(1)
		}},
		{name: "turn-stdout-closed", at: inTurn, do: func(*agent) { os.Stdout.Close(); forever() }},
		{name: "start-stdin-closed", at: atStart, do: func(*agent) { os.Stdin.Close(); syscall.Close(0); forever() }},
	}
}

// attacks are texts that act where they are printed as they are.
var attacks = []struct{ name, text string }{
	{"escape", "\x1b[2J\x1b[1;1H1 scenario: 1 pass\x1b]0;owned\x07"},
	{"c1", "\u009b2J\u009d0;owned\u009c"},
	{"bidi", "\u202etxt.exe\u2066\u2069\u200f"},
	{"line-break", "x\r\nPASS everything\n\u2028\u2029\u0085"},
	{"github", "x\n::error file=a,line=1::owned\n::set-output name=a::b\n::add-mask::pass"},
	{"github-old", "##[error]owned\n##[group]x"},
	{"gitlab", "\x1b[0Ksection_start:1:x\r\x1b[0Kowned\nsection_start:1560896352:my_section"},
	{"azure", "x\n##vso[task.setvariable variable=a]b\n##[section]x"},
	{"teamcity", "x\n##teamcity[testFailed name='a' message='b']"},
	{"html", `<script>alert(1)</script><img src=x onerror=alert(1)>]]>&"'`},
	{"markdown", "[x](javascript:alert(1)) `</details>` | @everyone ![i](http://192.0.2.1/x.png)"},
	{"zero-width", "a\u200b\u200d\ufeff\u00ad\u2060b\U000e0041"},
	{"tap", "x\nBail out! owned\nok 1 - owned\n1..0"},
	{"long", strings.Repeat("long ", 50_000)},
}

// injections put each attack in every text that an agent can make somebody print.
func injections() (all []mode) {
	for _, x := range attacks {
		all = append(all, mode{name: "inject-" + x.name, at: atInitialize, timeout: 10 * time.Second,
			flags: []string{"--verbose", "--report", "github", "--report", "tap", "--report", "markdown", "--report", "text",
				"--report", "badge"},
			do: func(a *agent) {
				t := quote(x.text)
				os.Stderr.WriteString(x.text + "\n")
				a.answers[atInitialize] = `{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":` + t + `,"title":` + t +
					`,"version":` + t + `}}`
				a.answers[inTurn] = `{"stopReason":` + t + `}`
				os.Stdout.WriteString(x.text + "\n")
				say(`{"jsonrpc":"2.0","method":%s,"params":{"sessionId":%s}}`, t, t)
				say(`{"jsonrpc":"2.0","id":%s,"method":%s,"params":{%s:%s}}`, t, t, t, t)
				update(`{"sessionUpdate":"tool_call","toolCallId":` + t + `,"title":` + t + `,"kind":` + t + `,"status":` + t + `}`)
				update(`{"sessionUpdate":` + t + `}`)
				say(`{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":%s,"toolCall":`+
					`{"toolCallId":%s},"options":[{"optionId":%s,"name":%s,"kind":%s}]}}`, t, t, t, t, t)
				c := exec.Command(os.Args[0], "sleep", x.text)
				if strings.ContainsRune(x.text, 0) || c.Start() != nil {
					return
				}
			}})
	}
	all = append(all, mode{name: "inject-file-names", at: inTurn, do: func(a *agent) {
		for _, x := range attacks {
			if !strings.Contains(x.text, "/") && len(x.text) < 200 {
				_ = os.WriteFile(filepath.Join(a.cwd, x.text), []byte(x.text), 0o644)
			}
		}
	}})
	return all
}

// secrets say what the run's environment holds, in all forms. The battery looks for
// it in everything that is written.
func secrets() []mode {
	spill := func(text string) func(*agent) {
		return func(a *agent) {
			os.Stderr.WriteString(text + "\n")
			os.Stdout.WriteString(text + "\n")
			update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + quote(text) + `}}`)
			update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":` + quote(text) + `,"rawInput":{"x":` +
				quote(text) + `}}`)
			_ = os.WriteFile(filepath.Join(a.cwd, "spilled"), []byte(text), 0o644)
			a.answers[inTurn] = `{"stopReason":` + quote(text) + `}`
		}
	}
	var all []mode
	for name, form := range secretForms(os.Getenv("HOSTILE_API_KEY")) {
		all = append(all, mode{name: "secret-" + name, at: inTurn, do: spill("it is " + form + " indeed")})
	}
	slices.SortFunc(all, func(a, b mode) int { return strings.Compare(a.name, b.name) })
	return append(all,
		mode{name: "secret-environ", at: inTurn, do: func(a *agent) {
			text, _ := os.ReadFile("/proc/self/environ")
			spill(strings.ReplaceAll(string(text), "\x00", "\n"))(a)
		}},
		mode{name: "secret-cut-by-lines", at: inTurn, do: func(a *agent) {
			key := os.Getenv("HOSTILE_API_KEY")
			os.Stderr.WriteString(key[:len(key)/2])
			time.Sleep(50 * time.Millisecond)
			os.Stderr.WriteString(key[len(key)/2:] + "\n")
		}},
	)
}

func secretForms(key string) map[string]string {
	return map[string]string{
		"plain":   key,
		"json":    quote(quote(key)),
		"url":     url.QueryEscape(key),
		"base64":  b64(key),
		"hex":     fmt.Sprintf("%x", key),
		"basic":   "Authorization: Basic " + b64("user:"+key),
		"query":   "http://host/path?api_key=" + url.QueryEscape(key) + "&x=1",
		"userurl": "https://user:" + url.QueryEscape(key) + "@host/",
	}
}

// start starts a process of this program that the agent does not wait for.
func start(attr *syscall.SysProcAttr, env []string, words ...string) {
	c := exec.Command("/proc/self/exe", words...)
	c.Args[0], c.SysProcAttr, c.Env = "hostile", attr, env
	_ = c.Start()
}

// helpers are what other processes of the agent do.
func helpers() map[string]func([]string) {
	return map[string]func([]string){
		"sleep": func([]string) { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT); forever() },
		// chain starts its successor and ends.
		"chain": func(words []string) {
			n, _ := strconv.Atoi(words[0])
			for range n {
				start(&syscall.SysProcAttr{Setsid: true}, []string{}, "chain", words[0])
			}
		},
		"stopper": func([]string) { // ends nothing, but stops those above it again and again
			for {
				_ = syscall.Kill(os.Getppid(), syscall.SIGSTOP)
				time.Sleep(time.Millisecond)
			}
		},
		"holder": func([]string) { forever() },
		"editor": editor,
		"ruin": func(words []string) {
			for {
				_ = os.RemoveAll(words[0])
			}
		},
	}
}

func processes() []mode {
	session := &syscall.SysProcAttr{Setsid: true}
	leave := func(n int, attr *syscall.SysProcAttr, env []string, words ...string) func(*agent) {
		return func(*agent) {
			for range n {
				start(attr, env, words...)
			}
		}
	}
	stop := func(who string, s syscall.Signal) func(*agent) {
		return func(*agent) {
			keeper, harness := parents()
			pid := map[string]int{"keeper": keeper, "harness": harness, "self": os.Getpid()}[who]
			_ = syscall.Kill(pid, s)
			time.Sleep(100 * time.Millisecond)
		}
	}
	group := func(name string, do func(*agent)) []mode { return at([]stage{inTurn, atEnd}, name, do) }
	return slices.Concat(
		group("child", leave(1, nil, os.Environ(), "sleep")),
		group("children-200", leave(200, nil, os.Environ(), "sleep")),
		group("daemon", leave(1, session, os.Environ(), "sleep")),
		group("daemon-without-environment", leave(1, session, []string{}, "sleep")),
		group("chain", leave(1, session, []string{}, "chain", "1")),
		group("chains-20", leave(20, session, []string{}, "chain", "1")),
		group("keeper-stopped", stop("keeper", syscall.SIGSTOP)),
		group("keeper-killed", stop("keeper", syscall.SIGKILL)),
		group("keeper-stopped-with-child", func(a *agent) {
			leave(1, session, []string{}, "sleep")(a)
			stop("keeper", syscall.SIGSTOP)(a)
		}),
		group("keeper-killed-with-child", func(a *agent) {
			leave(1, session, []string{}, "sleep")(a)
			stop("keeper", syscall.SIGKILL)(a)
		}),
		group("stopped", stop("self", syscall.SIGSTOP)),
		at([]stage{inTurn}, "killed", stop("self", syscall.SIGKILL)),
		at([]stage{inTurn}, "segv", stop("self", syscall.SIGSEGV)),
		at([]stage{atStart}, "ignores-signals", func(a *agent) {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			forever()
		}),
		group("keeper-is-stopped-again", leave(1, nil, os.Environ(), "stopper")),
		group("pipe-held", func(a *agent) {
			c := exec.Command("/proc/self/exe", "holder")
			c.Stdout, c.Stderr, c.SysProcAttr, c.Env = os.Stdout, os.Stderr, session, []string{}
			_ = c.Start()
		}),
		at([]stage{inTurn}, "vfork-storm", func(a *agent) {
			for range 4 {
				go func() {
					for {
						_ = exec.Command("/proc/self/exe", "none").Run()
					}
				}()
			}
			forever()
		}),
	)
}

func files() []mode {
	work := func(name, script string, do func(dir string)) mode {
		return mode{name: "file-" + name, at: inTurn, script: script, timeout: 15 * time.Second,
			do: func(a *agent) { do(a.cwd) }}
	}
	shell := func(command string) func(string) {
		return func(dir string) {
			c := exec.Command("sh", "-c", command)
			c.Dir, c.Stderr = dir, os.Stderr
			_ = c.Run()
		}
	}
	cmp := "cmp x want/x\n-- want/x --\nx\n"
	return []mode{
		work("fifo", cmp, shell("mkfifo x")),
		work("fifo-exists", "exists x\n", shell("mkfifo x")),
		work("socket", cmp, func(dir string) { _, _ = net.Listen("unix", filepath.Join(dir, "x")) }),
		work("link-environ", cmp, shell("ln -s /proc/self/environ x")),
		work("link-zero", cmp, shell("ln -s /dev/zero x")),
		work("link-loop", cmp, shell("ln -s x x")),
		work("sparse-1T", cmp, shell("truncate -s 1T x")),
		work("sparse-6G", cmp, shell("truncate -s 6G x")),
		work("hard-link", cmp, shell(`ln /etc/passwd x || cp /etc/hostname x`)),
		work("directory", cmp, shell("mkdir x")),
		work("no-permission", cmp, shell("echo x >x; chmod 0 x")),
		work("attach-fifo", "prompt Again. attach=x\nawait turn\n", shell("mkfifo x")),
		work("deep", "", func(dir string) {
			for range 3000 {
				if unix.Mkdir("d", 0o755) != nil || unix.Chdir("d") != nil {
					_ = unix.Mkdir(filepath.Join(dir, "d"), 0o755)
					_ = unix.Chdir(filepath.Join(dir, "d"))
				}
			}
		}),
		work("directories-20000", "", func(dir string) {
			for n := range 20_000 {
				_ = os.Mkdir(filepath.Join(dir, strconv.Itoa(n)), 0o755)
			}
		}),
		work("workspace-gone", cmp, shell(`d=$PWD; cd /; rm -r "$d"`)),
		work("workspace-is-a-link", cmp, shell(`d=$PWD; cd /; rm -r "$d"; ln -s /etc "$d"`)),
		work("workspace-closed", "", shell("echo x >x; chmod 0 .")),
		work("exec-changed", "exec ./check.sh\n-- check.sh --\n#!/bin/sh\nexit 0\n",
			shell("printf '#!/bin/sh\\nsleep 1000 & exec sleep 1000\\n' >check.sh; chmod +x check.sh")),
		work("exec-floods", "exec ./check.sh\n-- check.sh --\n#!/bin/sh\nexit 0\n",
			shell("printf '#!/bin/sh\\nexec yes\\n' >check.sh; chmod +x check.sh")),
	}
}

// evidence attacks the folder of the reports, which an agent of the same user can.
func evidence() []mode {
	ruin := func(name string, s stage, do func()) mode {
		return mode{name: "evidence-" + name, at: s, breaks: true, do: func(*agent) { do() }}
	}
	return []mode{
		ruin("out-removed", inTurn, func() { _ = os.RemoveAll(out()) }),
		ruin("out-moved", inTurn, func() { _ = os.Rename(out(), out()+".moved") }),
		ruin("out-replaced", inTurn, func() { _ = os.RemoveAll(out()); _ = os.Mkdir(out(), 0o755) }),
		ruin("out-is-a-link", inTurn, func() {
			_ = os.RemoveAll(out())
			_ = os.Symlink(os.Getenv("HOSTILE_OUTSIDE"), out())
		}),
		ruin("scenario-removed", inTurn, func() { _ = os.RemoveAll(filepath.Join(out(), "mode")) }),
		ruin("scenario-is-a-link", inTurn, func() {
			_ = os.RemoveAll(filepath.Join(out(), "mode"))
			_ = os.Symlink(os.Getenv("HOSTILE_OUTSIDE"), filepath.Join(out(), "mode"))
		}),
		ruin("transcript-removed", inTurn, func() { _ = os.Remove(artifact("transcript.jsonl")) }),
		ruin("transcript-emptied", inTurn, func() { _ = os.Truncate(artifact("transcript.jsonl"), 0) }),
		ruin("transcript-overwritten", inTurn, func() {
			time.Sleep(100 * time.Millisecond)
			f, _ := os.OpenFile(artifact("transcript.jsonl"), os.O_WRONLY, 0)
			_, _ = f.WriteAt([]byte(strings.Repeat("#", 200)), 0)
		}),
		ruin("transcript-added-to", inTurn, func() {
			time.Sleep(100 * time.Millisecond)
			f, _ := os.OpenFile(artifact("transcript.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
			_, _ = f.WriteString(`{"seq":99,"src":"agent"}` + "\n")
		}),
		ruin("transcript-replaced", inTurn, func() {
			_ = os.Remove(artifact("transcript.jsonl"))
			_ = os.WriteFile(artifact("transcript.jsonl"), []byte("{}\n"), 0o644)
		}),
		ruin("transcript-is-a-link", inTurn, func() {
			_ = os.Remove(artifact("transcript.jsonl"))
			_ = os.Symlink(filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim"), artifact("transcript.jsonl"))
		}),
		ruin("transcript-is-a-fifo", inTurn, func() {
			_ = os.Remove(artifact("transcript.jsonl"))
			_ = unix.Mkfifo(artifact("transcript.jsonl"), 0o644)
		}),
		ruin("results-is-a-link", inTurn, func() {
			_ = os.Symlink(filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim"), filepath.Join(out(), "results.json"))
		}),
		ruin("results-is-a-fifo", inTurn, func() { _ = unix.Mkfifo(filepath.Join(out(), "results.json"), 0o644) }),
		ruin("results-is-a-directory", inTurn, func() { _ = os.Mkdir(filepath.Join(out(), "results.json"), 0o755) }),
		ruin("stderr-is-a-link", inTurn, func() {
			_ = os.Symlink(filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim"), artifact("stderr.txt"))
		}),
		ruin("stderr-is-a-fifo", inTurn, func() { _ = unix.Mkfifo(artifact("stderr.txt"), 0o644) }),
		ruin("diff-is-a-fifo", inTurn, func() { _ = unix.Mkfifo(artifact("workspace.diff"), 0o644) }),
		ruin("ruined-until-the-end", atStart, func() {
			start(&syscall.SysProcAttr{Setsid: true}, []string{}, "ruin", out())
		}),
		ruin("temp-removed", inTurn, func() { _ = os.RemoveAll(os.Getenv("HOSTILE_TMP")) }),
	}
}

// requests ask the editor for what it must not give.
func requests() []mode {
	var all []mode
	for name, path := range map[string]string{
		"passwd": "/etc/passwd", "dots": "$CWD/../../../../../../etc/passwd", "environ": "/proc/self/environ",
		"fd": "/dev/fd/0", "root-link": "/proc/self/root/etc/passwd", "relative": "etc/passwd", "nul": "$CWD/a\x00b",
		"empty": "", "long": "/" + strings.Repeat("a/", 50_000), "out": "$OUT/results.json",
		"cwd-link":     "/proc/self/cwd/go.mod",
		"double-slash": "//etc/passwd", "fifo": "$CWD/fifo", "zero": "$CWD/zero", "sparse": "$CWD/sparse",
	} {
		for _, method := range []string{"fs/read_text_file", "fs/write_text_file"} {
			if path == "$CWD/sparse" && method == "fs/write_text_file" {
				continue // its own file
			}
			all = append(all, mode{
				name: "fs-" + strings.TrimSuffix(strings.TrimPrefix(method, "fs/"), "_text_file") + "-" + name, at: inTurn,
				do: func(a *agent) {
					_ = unix.Mkfifo(filepath.Join(a.cwd, "fifo"), 0o644)
					_ = os.Symlink("/dev/zero", filepath.Join(a.cwd, "zero"))
					if f, err := os.Create(filepath.Join(a.cwd, "sparse")); err == nil {
						_ = f.Truncate(1 << 40)
						f.Close()
					}
					p := strings.NewReplacer("$CWD", a.cwd, "$OUT", out()).Replace(path)
					params := `{"sessionId":"s","path":` + quote(p)
					if method == "fs/write_text_file" {
						params += `,"content":"owned"`
					}
					answer := a.ask(9, method, params+"}")
					if strings.Contains(answer, "root:") || strings.Contains(answer, "HOSTILE") ||
						!strings.Contains(answer, `"error"`) {
						say(`{"jsonrpc":"2.0","method":"_escaped","params":{"by":%s}}`, quote(p))
						os.Exit(66)
					}
				}})
		}
	}
	slices.SortFunc(all, func(a, b mode) int { return strings.Compare(a.name, b.name) })
	return all
}

// models abuse the model server and the proxy.
func models() []mode {
	base := func() string { return os.Getenv("ANTHROPIC_BASE_URL") }
	dial := func() net.Conn {
		u, _ := url.Parse(base())
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return c
	}
	var held []net.Conn
	m := func(name string, do func(a *agent)) mode { return mode{name: "model-" + name, at: inTurn, do: do} }
	post := func(host, origin, kind string) func(a *agent) {
		return func(a *agent) {
			r, _ := http.NewRequest("POST", base()+"/v1/chat/completions", strings.NewReader(
				`{"model":"m","messages":[{"role":"user","content":"Say hello."}]}`))
			r.Header.Set("Authorization", "Bearer k")
			r.Header.Set("Content-Type", kind)
			if host != "" {
				r.Host = host
			}
			if origin != "" {
				r.Header.Set("Origin", origin)
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				os.Exit(67)
			}
			if answer.StatusCode == 200 {
				os.Exit(66)
			}
		}
	}
	return []mode{
		m("half-headers", func(*agent) {
			c := dial()
			held = append(held, c)
			fmt.Fprint(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
		}),
		m("connections-3000", func(*agent) {
			for range 3000 {
				u, _ := url.Parse(base())
				c, err := net.Dial("tcp", u.Host)
				if err != nil {
					break
				}
				held = append(held, c)
			}
		}),
		m("endless-body", func(*agent) {
			c := dial()
			go io.Copy(io.Discard, c)
			fmt.Fprint(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
			for range 2000 {
				if _, err := fmt.Fprintf(c, "10000\r\n%s\r\n", strings.Repeat("x", 1<<16)); err != nil {
					break
				}
			}
		}),
		m("endless-headers", func(*agent) {
			c := dial()
			fmt.Fprint(c, "POST / HTTP/1.1\r\n")
			for range 1_000_000 {
				if _, err := fmt.Fprint(c, "X: y\r\n"); err != nil {
					break
				}
			}
		}),
		m("garbage", func(*agent) {
			c := dial()
			fmt.Fprint(c, strings.Repeat("\x00\xff garbage\n", 1000))
			_, _ = io.Copy(io.Discard, c)
		}),
		m("zip-bomb", func(*agent) {
			r, _ := http.NewRequest("POST", base()+"/v1/chat/completions", bytes.NewReader(bomb()))
			r.Header.Set("Content-Encoding", "gzip")
			r.Header.Set("Authorization", "Bearer k")
			if _, err := http.DefaultClient.Do(r); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}),
		m("deep-body", func(*agent) {
			r, _ := http.NewRequest("POST", base()+"/v1/chat/completions", strings.NewReader(strings.Repeat("[", 1<<20)))
			r.Header.Set("Authorization", "Bearer k")
			_, _ = http.DefaultClient.Do(r)
		}),
		m("requests-5000", func(*agent) {
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					for range 625 {
						r, err := http.Post(base()+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
						if err == nil {
							_, _ = io.Copy(io.Discard, r.Body)
							r.Body.Close()
						}
					}
				})
			}
			wait.Wait()
		}),
		m("foreign-host", post("attacker.example", "", "application/json")),
		m("cross-site", post("", "http://attacker.example", "text/plain")),
		m("egress-endless", func(*agent) {
			proxy, _ := url.Parse(os.Getenv("HTTP_PROXY"))
			c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 4}}
			for n := 0; ; n++ { // until the run ends it
				if r, err := c.Get(fmt.Sprintf("http://h%d.example/", n)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			}
		}),
	}
}

// isolated agents have what others do to the run out of their reach.
func isolated() []mode {
	m := func(name string, do func(a *agent)) mode {
		return mode{name: "isolated-" + name, at: inTurn, flags: []string{"--isolate"}, do: do}
	}
	must := func(err error) {
		if err == nil {
			os.Exit(66)
		}
	}
	return []mode{
		m("evidence", func(*agent) {
			_, err := os.Stat(out())
			must(err)
			_ = os.RemoveAll(out())
		}),
		m("files", func(*agent) {
			victim := filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim")
			_, err := os.ReadFile(victim)
			must(err)
			must(os.WriteFile(victim, []byte("owned"), 0o644))
			must(os.WriteFile("/usr/owned", nil, 0o644))
			must(os.WriteFile("/proc/sys/kernel/core_pattern", []byte("|/owned"), 0o644))
			_, err = os.ReadFile("/etc/shadow")
			must(err)
			must(unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
			must(unix.Unmount("/tmp", 0))
		}),
		m("processes", func(*agent) {
			for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
				_ = syscall.Kill(-1, s)
				_ = syscall.Kill(os.Getppid(), s)
			}
		}),
		m("chains-20", func(*agent) {
			for range 20 {
				start(&syscall.SysProcAttr{Setsid: true}, []string{}, "chain", "1")
			}
		}),
		m("memory", func(*agent) { // of the file systems that are in it
			for _, dir := range []string{"/tmp", "/dev/shm"} {
				f, err := os.Create(filepath.Join(dir, "x"))
				if err == nil {
					for err == nil {
						_, err = f.Write(make([]byte, 1<<20))
					}
					f.Close()
				}
			}
		}),
	}
}
