//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// values are the texts that a stranger puts into a file. EVIL is a program. No command may touch the folder OUT, to
// which link leads, or call the listener URL.
var values = []string{
	"EVIL", "x;EVIL $(EVIL) `EVIL`", "OUT/new", "OUT/secret", "../../../../../../../../../../../../..OUT/new", "URL/x",
	"file://OUT/secret", "link/secret", "x\x1b]0;x\x07\x1b[2J", "HUGE", "x\n::error::x\nexec EVIL", "-- x --",
}

// received are the files that a stranger may send. «x» is a place: the test puts a value there, else x stands. These
// commands are not asked to run the programs that a file names.
var received = []struct {
	name, text string
	quoted     bool // a place stands within the quotes of JSON or YAML
	commands   []string
}{
	{name: "a scenario", text: "good.txtar\n# «A greeting.»\ntag «mine»\nenv PLANTED=«1»\nhome «.conf» @«a.txt»\n" +
		"check «hello»\n" +
		"session new main cwd=«sub»\nwrite «b.txt» «text»\nprompt 'Say hello.' attach=«a.txt»\nawait turn end_turn\n" +
		"exists «a.txt»\ncmp «a.txt» «want/a.txt»\n-- «a.txt» --\nhello\n-- want/a.txt --\nhello\n-- sub/x --\n" +
		"-- llm.yaml --\n" +
		"replies:\n  - - text: \"«Hello.»\"\n",
		commands: []string{"lint good.txtar", "lint --stranger good.txtar", "fmt -d good.txtar",
			"run --list good.txtar",
			"run -q good.txtar --report github=- --report tap=- --golden golden --update"}},
	{name: "a profile", quoted: true,
		text: "agent.yaml\nname: \"«mine»\"\ntitle: \"«Mine»\"\ncommand: [acp-test, refagent]\n" +
			"install: {note: \"«note»\"}\nhome: {\"«.conf»\": \"«text»\"}\ntools: {read_file: {name: \"«read»\", " +
			"args: {path: \"«$path»\"}}}\n" +
			"env: {OPENAI_BASE_URL: $LLM/v1, OPENAI_API_KEY: $KEY}\nmodel: {wire: openai-chat}\n" +
			"normalize: {replace: [{pattern: \"never\", with: \"«x»\"}], values: [\"«x»\"]}\n" +
			"known-failures: \"«known.yaml»\"\n",
		commands: []string{"agents agent.yaml", "run --list --agent agent.yaml",
			"run -q good.txtar --agent agent.yaml --golden golden --update"}},
	{name: "a profile that starts something", quoted: true,
		text: "agent.yaml\nname: mine\ncommand: [\"«sh»\", \"«-c»\"]\n" +
			"setup: [\"«sh»\"]\ndir: \"«.»\"\nenv: {LD_PRELOAD: \"«x»\"}\nurl: \"«http://127.0.0.1:9/»\"\n" +
			"listen: [\"«x»\"]\n",
		commands: []string{"agents agent.yaml", "run --list --agent agent.yaml", "sweep --list --agent agent.yaml",
			"lint good.txtar"}},
	{name: "a list of known failures", quoted: true,
		text: "known.yaml\n- {scenario: \"«good»\", check: \"«hello»\", reason: \"«because»\", " +
			"link: \"«https://x»\"}\n- {scenario: good, rule: SHAPE, flaky: true, reason: \"«x»\", requirements: " +
			"[\"«PROMPT-001»\"], " +
			"protocols: [\"«acp-v1»\"]}\n",
		commands: []string{"run -q good.txtar --baseline known.yaml",
			"run -q good.txtar --baseline known.yaml --baseline-write new.yaml"}},
	{name: "a golden", text: "golden/reference/good.golden\n«-> initialize»\n",
		commands: []string{"run -q good.txtar --golden golden",
			"review --golden golden"}},
	{name: "results", quoted: true,
		text: "in/results.json\n" + `{"version":1,"tool":"«1»","command":"«run»","agent":{"profile":"«mine»",` +
			`"goldens":"«mine»","title":"«t»","command":["«x»"],"name":"«n»","version":"«1»"},"protocol":"acp-v1",` +
			`"out":"«/x»","verdict":"fail",` +
			`"started":"2026-01-01T00:00:00Z","counts":{"total":1,"fail":1},"exit":1,"results":[{"id":"«good»",` +
			`"file":"«good.txtar»","title":"«A greeting.»","tags":["«t»"],` +
			`"verdict":"fail","reason":"«why»","rerun":"«acp-test run»","artifacts":{"transcript":"«good/transcrip` +
			`t.jsonl»",` +
			`"rendered":"«good/rendered»","workspace":"«good/w»","before":"«good/b»"},"golden":{"state":"new",` +
			`"path":"«golden/mine/good.golden»",` +
			`"diff":"«+x»"},"checks":[{"id":"good#hello","slug":"«hello»","title":"«t»","verdict":"pass"}],` +
			`"findings":[{"rule":"«SHAPE»",` +
			`"class":"lint","message":"«m»","detail":"«d»","citation":"«https://x»"}],"notes":["«note»"]}],` +
			`"left":["«x»"],"notes":["«note»"]}`,
		commands: []string{"report convert in/results.json --to html --out page.html",
			"report convert in/results.json --to markdown",
			"report convert in/results.json --to github", "report convert in/results.json --to junit",
			"review in --golden golden --accept *", "run -q good.txtar --against in", "mcp in"}},
	{name: "an editor's settings", quoted: true,
		text: "settings.json\n" + `{"agent_servers":{"«mine»":{"type":"custom","command":"«sh»",` +
			`"args":["«-c»"],"env":{"«A»":"«b»"},"default_mode":"«m»"}},"context_servers":{"«m»":{"command":"«sh»",` +
			`"args":["«x»"]}}}`,
		commands: []string{"agents --settings settings.json", "run --list --settings settings.json",
			"record --install settings.json --dry-run"}},
	{name: "a model's script", quoted: true,
		text: "llm.yaml\nturns:\n  - prompt: \"«.*»\"\n    replies:\n      - - text: \"«Hello.»\"\n" +
			"        - thinking: \"«x»\"\n" +
			"        - tool: \"«none»\"\n          args: {path: \"«x»\"}\n      - - text: \"«Done.»\"\n",
		commands: []string{"prompt Hello. --llm llm.yaml -- acp-test refagent",
			"convert in.jsonl --partial --llm llm.yaml"}},
	{name: "the settings of a repository", quoted: true,
		text: "acp-test.yaml\nagent: \"«reference»\"\ncommand: [\"«acp-test»\", \"«refagent»\"]\n" +
			"scenarios: [\"«good.txtar»\"]\nsuites: [\"«all»\"]\ngoldens: \"«golden»\"\nbaseline: \"«known.yaml»\"\n" +
			"severity: \"«v1»\"\ntimeout: \"«20s»\"\n" +
			"env: {LD_PRELOAD: \"«x»\"}\npass-env: [\"«X»\"]\nreports: [\"«tap=x.tap»\"]\nout: \"«out»\"\n" +
			"durations: \"«durations.json»\"\n",
		commands: []string{"run --list", "lint good.txtar", "fmt -l good.txtar",
			"init --dry-run --ci gitlab --from latest", "agents"}},
	{name: "a package", quoted: true,
		text: "package.json\n" + `{"name":"«mine»","bin":{"«mine»":"«agent.js»"},"main":"«x»",` +
			`"scripts":{"start":"«node x»",` +
			`"acp":"«node x»"},"packageManager":"«npm»"}`,
		commands: []string{"init --dry-run --ci gitlab --from latest"}},
	{name: "an editor's scenario",
		text: "agent.txtar\n# «An agent.»\nrole agent\ncheck «hello»\non prompt {\n\ttext '«Hello.»'\n" +
			"\tend end_turn\n}\nsent session/prompt\n",
		commands: []string{"lint agent.txtar", "fmt -d agent.txtar", "serve agent.txtar",
			"editors --out editors --timeout 5s agent.txtar -- acp-test prompt Hello. -- {agent}"}},
}

