//go:build unix

package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"
)

// wrong reads the table of wrong command lines: sections of lines with their messages, and the
// files of the folder where they are given.
func wrong() (sections [][][2]string, names []string, files []txtar.File) {
	archive, err := txtar.ParseFile("testdata/wrong.txtar")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(archive.Comment)) {
		line = strings.TrimSuffix(line, "\n")
		last := len(sections) - 1
		switch name, section := strings.CutPrefix(line, "# "); {
		case section:
			names, sections = append(names, name), append(sections, nil)
		case strings.HasPrefix(line, "$ "):
			sections[last] = append(sections[last], [2]string{line[2:], ""})
		case last >= 0 && line != "":
			row := &sections[last][len(sections[last])-1]
			row[1] += line + "\n"
		}
	}
	return sections, names, archive.Files
}

var spaced = regexp.MustCompile(`'[^']*'|\S+`)

var _ = Describe("a wrong command line", func() {
	sections, names, files := wrong()
	for i, name := range names {
		It("says what is wrong, where, and what to do, and writes nothing: "+name, func() {
			oneOf(i)
			p := newPlace()
			root := p.dir
			for _, f := range files {
				p.write(f.Name, strings.ReplaceAll(string(f.Data), "\n\\-- ", "\n-- "))
			}
			before := p.all()
			for _, row := range sections[i] {
				var words []string
				for _, w := range spaced.FindAllString(row[0], -1) {
					words = append(words, strings.Trim(w, "'"))
				}
				p.dir = root
				if words[0] == "cd" {
					p.dir, words = filepath.Join(root, words[1]), words[2:]
				}
				got := p.run(words...)
				p.dir = root
				want := "acp-test: " + row[1]
				if words[0] == "lint" && !strings.HasPrefix(row[1], "lint: ") {
					got.out, got.err, want = "", got.out, row[1] // what it finds is what it prints
				}
				want = strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
				Expect(got.err).To(MatchRegexp("^(?s:"+want+")$"), row[0])
				Expect([]any{got.code, got.out}).To(Equal([]any{2, ""}), row[0])
				Expect(p.all()).To(Equal(before), row[0])
			}
		})
	}

	It("is none, but a replay without a turn proves nothing, and the shape of a message comes before what "+
		"follows from it", func() {
		p := newPlace()
		for _, f := range files {
			p.write(f.Name, string(f.Data))
		}
		got := p.run("replay", "session.jsonl", "--against", "nothing")
		Expect([]any{got.code, got.out}).To(Equal([]any{2, got.out}))
		Expect(got.out).To(And(ContainSubstring("the recording holds no turn"), ContainSubstring("\nINCONCLUSIVE ")))
		p.write("shape.txt", p.read("session.jsonl")+"--> "+
			`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`+
			"\n<-- "+`{"jsonrpc":"2.0","id":1,"result":{"sessionid":"s"}}`+
			"\n--> "+`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s",`+
			`"prompt":[{"type":"text","text":"hi"}]}}`+
			"\n<-- "+`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`+"\n")
		Expect(p.run("check", "shape.txt").out).To(MatchRegexp(`(?s)\nFAIL  SHAPE .*\nFAIL  C-INIT-FIRST `))
		p.env = append(p.env, "MY_TOKEN=required") // a word of ours, as in auth/required
		Expect(p.run("run", "--suite", "auth", "-q").code).To(Equal(0))
	})

	It("of an agent that is not there says so", func() {
		got := newPlace().run("run", "--run", "^prompt-turn/text$", "--", "no-such-agent")
		Expect(got).To(Equal(ended{2, "", "acp-test: starting no-such-agent: no program \"no-such-agent\" in PATH\n"}))
	})

	It("is told from help, which is no mistake", func() {
		p := newPlace()
		for topic, begins := range map[string]string{"gate": "# Gates\n", "goldens": "# Goldens\n",
			"verdicts": "# Verdicts\n", "cause": "# Causes\n", "liberties": "# Liberties\n", "llm": "# Model script\n",
			"profile": "", "run": "Runs scenarios", "report convert": "Writes a results.json"} {
			got := p.run(append([]string{"help"}, strings.Fields(topic)...)...)
			Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}), topic)
			Expect(got.out).To(HavePrefix(begins), topic)
		}
		Expect(p.run("--version").out).To(MatchRegexp(`^acp-test \S+\n$`))
		short, long := p.run("prompt", "-h").out, p.run("help", "prompt").out
		Expect(short).To(HavePrefix("Prompts an agent from the terminal: one turn, or a conversation.\n"))
		Expect(short).To(HaveSuffix("\nMore: acp-test help prompt\n"))
		Expect(len(long)).To(BeNumerically(">", 1000+len(short)))
		Expect(long).To(ContainSubstring("acp-test prompt --agent reference hello"))
	})
})

// all are the files of a place with their text, but for those of its temporary folder.
func (p *place) all() map[string]string {
	GinkgoHelper()
	files := map[string]string{}
	Expect(fs.WalkDir(os.DirFS(p.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".tmp" {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			files[name] = p.read(name)
		}
		return err
	})).To(Succeed())
	return files
}
