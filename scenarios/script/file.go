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

// A Kind is the kind of a line.
type Kind int

// The kinds of lines. A Broken line has a syntax mistake; only its Text is set.
const (
	Command Kind = iota
	Comment
	Blank
	Broken
)

// Line is one line of a script, with its blocks. Number and the columns are 0 in a line that was not parsed.
type Line struct {
	Kind   Kind
	Number int
	// Column is the column at which the text begins, from 1.
	Column int
	// Text is the line as it is written, without the surrounding space. A comment has only Text.
	Text string

	Conditions []Word // such as [linux] or [!v2]
	Negated    bool   // the line begins with !
	Name       Word   // name of the command
	Words      []Word // arguments of the command
	As         Word   // the name that the line gives to its result; the zero Word if none
	// Blocks are the lines of each { } block of the line. An empty block is not nil.
	Blocks [][]*Line
}

// ArchiveFile is a file of the archive. Line is the number of the first line of its text, or 0 if the file was not
// parsed.
type ArchiveFile struct {
	txtar.File
	Line int
}

// New returns the line of a command from a template, such as New("prompt %s as %s", text, name). Each %s takes a
// Word, a list of Words, or any other value. Words are inserted as they are spelled; other values are inserted as
// text and quoted if necessary. A zero Word inserts nothing. If the template ends with {, the line opens a block,
// which With fills. New panics if the template is not a valid line.
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

// With sets the lines of the block that the line opens, and returns the line itself.
func (l *Line) With(lines ...*Line) *Line {
	l.Blocks = [][]*Line{lines}
	return l
}

// NewComment returns a comment line.
func NewComment(text string) *Line {
	return &Line{Kind: Comment, Text: "# " + strings.ReplaceAll(text, "\n", " ")}
}

// End returns the column of the line's last character.
func (l *Line) End() int { return l.Column + len(l.Text) - 1 }

// Is reports whether the line is a command with this name.
func (l *Line) Is(name string) bool { return l.Kind == Command && l.Name.Is(name) }

// Says reports whether the line is a command that begins with these keywords: its name, and then its first arguments.
// An example is Says("session", "new").
func (l *Line) Says(keywords ...string) bool {
	if !l.Is(keywords[0]) || len(l.Words) < len(keywords)-1 {
		return false
	}
	return slices.EqualFunc(l.Words[:len(keywords)-1], keywords[1:], Word.Is)
}

// Note returns the text of a comment.
func (l *Line) Note() string { return strings.TrimSpace(strings.TrimLeft(l.Text, "#")) }

// String returns the line in the format of Format. It omits blocks, but keeps the { that opens one.
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

// spell joins words with spaces, as they are spelled.
func spell(words []Word) string {
	sources := lists.Map(words, func(w Word) string { return w.source })
	return strings.Join(lists.Where(sources, func(s string) bool { return s != "" }), " ")
}

// All yields all lines in the order of the file, including the lines in blocks.
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

// ScriptsAgent reports whether the file is an agent-side scenario: its first command, apart from protocol, is "role
// agent".
func (f *File) ScriptsAgent() bool {
	for _, l := range f.Lines {
		if l.Kind == Command && !l.Is("protocol") {
			return l.Says("role", "agent") && len(l.Words) == 1
		}
	}
	return false
}

// Protocols returns the names in the line "protocol NAME…", which must be the first command. It returns nil if there
// is no such line.
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

// Format prints a file in its canonical form. There is one space between words and at most one blank line in a row.
// Blocks are indented by two spaces or, in an agent-side scenario, by a tab. Words, comments and the files of the
// archive stay unchanged.
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