var aPlace = regexp.MustCompile(`«([^»]*)»`)

var _ = Describe("a file of a stranger", func() {
	for _, kind := range received {
		file, text, _ := strings.Cut(kind.text, "\n")
		It("is read where nothing is planted: "+kind.name, func() {
			h := newStranger()
			h.write(file, aPlace.ReplaceAllString(text, "$1"))
			for _, line := range kind.commands {
				got := h.with(stdins[strings.Fields(line)[0]], strings.Fields(line)...)
				Expect(got.code).NotTo(Equal(2), "%s: %s%s", line, got.out, got.err)
			}
		})
		for at, found := range aPlace.FindAllStringSubmatchIndex(text, -1) {
			It(fmt.Sprintf("runs, opens and contacts nothing with a value in place %d of %s", at, kind.name), func() {
				oneOf(at)
				for n, value := range values {
					if os.Getenv("ACP_TEST_PART") != "" && n != at%len(values) {
						continue // ci/test tries one value in each of its places
					}
					By(value)
					h := newStranger()
					value = h.named.Replace(value)
					if kind.quoted {
						quoted, err := json.Marshal(value)
						Expect(err).NotTo(HaveOccurred())
						value = string(quoted[1 : len(quoted)-1])
					}
					h.write(file, aPlace.ReplaceAllString(text[:found[0]],
						"$1")+value+aPlace.ReplaceAllString(text[found[1]:], "$1"))
					for _, line := range kind.commands {
						h.try(strings.Fields(line))
					}
				}
			})
		}
	}

	// The folder itself that a user names may be a link.
	for _, link := range []string{"golden/reference/good.golden", "golden/reference", "in/good/transcript.jsonl",
		"in/good"} {
		It("is not followed where it is a link: "+link, func() {
			h := newStranger()
			Expect(os.MkdirAll(filepath.Dir(filepath.Join(h.dir, link)), 0o755)).To(Succeed())
			to := "outside"
			if filepath.Ext(link) != "" {
				to = "outside/secret"
			}
			Expect(os.RemoveAll(filepath.Join(h.dir, link))).To(Succeed())
			Expect(os.Symlink(filepath.Join(h.dir, to), filepath.Join(h.dir, link))).To(Succeed())
			for _, line := range []string{"run -q good.txtar --golden golden",
				"run -q good.txtar --golden golden --update",
				"review --golden golden --accept *", "report convert in/results.json --to html --out page.html"} {
				h.try(strings.Fields(line))
			}
		})
	}
})

