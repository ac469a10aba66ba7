//go:build linux

package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// attacks are texts that do harm if a program prints them without escaping.
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

// injections returns one agent for each attack. The agent puts the attack's text into every message field and file
// that acp-test may print.
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

// secrets returns agents that send a secret from the run's environment in all common encodings. The test looks for
// the secret in everything that acp-test writes.
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
