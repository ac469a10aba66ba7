//go:build unix

package main_test

import (
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

// harmless is a session whose recording has a place for each plant.
const harmless = `# A session with a server and a variable.
env PLANTED=1
mcp canary
check base
session new main
prompt main 'Hello.'
await turn end_turn
-- a.txt --
hello
-- llm.yaml --
turns:
  - - - text: Hello.
`

var (
	ofServers = regexp.MustCompile(`"mcpServers":\[\{.*?\}\]\}\]`)
	ofCwd     = regexp.MustCompile(`("method":"session/new","params":\{"cwd":")[^"]*`)
	ofPrompt  = regexp.MustCompile(`"prompt":\[\{"text":"Hello\.","type":"text"\}\]`)
	ofFile    = regexp.MustCompile(`\{"path":"a\.txt",[^}]*\}`)
	ofSet     = regexp.MustCompile(`"set":\{"PLANTED":"1"\}`)
	ofName    = regexp.MustCompile(`"scenario":"s"`)
)

// plants are what a stranger puts into a recording, by what it is. EVIL is a program, URL a
// listener, OUT a folder outside of the run.
var plants = []struct {
	name string
	at   *regexp.Regexp
	text string
}{
	{"nothing", ofName, `"scenario":"s"`},
	{"a program as a server", ofServers, `"mcpServers":[{"name":"m","command":"EVIL","args":["server"],"env":[]}]`},
	{"a program that calls itself the canary", ofServers,
		`"mcpServers":[{"name":"canary","command":"EVIL","args":["canary","OUT/log"],"env":[{"name":"LD_PRELOAD",` +
			`"value":"EVIL"}]}]`},
	{"a program that calls itself broken", ofServers,
		`"mcpServers":[{"name":"broken","command":"EVIL","args":[],"env":[]}]`},
	{"a server in capitals", ofServers, `"MCPServers":[{"name":"m","command":"EVIL","args":[],"env":[]}]`},
	{"a second list of servers", ofServers,
		`"mcpServers":[],"mcpServers":[{"name":"m","command":"EVIL","args":[],"env":[]}]`},
	{"servers by name", ofServers, `"mcpServers":[],"settings":{"m":{"command":"EVIL","args":[]}}`},
	{"an address as a server", ofServers, `"mcpServers":[{"type":"http","name":"m","url":"URL","headers":[]}]`},
	{"an address that calls itself the canary", ofServers,
		`"mcpServers":[{"type":"http","name":"canary_http","url":"URL","headers":[{"name":"X-Canary-Token",` +
			`"value":"t"}]}]`},
	{"an address with events", ofServers, `"mcpServers":[{"type":"sse","name":"m","url":"URL","headers":[]}]`},
	{"settings of an agent", ofServers,
		`"mcpServers":[],"_meta":{"claudeCode":{"options":{"executable":"EVIL","env":{"A":"EVIL"}}}}`},
	{"variables", ofSet, `"set":{"LD_PRELOAD":"EVIL","PATH":"OUT","NODE_OPTIONS":"--require=EVIL","EVIL":"1"}`},
	{"a file of HOME", ofSet, `"homeFiles":[{"path":".bashrc","text":"EVIL"}]`},
	{"a file of HOME outside", ofSet, `"homeFiles":[{"path":"../../../../../../../../OUT/x","text":"EVIL"}]`},
	{"a folder outside", ofCwd, `${1}OUT`},
	{"a folder by a detour", ofCwd, `${1}/../../../../../../../../OUT`},
	{"a file as a folder", ofCwd, `${1}EVIL`},
	{"a further folder", ofServers, `"mcpServers":[],"additionalDirectories":["OUT"]`},
	{"a linked file", ofPrompt, `"prompt":[{"type":"resource_link","name":"n","uri":"file://OUT/secret"}]`},
	{"a linked path", ofPrompt, `"prompt":[{"type":"resource_link","name":"n","uri":"OUT/secret"}]`},
	{"an escaped file", ofPrompt, `"prompt":[{"type":"resource_link","name":"n","uri":"FILE:///%2e%2e/OUT/secret"}]`},
	{"an attached file", ofPrompt, `"prompt":[{"type":"resource","resource":{"uri":"file://OUT/secret","text":"t"}}]`},
	{"a link", ofFile, `{"path":"l","link":"OUT"}`},
	{"a link by a detour", ofFile, `{"path":"a/b","text":"t"},{"path":"l","link":"a/../../../OUT"}`},
	{"a link over links", ofFile, `{"path":"l","link":"."},{"path":"l/new/x","link":"../../../OUT"}`},
	{"a file through a link", ofFile, `{"path":"l","link":"OUT"},{"path":"l/x","text":"EVIL"}`},
	{"a file outside", ofFile, `{"path":"../../../../../../../../OUT/x","text":"EVIL"}`},
	{"an absolute file", ofFile, `{"path":"OUT/x","text":"EVIL"}`},
	{"settings of a repository", ofFile, `{"path":".git/config","text":"[core]\n\tfsmonitor = EVIL\n"}`},
	{"a name outside", ofName, `"scenario":"../../../../../../../../OUT/s"`},
	{"an absolute name", ofName, `"scenario":"OUT/s"`},
	{"a name with lines", ofName, `"scenario":"s\nexec EVIL\n"`},
	{"a name with control sequences", ofName, `"scenario":"s\u001b]0;x\u0007"`},
	{"a server with control sequences", ofServers,
		`"mcpServers":[{"name":"m\u001b]0;x\u0007","command":"EVIL\u001b[2J","args":[]}]`},
	{"a prompt with control sequences", ofPrompt, `"prompt":[{"type":"text","text":"Hi\u001b]0;x\u0007 \u001b[2J"}]`},
	{"a file with lines", ofFile, `{"path":"x --\n-- llm.yaml","text":"EVIL"}`},
	{"a variable with lines", ofSet, `"set":{"A=1\nexec EVIL\n#":"\nexec EVIL\n"}`},
	{"a huge server", ofServers, `"mcpServers":[{"name":"HUGE","command":"HUGE","args":["HUGE"]}]`},
	{"a huge folder", ofCwd, `${1}/HUGE`},
	{"a huge size", ofFile, `{"path":"a.txt","size":9223372036854775807,"left":"HUGE"}`},
}

var _ = Describe("a recording of a stranger", Ordered, ContinueOnFailure, func() {
	var base string
	BeforeAll(func() {
		p := newPlace()
		p.write("s.txtar", harmless)
		got := p.run("run", "-q", "s.txtar")
		Expect(got.code).To(Equal(0), got.out+got.err)
		base = p.read("acp-test-out/s/transcript.jsonl")
	})

	for i, plant := range plants {
		It("runs, opens and contacts nothing with "+plant.name, func() {
			oneOf(i)
			p := newPlace()
			var contacts atomic.Int32
			web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { contacts.Add(1) }))
			defer web.Close()
			evil, out, mark := filepath.Join(p.dir, "evil"), filepath.Join(p.dir, "outside"),
				filepath.Join(p.dir, "mark")
			p.write("evil", "#!/bin/sh\ntouch "+mark+"\n")
			p.write("outside/secret", "secret")
			// The agent notes what it is given.
			p.write("agent", fmt.Sprintf("#!/bin/sh\nexport -p >>%[1]s/env\n"+
				"ls -laR $HOME $HOME/../work >>%[1]s/files\n"+
				"tee -a %[1]s/given | %[2]s refagent\n", p.dir, program))
			for _, name := range []string{"env", "files", "given"} {
				p.write(name, "")
			}
			text := strings.NewReplacer("EVIL", evil, "OUT", out, "URL", web.URL, "HUGE", strings.Repeat("x", 1<<20)).
				Replace(plant.text)
			Expect(plant.at.MatchString(base)).To(BeTrue())
			recording := plant.at.ReplaceAllString(base, text)
			p.write("in/transcript.jsonl", ofSet.ReplaceAllString(recording, `"set":{}`))
			file, agent := "in/transcript.jsonl", filepath.Join(p.dir, "agent")
			for _, args := range [][]string{
				{"replay", file, "--against", "nothing", "--patience", "300ms", "--timeout", "20s", "--", agent},
				{"convert", file, "--out", "made.txtar", "--agent", "reference", "--partial"},
				{"reduce", file, "--budget", "100ms", "--confirm", "1", "--", agent},
				{"show", file}, {"show", file, "--html", "page.html"}, {"diff", file, file}, {"check", file},
			} {
				got := p.run(args...)
				Expect(got.out+got.err).NotTo(MatchRegexp("panic|\x1b\\]|\x1b\\[2J"), args[0])
			}
			Expect(p.with(hello, "serve", file).err).NotTo(MatchRegexp("panic|\x1b\\]|\x1b\\[2J"))
			Expect(mark).NotTo(BeAnExistingFile())
			Expect(contacts.Load()).To(BeZero())
			list, err := os.ReadDir(out)
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(HaveLen(1))
			Expect(p.read("outside/secret")).To(Equal("secret"))
			Expect(p.read("env")).NotTo(MatchRegexp(`LD_PRELOAD|NODE_OPTIONS|PLANTED|PATH=.?` + out))
			Expect(p.read("files")).NotTo(MatchRegexp(`bashrc|\.git\b|-> .*outside`))
			Expect(p.read("given")).NotTo(ContainSubstring("LD_PRELOAD"))
			for _, path := range []string{evil, out, web.URL} {
				Expect(p.read("given")).NotTo(MatchRegexp(`"(?i:file:/*)?(/\.\./)*%s`, regexp.QuoteMeta(path)))
			}
			if made, err := os.ReadFile(filepath.Join(p.dir, "made.txtar")); err == nil {
				Expect(string(made)).NotTo(MatchRegexp(`(?m)^\s*(exec|mcp run)\b`))
			}
		})
	}

	It("is compared without what the agent was not given", func() {
		p := newPlace()
		p.write("r.jsonl", ofServers.ReplaceAllString(base,
			`"mcpServers":[{"name":"m","command":"/no/such/program","args":["x"],"env":[]}],"_meta":{"a":"b"}`))
		got := p.run("replay", "r.jsonl")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).To(ContainSubstring("a stand-in plays the MCP server m"))
		p.write("r.jsonl", strings.ReplaceAll(p.read("r.jsonl"), "end_turn", "max_tokens"))
		got = p.run("replay", "r.jsonl")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring("-<-- max_tokens"), Not(ContainSubstring("session/new"))))
	})

	It("gives what it names once it is trusted, and lists that first", func() {
		p := newPlace()
		mark := filepath.Join(p.dir, "mark")
		p.write("evil", "#!/bin/sh\necho $PLANTED >>"+mark+"\n")
		server := fmt.Sprintf(`"mcpServers":[{"name":"m","command":%q,"args":["x"],"env":[]}]`,
			filepath.Join(p.dir, "evil"))
		p.write("r.jsonl", ofServers.ReplaceAllLiteralString(base, server))
		got := p.run("replay", "r.jsonl", "--against", "nothing")
		Expect(got.out).To(And(ContainSubstring("a stand-in plays the MCP server m; --trust FILE runs the real one"),
			ContainSubstring("the agent does not get the recorded variables PLANTED; --trust FILE passes them")))
		Expect(mark).NotTo(BeAnExistingFile())
		got = p.run("replay", "r.jsonl", "--against", "nothing", "--trust", "./r.jsonl")
		Expect(got.err).To(Equal(fmt.Sprintf("acp-test: r.jsonl is trusted: the agent may start the MCP "+
			"server m: %s x\n"+
			"acp-test: r.jsonl is trusted: the agent gets the variable PLANTED=1\n", filepath.Join(p.dir, "evil"))))
		Expect(mark).To(BeAnExistingFile())
		Expect(p.run("replay", "r.jsonl", "--trust", "other.jsonl").err).To(Equal(
			"acp-test: --trust other.jsonl: the command line does not name this recording\n"))
		Expect(p.run("reduce", "r.jsonl").err).
			To(Equal("acp-test: r.jsonl: the recording gives the agent the variable PLANTED; " +
				"if you trust it, use --trust r.jsonl\n"))
	})
})
