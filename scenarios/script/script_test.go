package script_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/script"
)

func TestFormatLeavesTheShippedScenarios(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../suites/*/*.txtar")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">", 200))
	more, err := filepath.Glob("../../protocol/*/suites/*/*.txtar")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(more)).To(BeNumerically(">", 80))
	files = append(files, more...)
	for _, name := range files {
		text, err := os.ReadFile(name)
		g.Expect(err).NotTo(HaveOccurred())
		f, mistakes := script.Parse(name, text)
		g.Expect(mistakes).To(BeEmpty())
		g.Expect(string(script.Format(f))).To(Equal(string(text)), name)
	}
}

const untidy = `

#Title.
tag   a  b


  # A comment stays.
[linux] [!v2]   ! saw  tool_call title='it''s $X'$WORK

group {
await turn   as T
      group {


# inside
  saw x
}
}
both {

cancel

}{
cancel b
}



-- a.txt --
text   stays
-- b --
no newline`

const tidy = `#Title.
tag a b

# A comment stays.
[linux] [!v2] ! saw tool_call title='it''s $X'$WORK

group {
  await turn as T
  group {
    # inside
    saw x
  }
}
both {
  cancel
} {
  cancel b
}

-- a.txt --
text   stays
-- b --
no newline
`

func TestFormat(t *testing.T) {
	g := NewWithT(t)
	f, mistakes := script.Parse("f", []byte(untidy))
	g.Expect(mistakes).To(BeEmpty())
	g.Expect(string(script.Format(f))).To(Equal(tidy))

	agent, _ := script.Parse("f", []byte("# t\nrole agent\non prompt {\n  end end_turn\n}\n\n"))
	g.Expect(string(script.Format(agent))).To(Equal("# t\nrole agent\non prompt {\n\tend end_turn\n}\n"))
}

func TestParse(t *testing.T) {
	g := NewWithT(t)
	f, _ := script.Parse("f", []byte(tidy))
	l := f.Lines[4]
	g.Expect([]int{l.Number, l.Name.Column, l.Words[1].Column, l.End()}).To(Equal([]int{5, 17, 31, 51}))
	g.Expect([]any{l.Negated, l.Is("saw"), l.Says("saw", "tool_call"), l.Says("saw", "turn")}).
		To(Equal([]any{true, true, true, false}))
	key, op, value, ok := l.Words[1].Cut("!=", "=")
	g.Expect([]any{key, op, value.Raw(), value.String(), value.Column, ok}).
		To(Equal([]any{"title", "=", "it's $X$WORK", "'it''s $X'$WORK", 37, true}))
	g.Expect(f.Files[1].Line).To(Equal(23))
	var names []string
	for l := range f.All() {
		if l.Kind == script.Command {
			names = append(names, l.Name.Raw())
		}
	}
	g.Expect(names).To(Equal([]string{"tag", "saw", "group", "await", "group", "saw", "both", "cancel", "cancel"}))
}

func TestParseReportsAllMistakes(t *testing.T) {
	g := NewWithT(t)
	_, mistakes := script.Parse("f",
		[]byte("prompt 'a\n}\n  group {\n[v1] !\n  cancel as $X\nboth {\n} x\nsend $X(\nsend \"x\n -- a --\n"))
	var got []string
	for _, m := range mistakes {
		got = append(got, m.Error())
	}
	g.Expect(got).To(Equal([]string{
		"f:1:8: the quote that begins here is not closed (write '' for a quote inside quotes)",
		"f:2:1: this } closes no block",
		"f:3:9: the block that begins here is not closed",
		"f:4:1: a line needs a command",
		`f:5:13: "$X" cannot name the result of this line (a name is letters, digits and _)`,
		"f:7:2: a } must be alone on its line, or before the { of a second block",
		"f:8:6: the parenthesis after the variable is not closed (write $$ for a dollar)",
		"f:9:6: the quote that begins here is not closed (write \"\" for a quote inside quotes)",
		"f:10:2: a file begins with -- NAME -- at the start of the line",
	}))
}

func TestDoubleQuotesQuoteAWord(t *testing.T) {
	g := NewWithT(t)
	f, mistakes := script.Parse("f", []byte("send \"it's \"\"$X\"\"\" a\"b\n"))
	g.Expect(mistakes).To(BeEmpty())
	words := f.Lines[0].Words
	g.Expect([]any{words[0].Raw(), words[0].Quoted, words[1].Raw()}).To(Equal([]any{`it's "$X"`, true, `a"b`}))
	tidy := script.Format(f)
	g.Expect(string(tidy)).To(Equal("send 'it''s \"$X\"' a\"b\n"))
	again, _ := script.Parse("f", tidy)
	g.Expect(script.Format(again)).To(Equal(tidy))
}

func TestNew(t *testing.T) {
	g := NewWithT(t)
	l := script.New("prompt %s %s attach=%s as %s", script.Word{}, "it's $5", "a b", "P")
	g.Expect(l.String()).To(Equal(`prompt 'it''s $5' attach='a b' as P`))
	g.Expect(script.New("permit %s nth=%s", script.Text("hold"), 2).String()).To(Equal("permit hold nth=2"))
	g.Expect(script.New("send %s", script.Join(script.Quote(""), script.Variable("WORK"), script.Quote("/a\nb"))).
		String()).
		To(Equal(`send ''$WORK'/a'$NL'b'`))
	f := &script.File{Lines: []*script.Line{script.NewComment("a\nb"),
		script.New("group {").With(script.New("await turn")), {Kind: script.Blank}}}
	g.Expect(string(script.Format(f))).To(Equal("# a b\ngroup {\n  await turn\n}\n\n"))
	g.Expect(func() { script.New("prompt 'x") }).To(Panic())
}

func TestWordsSurvive(t *testing.T) {
	g := NewWithT(t)
	for _, s := range []string{"", "a", "a b", "it's", "$x", "a\nb", "#x", `"q"`, "{", "as", "!", "}", "[v1]"} {
		l := script.New("send %s end", s)
		f, mistakes := script.Parse("f", []byte(l.String()))
		g.Expect(mistakes).To(BeEmpty(), s)
		text, literal := f.Lines[0].Words[0].Literal()
		g.Expect([]any{text, literal}).To(Equal([]any{s, true}))
	}
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{tidy, untidy, "}{", "a {\n} {\n} {\n}", "\x00", "a\r\nb\r\n", "[x", "x as {", "-- --",
		"x {\n-- a --\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := NewWithT(t)
		tree, mistakes := script.Parse("f", []byte(text))
		if len(mistakes) > 0 {
			return
		}
		once := script.Format(tree)
		again, mistakes := script.Parse("f", once)
		g.Expect(mistakes).To(BeEmpty())
		g.Expect(string(script.Format(again))).To(Equal(string(once)))
		g.Expect(slices.Collect(words(again))).To(Equal(slices.Collect(words(tree))))
	})
}

func words(f *script.File) func(func(string) bool) {
	return func(yield func(string) bool) {
		for l := range f.All() {
			if !yield(l.String()) {
				return
			}
		}
	}
}
