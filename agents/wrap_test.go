package agents_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
)

// recorder wraps as record --install does.
var recorder = agents.Wrapper{Words: []string{"/bin/rec", "record", `a "b"`, "--"}, Ours: func(argv []string) int {
	if end := slices.Index(argv, "--"); argv[0] == "/bin/rec" && end > 0 && end < len(argv)-1 {
		return end + 1
	}
	return 0
}}

// home expands ~, which the reader does only at the beginning of a command line.
func home(word string) string {
	if rest, ok := strings.CutPrefix(word, "~/"); ok {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	return word
}

// commands are the command lines of settings by entry.
func commands(src []byte) map[string][]string {
	GinkgoHelper()
	list, _, err := agents.ParseSettings("s.json", src)
	Expect(err).NotTo(HaveOccurred())
	all := map[string][]string{}
	for _, p := range list {
		all[p.Title] = p.Command
	}
	return all
}

var _ = Describe("a wrapper", func() {
	files, err := filepath.Glob("testdata/settings/*.json")
	if err != nil || len(files) != 7 {
		panic("the settings are not where they should be")
	}
	for _, file := range files {
		for _, form := range []string{"as it is", "with a byte order mark and CRLF"} {
			It("stands before each command, and leaves no byte behind: "+filepath.Base(file)+" "+form, func() {
				src, err := os.ReadFile(file)
				Expect(err).NotTo(HaveOccurred())
				if form != "as it is" {
					src = []byte("\ufeff" + strings.ReplaceAll(string(src), "\n", "\r\n"))
				}
				before := commands(src)
				out, changed, already, err := recorder.Wrap("s.json", src)
				Expect(err).NotTo(HaveOccurred())
				Expect(already).To(BeEmpty())
				Expect(changed).To(HaveLen(len(before)))
				for name, argv := range commands(out) {
					argv = lists.Map(argv, home)
					Expect(argv).To(Equal(append(slices.Clone(recorder.Words), before[name]...)), name)
				}
				twice, changed, already, err := recorder.Wrap("s.json", out)
				Expect(err).NotTo(HaveOccurred())
				Expect(changed).To(BeEmpty())
				Expect(already).To(HaveLen(len(before)))
				Expect(twice).To(Equal(out))
				back, _, err := recorder.Unwrap("s.json", out)
				Expect(err).NotTo(HaveOccurred())
				Expect(string(back)).To(Equal(string(src)))
			})
		}
	}

	It("is taken out of what was changed meanwhile, and nothing else is", func() {
		src, err := os.ReadFile("testdata/settings/zed.json")
		Expect(err).NotTo(HaveOccurred())
		one := recorder
		one.Agent = "Gemini CLI"
		out, changed, _, err := one.Wrap("s.json", src)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed).To(Equal([]string{"Gemini CLI"}))
		meanwhile := strings.NewReplacer(`"vim_mode": true`, `"vim_mode": false`, `// as the README says`, ``,
			`"--acp"],`, `"--acp", "--new"],`, `// from npm`, ``).Replace
		back, _, err := recorder.Unwrap("s.json", []byte(meanwhile(string(out))))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(back)).To(Equal(meanwhile(string(src))))
	})

	DescribeTable("is taken out of what an editor formatted anew", func(formatted, want string) {
		back, _, err := recorder.Unwrap("s.json", []byte(`{"agent_servers": {"a": {`+formatted+`}}}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(back)).To(Equal(`{"agent_servers": {"a": {` + want + `}}}`))
	},
		Entry("one word a line", "\"command\": \"/bin/rec\",\n\"args\": [\n\"record\",\n\"--\",\n\"a\",\n\"-x\"\n]",
			"\"command\": \"a\",\n\"args\": [\n\n\"-x\"\n]"),
		Entry("with a trailing comma", "\"command\": \"/bin/rec\",\n\"args\": [\n\"record\",\n\"--\",\n\"a\",\n]",
			"\"command\": \"a\",\n\"args\": [\n\n]"),
		Entry("with a comment before a trailing comma", `"command": "/bin/rec", "args": ["record", "--", "a" /**/,]`,
			`"command": "a", "args": [ /**/]`),
		Entry("with a comment before the comma", `"command": "/bin/rec", "args": ["record", "--", "a" /* , */ , "-x"]`,
			`"command": "a", "args": [ /* , */ "-x"]`),
	)

	It("says what it cannot change", func() {
		_, _, _, err := recorder.Wrap("s.json", []byte(`"a": {"command": "a"}`))
		Expect(err).To(MatchError("s.json:1:1: this is only a part of the settings: name the file with agent_servers"))
		_, _, _, err = recorder.Wrap("s.json", []byte(`{"agent_servers": {"a": {"command": "a", "args": null}}}`))
		Expect(err).To(MatchError("s.json:1:25: agent_servers.a: args must be a list, not null"))
	})
})

// TestWrapUndone draws settings in every spelling, and puts a wrapper in and out.
func TestWrapUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t", " // a \"b\" ]},\n", "/* , [ */", "  "})
		s := func() string { return gap.Draw(t, "gap") }
		word := rapid.SampledFrom([]string{`"a"`, `"--"`, `""`, `"a\"b"`, `"\u0061//"`, `"é"`, `"/*"`, `"record"`})
		comma := func() string { return rapid.SampledFrom([]string{"", ","}).Draw(t, "trailing") }
		list := func(open, end string, items []string) string {
			text := open + s()
			for i, item := range items {
				text += item + s()
				if i < len(items)-1 {
					text += "," + s()
				} else {
					text += comma() + s()
				}
			}
			return text + end
		}
		entry := func() string {
			members := []string{`"command"` + s() + ":" +
				s() + rapid.SampledFrom([]string{`"x"`, `"\u0078y"`, `"~/z"`}).Draw(t, "command")}
			if rapid.Bool().Draw(t, "args") {
				members = append(members, `"args"`+s()+":"+
					s()+list("[", "]", rapid.SliceOfN(word, 0, 3).Draw(t, "words")))
			}
			if rapid.Bool().Draw(t, "more") {
				members = append(members, `"env": {"A": "args"}`)
			}
			return list("{", "}", rapid.Permutation(members).Draw(t, "members"))
		}
		var entries []string
		for range rapid.IntRange(1, 3).Draw(t, "entries") {
			entries = append(entries, word.Draw(t, "name")+s()+":"+s()+entry())
		}
		src := []byte(s() + list("{", "}", []string{`"agent_servers": ` + list("{", "}", entries), `"args": []`}) + s())
		out, changed, _, err := recorder.Wrap("s.json", src)
		if err != nil || len(changed) != len(entries) {
			t.Fatalf("%v of %s: %v", changed, src, err)
		}
		if back, _, err := recorder.Unwrap("s.json", out); err != nil || string(back) != string(src) {
			t.Fatalf("%s\nbecame\n%s\nand then\n%s: %v", src, out, back, err)
		}
	})
}
