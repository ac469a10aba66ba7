package invariants_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

const lateText = `start
session s
--> 2 session/prompt s "hi"
<-- s agent_message_chunk "Hel"
<-- 2 = {"stopReason":"end_turn"}
<-- s agent_message_chunk "lo"
<-- s agent_message_chunk "!"`

const earlyUpdate = `start
--> 1 session/new {"cwd":"/w","mcpServers":[]}
<-- s available_commands_update {"availableCommands":[]}
<-- 1 = {"sessionId":"s"}`

var _ = Describe("the checker", func() {
	DescribeTable("judges by the chosen set",
		func(severity, text string, want rules.Class) {
			found, _, _ := stage(text, rules.Config{Severity: severity})
			Expect(found).To(HaveLen(1))
			Expect(found[0].Class).To(Equal(want))
		},
		Entry(nil, "", lateText, rules.Lint),
		Entry(nil, "v1", lateText, rules.Lint),
		Entry(nil, "pedantic", lateText, rules.Warn),
		Entry(nil, "emacs", lateText, rules.Fail),
		Entry(nil, "jetbrains", lateText, rules.Lint),
		Entry(nil, "v1", earlyUpdate, rules.Lint),
		Entry(nil, "zed", earlyUpdate, rules.Warn),
		Entry(nil, "jetbrains", earlyUpdate, rules.Fail),
		Entry(nil, "no such set", earlyUpdate, rules.Lint),
	)

	It("names its sets", func() {
		Expect(invariants.SeverityNames()).To(Equal([]string{"emacs", "jetbrains", "pedantic", "v1", "zed"}))
	})

	It("counts what comes again", func() {
		found, _, _ := stage(lateText, rules.Config{})
		Expect(found).To(HaveLen(1))
		Expect(found[0].Count).To(Equal(2))
		Expect(found[0].Entries).To(Equal([]int{7, 8, 9}))
		Expect(found[0].Session).To(Equal("s"))
	})

	It("keeps the number of findings bounded", func() {
		text := "start\nsession s\n--> 2 session/prompt s \"hi\"\n"
		for i := range 1000 {
			text += "<-- s tool_call_update {\"toolCallId\":\"t" + string(rune('a'+i%26)) + time.Duration(i).String() +
				"\",\"status\":\"completed\"}\n"
		}
		found, _, _ := stage(text+`<-- 2 = {"stopReason":"end_turn"}`, rules.Config{})
		Expect(len(found)).To(Equal(201))
		total := 0
		for _, f := range found {
			total += f.Count
		}
		Expect(total).To(Equal(1000))
	})

	DescribeTable("compares long prompts with a replay",
		func(words, replayed int, want ...string) {
			text := strings.Repeat("Zeile ", words)
			found, _, _ := stage(`start
session s
--> 2 session/prompt s "`+text+`"
<-- s agent_message_chunk "Well."
<-- 2 = {"stopReason":"end_turn"}
--> 3 session/load s {"cwd":"/w","mcpServers":[]}
<-- s user_message_chunk "`+text[:6*replayed]+`"
<-- s agent_message_chunk "Well."
<-- 3 = {}`, rules.Config{})
			points := []string{}
			for _, f := range found {
				points = append(points, f.Point)
			}
			Expect(points).To(ConsistOf(want))
		},
		Entry("a whole text", 16_000, 16_000),
		Entry("a text that is cut", 16_000, 2_000, "user"),
		Entry("a text whose name an agent may replay", 32_000, 2_000),
	)

	It("has rules for each version, of which some hold in both", func() {
		_, first := invariants.V1().Rule("LATE-CONTENT")
		_, second := invariants.V2().Rule("LATE-CONTENT")
		Expect(first).To(BeTrue())
		Expect(second).To(BeFalse())
		one, _ := invariants.V1().Rule("C-INIT-FIRST")
		two, _ := invariants.V2().Rule("C-INIT-FIRST")
		Expect(one.Sentence).To(Equal(two.Sentence))
	})

	It("gives no evidence about late frames without a window", func() {
		const text = `start
session s
--> 2 session/prompt s "hi"
--> session/cancel s
<-- 2 = {"stopReason":"cancelled"}`
		_, checker, _ := stage(text, rules.Config{})
		Expect(checker.Support()["CANCEL-004"]).To(Equal(1))
		_, checker, _ = stage(text+"\ncut off", rules.Config{})
		Expect(checker.Support()["CANCEL-004"]).To(Equal(0))
	})

	It("holds nothing that is missing against anybody when the run was cut off", func() {
		found, _, _ := stage("start\n--> 1 _vendor/ping {}\nwait 40s\ncut off", rules.Config{})
		Expect(found).To(BeEmpty())
	})

	It("waits as long as it is told", func() {
		const text = "start\n--> 1 _vendor/ping {}\nwait 2s"
		found, _, _ := stage(text, rules.Config{})
		Expect(found).To(BeEmpty())
		found, _, _ = stage(text, rules.Config{Patience: time.Second})
		Expect(found).To(HaveLen(1))
	})

	It("says of each kind of work why it proves nothing against a cancelled turn", func() {
		for lines, want := range map[string]string{
			"": "the log shows no model request in this turn; " +
				"no request of the turn waited for the editor; no tool call was unfinished.",
			`model model-request s {"n":1,"lane":"main"}` +
				"\n": "the model's reply was under way, but no gate held it; ",
			`model model-request s {"n":1,"lane":"main"}` + "\n" + `model model-done s {"n":1}` +
				"\n": "the model's last reply had ended; ",
			`<-- s tool_call {"toolCallId":"t","title":"Run"}` +
				"\n": `tool call "t" had not ended, but the log does not show what it waits for.`,
		} {
			found, _, _ := stage("start\nsession s\n--> 2 session/prompt s \"hi\"\n"+lines+"--> session/cancel s\n"+
				`<-- 2 = {"stopReason":"end_turn"}`, rules.Config{})
			Expect(found).To(ContainElement(And(HaveField("Point", "unproven"),
				HaveField("Message", ContainSubstring(want)))), lines)
		}
	})

	It("reads and writes classes by name", func() {
		text, err := rules.Inconclusive.MarshalText()
		Expect(err).NotTo(HaveOccurred())
		var c rules.Class
		Expect(c.UnmarshalText(text)).To(Succeed())
		Expect(c).To(Equal(rules.Inconclusive))
		Expect(c.UnmarshalText([]byte("worse"))).NotTo(Succeed())
	})
})

