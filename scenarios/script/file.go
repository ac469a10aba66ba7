package script

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"golang.org/x/tools/txtar"
)

// File is a scenario file: a script, and the files of its archive.
type File struct {
	Lines []*Line
	Files []ArchiveFile
}

// A Kind says what a line is.
type Kind int

// The kinds of lines. A Broken one could not be read; its Text is kept.
const (
	Command Kind = iota
	Comment
	Blank
	Broken
)

// Line is one line of a script, with the blocks it opens. Number and the columns
// are 0 in a line that was not parsed.
type Line struct {
	Kind   Kind
	Number int
	// Column is where the text begins.
	Column int
	// Text is the line as it was written, without the space around it. Of a
	// comment, it is all there is.
	Text string

	Conditions []Word // [linux], [!v2]
	Negated    bool   // it begins with !
	Name       Word   // of the command
	Words      []Word // its arguments
	As         Word   // the name that it gives to what comes of it
	// Blocks are the lines between { and }, and between the next { and }. A
	// block without lines is not nil.
	Blocks [][]*Line
}

// ArchiveFile is a file of the archive. Line is where its text begins; 0 if it
// was not parsed.
type ArchiveFile struct {
	txtar.File
	Line int
}

// New makes a line of a command from a template, such as New("prompt %s as %s",
// text, name). Each %s takes a Word, or several, as they are spelled, and any
// other value as a text, in quotes if it needs them. A zero Word leaves nothing.
// A template that ends in { opens a block, which With fills. New panics if the
// template is no line.
func New(template string, args ...any) *Line {
	spelled := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case Word:
			spelled[i] = a.source
		case []Word:
			spelled[i] = spell(a)
		default:
			spelled[i] = Text(fmt.Sprint(a)).source
		}
	}
	l := &Line{Text: strings.TrimSpace(fmt.Sprintf(template, spelled...))}
	if bad := l.read(l.Text); bad != nil {
		panic(fmt.Sprintf("script.New: %q: %v", l.Text, bad))
	}
	l.Text = l.String()
	return l
}

// With returns the line with lines in the block that it opens.
func (l *Line) With(lines ...*Line) *Line {
	l.Blocks = [][]*Line{lines}
	return l
}

// NewComment makes a comment.
func NewComment(text string) *Line {
	return &Line{Kind: Comment, Text: "# " + strings.ReplaceAll(text, "\n", " ")}
}

// End returns the column of the last character of the line.
func (l *Line) End() int { return l.Column + len(l.Text) - 1 }

// Is reports whether the line is a command of that name.
func (l *Line) Is(name string) bool { return l.Kind == Command && l.Name.Is(name) }

// Says reports whether the line is a command whose name and first words are
// those keywords, such as Says("session", "new").
func (l *Line) Says(keywords ...string) bool {
	if !l.Is(keywords[0]) || len(l.Words) < len(keywords)-1 {
		return false
	}
	return slices.EqualFunc(l.Words[:len(keywords)-1], keywords[1:], Word.Is)
}

// Note returns what a comment says.
func (l *Line) Note() string { return strings.TrimSpace(strings.TrimLeft(l.Text, "#")) }

// String returns the line as Format prints it, without its blocks but with the {
// that opens one.
func (l *Line) String() string {
	if l.Kind != Command {
		return l.Text
	}
	var negated, as, brace Word
	if l.Negated {
		negated.source = "!"
	}
	if l.As.Exists() {
		as.source = "as"
	}
	if l.Blocks != nil {
		brace.source = "{"
	}
	return spell(slices.Concat(l.Conditions, []Word{negated, l.Name}, l.Words, []Word{as, l.As, brace}))
}

// spell writes words with a space between them.
func spell(words []Word) string {
	sources := lists.Map(words, func(w Word) string { return w.source })
	return strings.Join(lists.Where(sources, func(s string) bool { return s != "" }), " ")
}

// All returns the lines with those of their blocks, in the order of the file.
func (f *File) All() iter.Seq[*Line] {
	return func(yield func(*Line) bool) { walk(f.Lines, yield) }
}

func walk(lines []*Line, yield func(*Line) bool) bool {
	for _, l := range lines {
		if !yield(l) {
			return false
		}
		for _, b := range l.Blocks {
			if !walk(b, yield) {
				return false
			}
		}
	}
	return true
}

// ScriptsAgent reports whether the file scripts the agent: it begins with "role
// agent", behind its protocols.
func (f *File) ScriptsAgent() bool {
	for _, l := range f.Lines {
		if l.Kind == Command && !l.Is("protocol") {
			return l.Says("role", "agent") && len(l.Words) == 1
		}
	}
	return false
}

// Protocols returns what a file names as its protocols, in a first line "protocol NAME…";
// nothing if it names none.
func (f *File) Protocols() (names []string) {
	for _, l := range f.Lines {
		if l.Kind != Command {
			continue
		}
		if l.Is("protocol") {
			names = append(names, lists.Map(l.Words, Word.Raw)...)
		}
		break
	}
	return names
}

// Format prints a file in its canonical form: one space between words, blocks
// indented by two spaces, or by a tab where the file scripts the agent, and never
// two blank lines in a row. Words, comments and the files of the archive stay as
// they are.
func Format(f *File) []byte {
	var b strings.Builder
	indent := "  "
	if f.ScriptsAgent() {
		indent = "\t"
	}
	format(&b, f.Lines, "", indent)
	a := txtar.Archive{Comment: []byte(b.String())}
	a.Files = append(a.Files, lists.Map(f.Files, func(part ArchiveFile) txtar.File { return part.File })...)
	return txtar.Format(&a)
}

func format(b *strings.Builder, lines []*Line, depth, indent string) {
	for _, l := range lines {
		if l.Kind == Blank {
			b.WriteString("\n")
			continue
		}
		b.WriteString(depth + l.String() + "\n")
		for i, block := range l.Blocks {
			if i > 0 {
				b.WriteString(depth + "} {\n")
			}
			format(b, block, depth+indent, indent)
		}
		if l.Blocks != nil {
			b.WriteString(depth + "}\n")
		}
	}
}
