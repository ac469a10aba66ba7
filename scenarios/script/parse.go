package script

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/mistake"
)

// Parse parses a scenario file. file is its name in the mistakes. Parse returns all syntax mistakes in the order of
// their lines. Lines without a mistake are usable.
func Parse(file string, text []byte) (*File, []*mistake.Mistake) {
	a := txtar.Parse(text)
	p := &parser{file: file}
	f := &File{}
	p.open = []opened{{lines: &f.Lines}}
	number := 0
	for l := range strings.Lines(string(a.Comment)) {
		number++
		p.line(number, strings.TrimRight(l, " \t\r\n"))
	}
	for len(p.open) > 1 {
		by := p.close()
		p.mistake(by, by.End(), "", "the block that begins here is not closed")
	}
	at := bytes.Count(a.Comment, []byte("\n")) + 2 // number of the first line of the first file's text
	for _, part := range a.Files {
		f.Files = append(f.Files, ArchiveFile{File: part, Line: at})
		at += bytes.Count(part.Data, []byte("\n")) + 1
	}
	if n := len(f.Lines); n > 0 && len(f.Files) == 0 && f.Lines[n-1].Kind == Blank {
		f.Lines = f.Lines[:n-1]
	}
	slices.SortStableFunc(p.mistakes, func(a, b *mistake.Mistake) int { return a.Line - b.Line })
	return f, p.mistakes
}

type parser struct {
	file     string
	open     []opened // the file itself, and the blocks that are open
	mistakes []*mistake.Mistake
}

// opened is an open block. by is the line that opened it; lines are added to lines.
type opened struct {
	by    *Line
	lines *[]*Line
}

func (p *parser) mistake(l *Line, column int, hint, message string) {
	m := &mistake.Mistake{File: p.file, Line: l.Number, Column: column, Message: message, Hint: hint}
	p.mistakes = append(p.mistakes, m)
}

// line adds a line to the innermost open block.
func (p *parser) line(number int, text string) {
	l := &Line{Number: number, Text: strings.TrimSpace(text)}
	l.Column = strings.Index(text, l.Text) + 1
	in := p.open[len(p.open)-1].lines
	switch {
	case l.Text == "":
		l.Kind = Blank
		if n := len(*in); n == 0 || (*in)[n-1].Kind == Blank {
			return
		}
	case strings.HasPrefix(l.Text, "#"):
		l.Kind = Comment
	case strings.HasPrefix(l.Text, "}"):
		p.brace(l)
		return
	default:
		if m := l.read(text); m != nil {
			l.Kind = Broken
			p.mistake(l, m.Column, m.Hint, m.Message)
		}
	}
	*in = append(*in, l)
	if len(l.Blocks) > 0 {
		p.open = append(p.open, opened{l, &l.Blocks[0]})
	}
}

// brace parses a line that begins with }, which closes a block and may open the next one.
func (p *parser) brace(l *Line) {
	if len(p.open) == 1 {
		p.mistake(l, l.Column, "", "this } closes no block")
		return
	}
	by := p.close()
	switch strings.TrimSpace(l.Text[1:]) {
	case "":
	case "{":
		by.Blocks = append(by.Blocks, []*Line{})
		p.open = append(p.open, opened{by, &by.Blocks[len(by.Blocks)-1]})
	default:
		p.mistake(l, l.Column+1, "", "a } must be alone on its line, or before the { of a second block")
	}
}

// close closes the innermost block, and returns the line that opened it.
func (p *parser) close() *Line {
	n := len(p.open) - 1
	in := p.open[n]
	p.open = p.open[:n]
	if lines := *in.lines; len(lines) > 0 && lines[len(lines)-1].Kind == Blank {
		*in.lines = lines[:len(lines)-1]
	}
	return in.by
}

// read splits the line of a command into conditions, !, the name, words, "as NAME" and a brace. text is the line with
// its indentation.
func (l *Line) read(text string) *mistake.Mistake {
	words, m := split(text)
	if m != nil {
		return m
	}
	for len(words) > 0 && !words[0].Quoted && strings.HasPrefix(words[0].Raw(), "[") {
		l.Conditions, words = append(l.Conditions, words[0]), words[1:]
	}
	if len(words) > 0 && words[0].Is("!") {
		l.Negated, words = true, words[1:]
	}
	if len(words) > 0 && words[0].Is("--") {
		return &mistake.Mistake{Column: words[0].Column, Message: "a file begins with -- NAME -- at the start of the line"}
	}
	if len(words) == 0 {
		return &mistake.Mistake{Column: 1, Message: "a line needs a command"}
	}
	l.Name, l.Words = words[0], words[1:]
	if n := len(l.Words); n > 0 && l.Words[n-1].Is("{") {
		l.Blocks, l.Words = [][]*Line{{}}, l.Words[:n-1]
	}
	if n := len(l.Words); n >= 2 && l.Words[n-2].Is("as") {
		l.As, l.Words = l.Words[n-1], l.Words[:n-2]
		if name, ok := l.As.Literal(); !ok || !IsName(name) {
			return &mistake.Mistake{Column: l.As.Column, Hint: "a name is letters, digits and _",
				Message: fmt.Sprintf("%q cannot name the result of this line", l.As.Raw())}
		}
	}
	return nil
}