// Whatever either side sends, the checker must neither panic nor report
// without naming an entry.
func FuzzChecker(f *testing.F) {
	for _, rule := range invariants.V1().Rules() {
		for _, x := range invariants.V1().Examples(rule.ID) {
			f.Add([]byte(rendered(x.Text)))
		}
	}
	if paths, err := filepath.Glob("testdata/traces/*/load.jsonl"); err == nil {
		for _, p := range paths {
			if data, err := os.ReadFile(p); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		c := invariants.V1().NewChecker(rules.Config{Patience: time.Nanosecond, Start: "/start"})
		tr.Observe(c.Observe)
		for len(data) > 0 {
			line := data
			for i, b := range data {
				if b == '\n' {
					line = data[:i]
					break
				}
			}
			data = data[min(len(line)+1, len(data)):]
			switch {
			case len(line) > 0 && line[0] == '>':
				tr.AppendFrame(0, transcript.Editor, line[1:], 0)
			case len(line) > 0 && line[0] == '<':
				tr.AppendFrame(0, transcript.Agent, line[1:], 0)
			case len(line) > 0 && line[0] == 'g':
				tr.Append(transcript.Entry{Source: transcript.Model, Kind: transcript.Gate, Session: "s",
					Raw: line[1:]})
			case len(line) > 0 && line[0] == 'm':
				tr.Append(transcript.Entry{Source: transcript.Model, Kind: transcript.ModelRequest, Session: "s",
					Raw: line[1:]})
			case len(line) > 0 && line[0] == 'w':
				tr.Append(transcript.Entry{Source: transcript.Editor, Kind: transcript.Written, Ref: len(line)})
			case len(line) > 0 && line[0] == 'x':
				tr.Append(transcript.Entry{Source: transcript.Process, Kind: transcript.Exited})
			default:
				tr.AppendFrame(len(line)%2, transcript.Agent, line, 0)
			}
		}
		for _, found := range c.Finish(rules.End{Clean: true, Linger: 1}) {
			if len(found.Entries) == 0 || found.Message == "" || found.Count < 1 {
				t.Fatalf("%+v", found)
			}
			for _, seq := range found.Entries {
				if seq < 1 || seq > max(tr.Len(), 1) {
					t.Fatalf("entry %d of %d: %+v", seq, tr.Len(), found)
				}
			}
		}
	})
}

// rendered is an example as the fuzz target reads it.
func rendered(text string) string {
	var out []byte
	for e := range dialectV1().transcript(text).All() {
		switch e.Source {
		case transcript.Editor:
			out = append(out, '>')
		case transcript.Agent:
			out = append(out, '<')
		default:
			out = append(out, 'g')
		}
		out = append(append(out, e.Raw...), '\n')
	}
	return string(out)
}
