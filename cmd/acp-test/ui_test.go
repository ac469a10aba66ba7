package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// served is a running acp-test ui.
type served struct {
	address string
	end     func()
}

func (p *place) ui(args ...string) served {
	GinkgoHelper()
	c := p.command(append([]string{"ui"}, args...)...)
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = c.Process.Signal(os.Interrupt)
			_ = c.Wait() // its status is that of a signal on some systems
		}
	}
	DeferCleanup(end)
	line, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	return served{strings.TrimSpace(line), end}
}

// ask is the answer to what the page asks for.
func (s served) ask(what string, body any) (status int, answer map[string]any, text string) {
	GinkgoHelper()
	r, err := http.NewRequest(http.MethodGet, s.address+what, nil)
	Expect(err).NotTo(HaveOccurred())
	if body != nil {
		raw, err := json.Marshal(body)
		Expect(err).NotTo(HaveOccurred())
		at, err := url.Parse(s.address)
		Expect(err).NotTo(HaveOccurred())
		r, err = http.NewRequest(http.MethodPost, s.address+what, strings.NewReader(string(raw)))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://"+at.Host)
	}
	got, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	Expect(err).NotTo(HaveOccurred())
	_ = json.Unmarshal(raw, &answer) // an error is a text
	return got.StatusCode, answer, string(raw)
}