// stdins holds, by command, the lines that a test writes to its stdin.
var stdins = map[string]string{"serve": hello,
	"mcp": `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"}

// stranger is a folder with what others sent, and with what nobody may touch.
type stranger struct {
	*place
	outside  string
	contacts atomic.Int32
	named    *strings.Replacer
}

func newStranger() *stranger {
	h := &stranger{place: newPlace()}
	outer := h.dir
	h.outside = filepath.Join(outer, "outside")
	h.write("outside/secret", "a stranger's gain")
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { h.contacts.Add(1) }))
	DeferCleanup(web.Close)
	evil := filepath.Join(outer, "outside.evil")
	h.write("outside.evil", "#!/bin/sh\ntouch "+outer+"/outside/mark\n")
	h.named = strings.NewReplacer("EVIL", evil, "OUT", h.outside, "URL", web.URL, "HUGE", strings.Repeat("x", 1<<20))
	h.write("good.txtar", good)
	h.write("known.yaml", "[]\n")
	h.write("durations.json", "good 0.42\n")
	h.write("in/good/rendered", "--> initialize\n")
	h.write("in.jsonl", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
	h.write("in/results.json", `{"version":1,"agent":{"profile":"reference","command":["x"]},"protocol":"acp-v1",`+
		`"results":[`+
		`{"id":"good","file":"good.txtar","verdict":"pass","artifacts":{"transcript":"good/transcript.jsonl"}}]}`)
	return h
}

// try runs a command, and says what nobody may see after it.
func (h *stranger) try(words []string) {
	GinkgoHelper()
	got := h.with(stdins[words[0]], words...)
	Expect(got.out+got.err).NotTo(MatchRegexp("panic:|goroutine |\x1b\\]|\x1b\\[2J|a stranger's gain"), words[0])
	Expect(got.out).NotTo(MatchRegexp(`(?m)^::error::x`), words[0])
	Expect(h.contacts.Load()).To(BeZero(), words[0])
	list, err := os.ReadDir(h.outside)
	Expect(err).NotTo(HaveOccurred())
	Expect(list).To(HaveLen(1), "%v left something outside", words)
	Expect(h.read("outside/secret")).To(Equal("a stranger's gain"))
	for name, text := range h.all() {
		if name != "outside/secret" {
			Expect(text).NotTo(ContainSubstring("a stranger's gain"), name)
		}
	}
}
