//go:build unix

package main_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Further command lines that are wrong, most with names of this place: the table in
// commands_test.go has those whose message is always the same.
var _ = Describe("a wrong command line", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("good.txtar", good)
		p.write("bad.txtar", "# A greeting.\ncheck hello\npromt 'Hi.'\nawait turn end_turn\n")
		p.write("notes.txt", "nothing of ours\n")
		p.write("own.yaml", "name: own\ncomand: [x]\n")
		p.write("broken/acp-test.yaml", "agent: reference\nsuite: [x]\n")
		p.write("settings.json", `{"agent_servers": {"Own": {"command": "x"}}}`)
	})

	DescribeTable("says what is wrong, where, and what to do", func(line, message string) {
		words := strings.Fields(line)
		if words[0] == "cd" {
			p.dir += "/" + words[1]
			words = words[2:]
		}
		got := p.run(words...)
		Expect(got.err).To(MatchRegexp("^acp-test: "+message), line)
		Expect([]any{got.code, got.out}).To(Equal([]any{2, ""}), line)
		Expect(strings.Count(got.err, "acp-test: ")).To(BeNumerically("<=", 2), "one message: %s", got.err)
	},
		Entry(nil, "rep", `there is no command "rep" \(did you mean "replay"\?\): acp-test help lists them\n$`),
		Entry(nil, "rep --foo", `there is no command "rep" \(did you mean "replay"\?\): acp-test help lists them\n$`),
		Entry(nil, "--foo", `there is no flag --foo: acp-test help lists them\n$`),
		Entry(nil, "help nothing", `there is no help on "nothing"`),
		Entry(nil, "help verdict-s", `there is no help on "verdict-s" \(did you mean "verdicts"\?\): acp-test help help lists the topics\n$`),
		Entry(nil, "run --agnt x", `run: there is no flag --agnt \(did you mean --agent\?\)\n$`),
		Entry(nil, "run --gold x", `run: there is no flag --gold \(did you mean --golden\?\)\n$`),
		Entry(nil, "run -j many", `run: --jobs: a whole number is expected, not "many"\n$`),
		Entry(nil, "run --timeout -5s", `a timeout must be longer than 0; --debug turns all off\n$`),
		Entry(nil, "run --seed x", `run: --seed: a whole number is expected, not "x"\n$`),
		Entry(nil, "run --strict=maybe", `run: --strict: true or false is expected, not "maybe"\n$`),
		Entry(nil, "run --fault", `run: --fault: a value is missing: NAME \(the reference agent with one deliberate fault, by NAME\)\n$`),
		Entry(nil, "run --fault no-such", `--fault: there is no fault "no-such": acp-test refagent --faults lists them\n$`),
		Entry(nil, "run --liberty no-such", `--liberty: there is no liberty "no-such": acp-test refagent --liberties lists them\n$`),
		Entry(nil, "run --agent refrence", `no profile is named "refrence" \(did you mean "reference"\?\)\n$`),
		Entry(nil, "run --agent own.yaml", `own\.yaml:2:1: unknown key "comand" in a profile \(did you mean "command"\?\)\n$`),
		Entry(nil, "run --agent no.yaml", `reading profile no\.yaml: no such file or directory\n$`),
		Entry(nil, "run --settings settings.json --agent Owm", `settings\.json has no agent "Owm" \(did you mean "own"\?\)\n$`),
		Entry(nil, "run notes.txt", `notes\.txt:1:1: unknown command "nothing"`),
		Entry(nil, "run --against no", `--against: open no: no such file or directory\n$`),
		Entry(nil, "cd broken run", `/.*/acp-test\.yaml:2:1: unknown key "suite" in acp-test\.yaml \(did you mean "suites"\?\)\n$`),
		Entry(nil, "run good.txtar -- no-such-agent", `.*no program "no-such-agent"`),
		Entry(nil, "check no.jsonl", `open no\.jsonl: no such file or directory\n$`),
		Entry(nil, "replay", `replay: a recording is missing; usage: acp-test replay FILE`),
		Entry(nil, "replay notes.txt", `notes\.txt: this is no recording: no line holds a JSON-RPC message`),
		Entry(nil, "replay --mode fast notes.txt", `--mode fast: strict, ordered or lenient is expected\n$`),
		Entry(nil, "record -- x", `record: --out FILE is missing; usage: acp-test record --out FILE -- AGENT`),
		Entry(nil, "convert notes.txt", `notes\.txt: this is no recording: no line holds a JSON-RPC message`),
		Entry(nil, "report convert", `convert: a results\.json is missing; usage: acp-test report convert FILE`),
		Entry(nil, "report merge no", `open no: no such file or directory\n$`),
		Entry(nil, "fakellm", `fakellm: a model script is missing`),
		Entry(nil, "fakellm --wire soap notes.txt", `--wire: there is no wire format "soap"; they are `),
		Entry(nil, "agents no-such", `no profile is named "no-such" \(known: `),
		Entry(nil, "sweep --max x", `sweep: --max: a whole number is expected, not "x"\n$`),
	)

	It("is told from help, which is no mistake", func() {
		for topic, begins := range map[string]string{"gate": "# Gates\n", "goldens": "# Goldens\n", "verdicts": "# Verdicts\n", "cause": "# Causes\n", "liberties": "# Liberties\n", "llm": "# Model script\n",
			"profile": "", "run": "Runs scenarios", "report convert": "Writes a results.json"} {
			got := p.run(append([]string{"help"}, strings.Fields(topic)...)...)
			Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}), topic)
			Expect(got.out).To(HavePrefix(begins), topic)
		}
		Expect(p.run("--version").out).To(MatchRegexp(`^acp-test \S+\n$`))
		short, long := p.run("prompt", "-h").out, p.run("help", "prompt").out
		Expect(short).To(HavePrefix("A turn, or a conversation, from the terminal.\n"))
		Expect(short).To(HaveSuffix("\nMore: acp-test help prompt\n"))
		Expect(len(long)).To(BeNumerically(">", 1000+len(short)))
		Expect(long).To(ContainSubstring("acp-test prompt --agent reference hello"))
	})
})