var _ = Describe("ui", func() {
	const talk = `# Two turns.
check first
prompt 'First.'
await turn end_turn
prompt 'Second.'
await turn end_turn
-- llm.yaml --
turns:
  - - - text: One.
  - - - text: Two.
`
	// Thoughts, text in pieces, a file, a command, a permission, and a reply after it.
	const work = `# A turn with everything.
needs tool:write_file tool:read_file tool:run_shell
permit allow_once
terminal scripted match=make output=built exit=0
check works
prompt 'Work.'
await turn end_turn
prompt 'And now talk.'
await turn end_turn
-- llm.yaml --
turns:
  - - - thinking: Let me think about that.
      - text: "I shall read, then write."
        chunks: 3
      - tool: read_file
        args: {path: $WORK/notes.txt}
    - - tool: write_file
        args: {path: $WORK/a.txt, content: one}
    - - tool: run_shell
        args: {command: make all}
    - - text: "All of it is done."
        chunks: 2
  - - - text: "Nothing more to say."
-- notes.txt --
hello
`
	It("serves a run, makes a scenario of some of its turns, and runs one again", func() {
		p := newPlace()
		p.write("talk.txtar", talk)
		Expect(p.run("run", "talk.txtar", "-q").code).To(Equal(0))
		ui := p.ui("acp-test-out", "--agent", "reference")
		_, runs, _ := ui.ask("runs", nil)
		Expect(runs["actions"]).To(Equal([]any{"cancel", "reduce", "rerun", "scenario", "update"}))

		second := 0
		for line := range strings.Lines(p.read("acp-test-out/talk/transcript.jsonl")) {
			if strings.Contains(line, `"text":"Second."`) && strings.Contains(line, `"from":"editor"`) {
				var e struct{ Seq int }
				Expect(json.Unmarshal([]byte(line), &e)).To(Succeed())
				second = e.Seq
			}
		}
		_, made, text := ui.ask("do/scenario",
			map[string]any{"source": 0, "file": "talk/transcript.jsonl", "from": second, "to": second})
		scenario, _ := made["text"].(string)
		Expect(scenario).To(And(ContainSubstring("Second."), ContainSubstring("Two."), Not(ContainSubstring("First."))),
			text)
		p.write("made.txtar", scenario)
		Expect(p.run("run", "made.txtar", "-q").code).To(Equal(0))
		_, made, _ = ui.ask("do/scenario", map[string]any{"source": 0, "file": "talk/transcript.jsonl"})
		Expect(made["text"]).To(And(ContainSubstring("First."), ContainSubstring("Second.")))

		_, again, text := ui.ask("do/rerun", map[string]any{"source": 0, "id": "talk", "path": "talk.txtar"})
		Expect(again["text"]).To(ContainSubstring("1 pass"), text)
		_, runs, _ = ui.ask("runs", nil)
		Expect(runs["sources"]).To(HaveLen(2))
		p.write("acp-test-out/evil.txtar", talk)
		for _, path := range []string{"acp-test-out/evil.txtar", "../evil.txtar", "nothing.txtar"} {
			status, _, text := ui.ask("do/rerun", map[string]any{"source": 0, "id": "evil", "path": path})
			Expect(status).To(Equal(400), text)
		}
		ui.end()
		left, err := os.ReadDir(filepath.Join(p.dir, ".tmp"))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})

	It("makes of each frame of a turn a scenario that cancels there", func() {
		p := newPlace()
		for name, text := range map[string]string{"talk": talk, "work": work} {
			p.write(name+".txtar", text)
		}
		Expect(p.run("run", "talk.txtar", "work.txtar", "-q").code).To(Equal(0))
		ui := p.ui("acp-test-out")
		made := 0
		for name, step := range map[string]int{"talk": 1, "work": 4} {
			n := strings.Count(p.read("acp-test-out/"+name+"/transcript.jsonl"), "\n") - 1
			for at := 1; at <= n; at += step {
				status, got, text := ui.ask("do/cancel",
					map[string]any{"source": 0, "file": name + "/transcript.jsonl", "at": at})
				if status != 200 {
					Expect(text).To(Or(ContainSubstring("no turn is open at #%d", at),
						ContainSubstring("from #%d to the end of its turn", at)))
					continue
				}
				made++
				p.write(fmt.Sprintf("made/%s-%d.txtar", name, at), got["text"].(string))
			}
		}
		Expect(made).To(BeNumerically(">", 15))
		green := p.run("run", "made", "-q")
		Expect(green.code).To(Equal(0), green.out)
		// Each of them finds an agent that ends a cancelled turn as if nothing were.
		red := p.run("run", "made", "-q", "--fault", "cancel-end-turn")
		Expect(red.code).To(Equal(1), red.err)
		var all struct {
			Results []struct{ ID, Verdict string }
		}
		Expect(json.Unmarshal([]byte(p.read("acp-test-out/results.json")), &all)).To(Succeed())
		Expect(all.Results).To(HaveLen(made))
		for _, r := range all.Results {
			Expect(r.Verdict).To(Equal("fail"), "%s:\n%s", r.ID, p.read("made/"+r.ID+".txtar"))
		}
	})

	It("starts no agent that it was not given, and shows recordings of any form", func() {
		p := newPlace()
		p.write("lines.jsonl", forms()["lines.jsonl"])
		ui := p.ui("lines.jsonl")
		_, runs, _ := ui.ask("runs", nil)
		Expect(runs["actions"]).To(Equal([]any{"cancel", "scenario"}))
		status, _, text := ui.ask("do/rerun", map[string]any{"id": "talk"})
		Expect(status).To(Equal(404), text)
		_, judged, text := ui.ask("judged?source=0&file=lines.jsonl", nil)
		Expect(judged["verdict"]).To(Equal("pass"), text)
		_, _, text = ui.ask("canonical?source=0&file=lines.jsonl", nil)
		Expect(text).To(ContainSubstring(`--> initialize`))
	})

	It("is an editor and a model that are played by hand, and makes a scenario of it", func() {
		p := newPlace()
		ui := p.ui("--scratch", "--agent", "reference")
		play := func(act map[string]any) map[string]any {
			GinkgoHelper()
			status, now, text := ui.ask("do/scratch", act)
			Expect(status).To(Equal(200), text)
			return now
		}
		state := func() map[string]any { return play(map[string]any{}) }
		idle := func() bool { return state()["inTurn"] == false }
		play(map[string]any{"Do": "prompt", "Text": "Write it.",
			"Model": "- - tool: write_file\n    args: {path: $WORK/a.txt, content: one}\n- - text: Written.\n"})
		Eventually(func() any { return state()["asked"] }).Should(HaveLen(1))
		asks := state()["asked"].([]any)[0].(map[string]any)
		Expect(asks["title"]).To(Equal("Write a.txt"))
		play(map[string]any{"Do": "answer", "Request": asks["seq"],
			"Option": asks["options"].([]any)[0].(map[string]any)["id"]})
		Eventually(idle).Should(BeTrue())

		play(map[string]any{"Do": "prompt", "Text": "Talk.", "Model": "One two", "Hold": true})
		for _, gate := range []string{"step-1", "step-2"} {
			Eventually(func() any { return state()["held"] }).Should(Equal([]any{gate}))
			if gate == "step-1" {
				play(map[string]any{"Do": "release"})
			}
		}
		play(map[string]any{"Do": "cancel"})
		Eventually(idle).Should(BeTrue())
		play(map[string]any{"Do": "raw", "Text": `{"jsonrpc":"2.0","id":"mine","method":"_mine"}`})
		_, _, text := ui.ask("do/scratch", map[string]any{"Do": "dance"})
		Expect(text).To(ContainSubstring(`"dance" is not an action`))
		_, _, text = ui.ask("do/scratch", map[string]any{"Do": "release"})
		Expect(text).To(ContainSubstring("no gate holds the model's reply"))

		_, made, text := ui.ask("do/scenario", map[string]any{"source": 0, "file": "transcript.jsonl"})
		scenario, _ := made["text"].(string)
		Expect(scenario).To(And(ContainSubstring("permit allow_once"), ContainSubstring("await gate step-2"),
			ContainSubstring("cancel"),
			ContainSubstring("await turn cancelled")), text)
		ui.end()
		left, err := os.ReadDir(filepath.Join(p.dir, ".tmp"))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})

	It("runs what is saved again, and serves each run beside the last", func() {
		p := newPlace()
		p.write("all/talk.txtar", talk)
		p.write("all/other.txtar", talk)
		ui := p.ui("--watch", "all", "--agent", "reference")
		rounds := func() (verdicts []string) {
			_, runs, _ := ui.ask("runs", nil)
			sources, _ := runs["sources"].([]any)
			for _, s := range sources {
				from, _ := s.(map[string]any)
				results, _ := from["results"].(map[string]any)
				problem, _ := from["problem"].(string)
				all, _ := results["results"].([]any)
				verdicts = append(verdicts, fmt.Sprint(from["round"], " ", len(all), " ", results["verdict"], " ",
					problem != ""))
			}
			return verdicts
		}
		Eventually(rounds).Should(Equal([]string{"1 2 pass false"}))
		p.write("all/talk.txtar", strings.Replace(talk, "end_turn", "refusal", 1))
		Eventually(rounds).Should(Equal([]string{"1 2 pass false", "2 1 fail false"}))
		p.write("all/talk.txtar", "promt\n")
		Eventually(rounds).Should(Equal([]string{"1 2 pass false", "2 1 fail false", "3 0 <nil> true"}))
		ui.end()
		left, err := os.ReadDir(filepath.Join(p.dir, ".tmp"))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})

	It("says what it cannot show", func() {
		p := newPlace()
		Expect(p.run("ui", "--step")).To(Equal(ended{2, "", "acp-test: --step requires --scratch\n"}))
		Expect(p.run("ui", "--scratch", "--fault", "cancel-error", "--", "sh")).To(Equal(ended{2, "",
			"acp-test: --fault cancel-error: only the reference agent has deliberate faults, not sh\n"}))
		Expect(p.run("ui", "nothing")).To(Equal(ended{2, "", "acp-test: ui: stat nothing: no such file or directory; " +
			"acp-test run writes a results folder\n"}))
	})
})
