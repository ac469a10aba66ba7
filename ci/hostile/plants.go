//go:build linux

package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// plant is one secret: a text that contains it, and the part of that text that acp-test must never write.
type plant struct{ name, text, secret string }

// planted are environment variables of acp-test and the agent whose names mark them as secret. No value is a part of
// another value.
var planted = map[string]string{
	"PLANT_ONE_API_KEY":     `one/pl4nt+ed"key\q1`,
	"PLANT_TWO_TOKEN":       "two-pl4ntédë-tökén-q2",
	"PLANT_THREE_SECRET":    "three<pl4nt>&ed%20q3",
	"PLANT_FOUR_PASSWORD":   "f0ur$q4",
	"PLANT_FIVE_AUTH":       `{"five":"pl4nted","q":5}`,
	"PLANT_SIX_CREDENTIALS": "six:pl4nted:" + "0123456789abcdefghijklmnop-q6",
}

// plants returns the planted secrets in all the encodings in which programs write secrets.
func plants() (all []plant) {
	add := func(name, text, secret string) {
		all = append(all, plant{name, fmt.Sprintf("it is %s indeed", text), secret})
	}
	for name, value := range planted {
		forms := map[string]string{
			"plain": value, "json": jsonOf(value), "json in json": jsonOf(jsonOf(value)),
			"query": url.QueryEscape(value), "path": url.PathEscape(value),
			"hex": fmt.Sprintf("%x", value), "HEX": fmt.Sprintf("%X", value),
		}
		for form, text := range forms {
			add(name+" "+form, text, text)
		}
		for skip := range 3 {
			for form, e := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64url": base64.RawURLEncoding} {
				text := e.EncodeToString([]byte("user"[:skip] + value + "host"))
				// The secret is only the part of the encoded text that depends on the value alone, at least eight
				// characters. A shorter part could occur by chance in any packed report.
				add(fmt.Sprintf("%s %s at %d", name, form, skip), text, text[(8*skip+5)/6:8*(skip+len(value))/6])
			}
		}
	}
	named := func(name, text, value string) { add(name, strings.ReplaceAll(text, "VALUE", value), value) }
	named("a flag", "run --password VALUE now", "Zq71hT9kLm2")
	named("a flag with =", "run --api-key=VALUE now", "Zq72hT9kLm2")
	named("a password in a URL", "https://me:VALUE@host/path", "Zq73hT9kLm2")
	named("a parameter", "https://host/path?x=1&access_token=VALUE", "Zq74hT9kLm2")
	named("a parameter key", "https://host/path?key=VALUE&y=2", "Zq75hT9kLm2")
	named("bearer", "Authorization: Bearer VALUE", "Zq76hT9kLm2xyz")
	named("basic", "Authorization: Basic VALUE", "Zq77hT9kLm2xyz==")
	for name, value := range map[string]string{
		"OpenAI": "sk-proj-0123456789abcdefZQ", "Anthropic": "sk-ant-api03-0123456789abcdefZQ",
		"Google": "AIzaSy0123456789abcdefghijklmnopqrstuvZ", "GitHub": "ghp_0123456789abcdefghijklmnopqrstuvwxyZ",
		"GitHub fine": "github_pat_0123456789abcdefghijklmnopqrstuvwxyZ", "GitLab": "glpat-0123456789abcdefghZQ",
		"Slack": "xoxb-0123456789-abcdefghijZQ", "AWS": "AKIAIOSFODNN7EXAMPLE",
		"Hugging Face": "hf_0123456789abcdefghijklmnopqrstuvZQ",
		"npm":          "npm_0123456789abcdefghijklmnopqrstuvwxyZ",
		"JWT":          "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	} {
		add("a key of "+name, value, value)
	}
	return all
}

// jsonOf returns a text as it appears within a JSON string.
func jsonOf(s string) string { q := quote(s); return q[1 : len(q)-1] }

// spilling returns the messages of an editor that sends each planted secret to the agent.
func spilling(cwd string) (lines []string) {
	add := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0",`+format+"}\n", args...))
	}
	add(`"id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}`)
	add(`"id":1,"method":"session/new","params":{"cwd":%s,"mcpServers":[]}`, quote(cwd))
	for i, p := range plants() {
		text := quote(p.text)
		add(`"id":%d,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":%s}]}`,
			i+2, text)
		add(`"method":"session/cancel","params":{"sessionId":%s}`, text)
		add(`"id":%s,"method":"session/new","params":{"cwd":%[1]s,"mcpServers":[{"name":"m","command":%[1]s,`+
			`"args":[%[1]s]}]}`, text)
		add(`"method":%s,"params":{"x":[%[1]s]}`, text)
		lines = append(lines, p.text+"\n")
	}
	return lines
}

// leaks returns an agent that sends all plants through every channel it has.
func leaks() []mode {
	return []mode{{name: "leaks", at: inTurn, do: func(a *agent) {
		for i, p := range plants() {
			os.Stderr.WriteString(p.text + "\n")
			_, _ = os.Stdout.WriteString(p.text + "\n")
			update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + quote(p.text) + `}}`)
			update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d","title":%s,"rawInput":{"x":%[2]s},`+
				`"rawOutput":[%[2]s]}`, i, quote(p.text)))
			_ = os.WriteFile(filepath.Join(a.cwd, fmt.Sprintf("spilled%d", i)), []byte(p.text), 0o644)
			r, err := http.Post(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/chat/completions", "application/json", strings.NewReader(
				`{"model":"m","messages":[{"role":"user","content":`+quote(p.text)+`}]}`))
			if err == nil {
				r.Body.Close()
			}
		}
		for name, value := range planted {
			update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"n%s","title":"t","rawInput":{`+
				`"env":[{"name":%[1]q,"value":%[2]s}],%[1]q:%[2]s}}`, name, quote(value)))
		}
		a.answers[inTurn] = `{"stopReason":` + quote(plants()[0].text) + `}`
	}}}
}
