//go:build unix

package main_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("an agent that is prepared", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("one.txtar", good)
		p.write("two.txtar", good)
	})
	profile := func(setup string) {
		p.write("mine.yaml", `name: mine
command: [sh, -c, 'OPENAI_API_KEY=k OPENAI_BASE_URL=$$(cat $HOME/url) exec acp-test refagent']
setup: [sh, -c, '`+setup+`']
`)
	}

	It("is set up once a run, and each process gets what that left", func() {
		profile("echo once >>$CWD/times; echo $LLM/v1 >$HOME/url")
		got := p.run("run", "--agent", "mine.yaml", "--strict", "--fresh", "one.txtar", "two.txtar")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.read("times")).To(Equal("once\n"))
	})

	It("and cannot be is told once, and nothing is judged", func() {
		profile("echo no such account; exit 4")
		got := p.run("run", "--agent", "mine.yaml", "one.txtar", "two.txtar")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(HavePrefix("acp-test: the set-up step of profile mine, sh -c "))
		Expect(got.err).To(HaveSuffix(": it ended with status 4; it wrote:\n  no such account\n"))
		Expect(p.results().Results).To(BeEmpty())
	})
})

var _ = Describe("an agent of an unknown command", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("one.txtar", good)
		p.write("agent", "#!/bin/sh\necho started >>"+p.dir+
			"/times\nacp-test refagent | sed -u 's/acp-test-refagent/quill/'\n")
	})

	It("gets the profile that knows what it calls itself", func() {
		got := p.run("run", "one.txtar", "--", "./agent")
		Expect(got.err).To(HavePrefix(`agent, which calls itself "quill", runs with the environment, HOME, login and ` +
			`tools of the profile ts-agent; --profile none leaves them out` + "\n"))
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.results().Agent.AdHoc).To(BeTrue())
		Expect(strings.Count(p.read("times"), "started")).To(Equal(2), "once to greet it")
	})

	It("gets none and is not asked with --profile none, nor for a list", func() {
		got := p.run("run", "--profile", "none", "one.txtar", "--", "./agent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.err).To(BeEmpty())
		Expect(strings.Count(p.read("times"), "started")).To(Equal(1))
		Expect(p.run("run", "--list", "one.txtar", "--", "./agent").code).To(Equal(0))
		Expect(strings.Count(p.read("times"), "started")).To(Equal(1))
	})
})

var _ = It("a sweep of an agent that reaches no model judges nothing, and says what to do", func() {
	p := newPlace()
	p.write("agent", "#!/bin/sh\nunset OPENAI_BASE_URL\nexec acp-test refagent\n")
	got := p.run("sweep", "--run", "^prompt-turn/(text|two-turns)$", "--", "./agent")
	Expect(got.code).To(Equal(2), got.out+got.err)
	Expect(got.out).To(ContainSubstring("\nno scenario of this run reached the model server, so turns that need a " +
		"model are inconclusive: "))
	Expect(got.out).To(ContainSubstring("; 0 findings; "))
	run := p.results()
	Expect(run.NoModel).NotTo(BeEmpty())
	Expect(run.Counts.Fail).To(BeZero())
})

var _ = It("an agent whose turns miss a program is told which by its stderr, however much follows there", func() {
	p := newPlace()
	p.write("agent", `#!/bin/sh
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r prompt; echo 'Error: spawn some-cli ENOENT' >&2; seq 1 20 >&2
echo '{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}'
cat >/dev/null
`)
	got := p.run("run", "--no-smoke", "--run", "^prompt-turn/text$", "--", "./agent")
	Expect(got.code).To(Equal(2), got.out+got.err)
	const why = "it looked for the program some-cli, which is not in PATH: install it"
	Expect(got.out).To(And(ContainSubstring("\n      what to do   "+why), ContainSubstring(" are inconclusive: "+why)))
})

// locked is an agent that greets with the members that it is told, and refuses every other request.
func locked(greeting, refusal string) string {
	return `while read -r line; do
	id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case $line in
	*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":1` + greeting + `}}' ;;
	*'"id":'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32000,"message":"` + refusal + `"}}' ;;
	esac
done
`
}

var _ = Describe("a run of all suites by a command alone", func() {
	for name, c := range map[string]struct{ agent, why, told string }{
		"reaches no model": {"unset OPENAI_BASE_URL\nexec acp-test refagent\n", "reached no model",
			"no scenario of this run reached the model server, so turns that need a model are inconclusive: " +
				"tell the agent "},
		"wants a login": {locked(`,"authMethods":[{"id":"web","name":"Web"}]`, "Please log in."), "wanted a login",
			`no scenario that needs a session was judged: the agent requires a login before session/new \(#\d+\): ` +
				`"Please log in."; ` +
				`it offers web; use --auth-method`},
		"wants a login and offers none": {locked("", "Please log in."), "wanted a login",
			`no scenario that needs a session was ` +
				`judged: the agent requires a login before session/new \(#\d+\): "Please log in."; it offers no ` +
				`login method: give it a key ` +
				`with --env NAME='\$KEY' or --pass-env NAME, or copy its login files into the run's empty HOME with ` +
				`home: in a profile`},
	} {
		It("ends soon, and says what is missing, if the agent "+name, func() {
			p := newPlace()
			p.write("agent", "#!/bin/sh\n"+c.agent)
			got := p.run("run", "-j", "2", "--", "./agent")
			Expect(got.code).To(Equal(2), got.out+got.err)
			Expect(got.out).To(ContainSubstring(" and all that follows: not tried: the agent " + c.why +
				" in 3 earlier scenarios\n"))
			Expect(got.out).To(MatchRegexp("\n" + c.told))
			run := p.results()
			Expect(run.Counts.Skip).To(BeNumerically(">", len(run.Results)/2))
			for _, r := range run.Results {
				if strings.HasPrefix(r.ID, "initialize/version-") {
					Expect(r.Verdict).NotTo(Equal(results.Skip), r.ID+" needs neither a login nor a model")
				}
			}
			Expect(run.Sweep).To(BeNil())
		})
	}

	It("ends with what is wrong, and draws no conversations, if the agent does not start", func() {
		got := newPlace().run("run", "-j", "2", "--", "/bin/false")
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(got.out).To(ContainSubstring("what to do   run the command by hand: it must speak ACP on " +
			"stdin and stdout"))
		Expect(got.out).NotTo(ContainSubstring("conversation"))
	})

	It("tries each scenario all the same where suites are named", func() {
		p := newPlace()
		p.write("agent", "#!/bin/sh\nunset OPENAI_BASE_URL\nexec acp-test refagent\n")
		got := p.run("run", "--suite", "content", "--", "./agent")
		Expect(got.out).NotTo(ContainSubstring("not tried"))
		Expect(p.results().Counts.Inconclusive).To(BeNumerically(">", 3))
	})
})
