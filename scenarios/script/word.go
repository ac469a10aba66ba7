package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
)

// Word is one argument of a line: literal text and variables, still to be
// expanded. The zero Word is no word at all: it prints as nothing.
type Word struct {
	Parts []Part
	// Column is where the word begins, from 1; 0 in a word that was not parsed.
	Column int
	// Quoted says that the word has quotes, so that it is text even if it
	// looks like a keyword or an option.
	Quoted bool

	source string // as it is spelled in a file
}

// Part is literal text or a variable.
type Part struct {
	Text     string // the literal text, or the name of the variable
	Variable bool
}

// String returns the word as it is spelled in a file.
func (w Word) String() string { return w.source }

// Exists reports whether there is a word.
func (w Word) Exists() bool { return w.Parts != nil }

// Is reports whether the word is a keyword: the text without quotes.
func (w Word) Is(keyword string) bool { return !w.Quoted && w.Raw() == keyword }

// Raw returns the word as far as it is known before the run: variables stand as
// $NAME.
func (w Word) Raw() string {
	var b strings.Builder
	for _, p := range w.Parts {
		if p.Variable {
			b.WriteString("$")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Literal returns the text of a word without variables, and whether it has none.
func (w Word) Literal() (string, bool) {
	variable := slices.ContainsFunc(w.Parts, func(p Part) bool { return p.Variable })
	if variable {
		return "", false
	}
	return w.Raw(), true
}

// Expand returns the text of the word with the value of each variable in its
// place. The error is that of lookup.
func (w Word) Expand(lookup func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range w.Parts {
		text := p.Text
		if p.Variable {
			var err error
			if text, err = lookup(p.Text); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Cut splits a word at the first occurrence of any of the separators, longest
// first. It only looks at the first part, since the key of an option is never a
// variable.
func (w Word) Cut(separators ...string) (key, separator string, value Word, ok bool) {
	if len(w.Parts) == 0 || w.Parts[0].Variable {
		return "", "", Word{}, false
	}
	head := w.Parts[0].Text
	at := -1
	for _, s := range separators {
		if i := strings.Index(head, s); i > 0 && (at < 0 || i < at || i == at && len(s) > len(separator)) {
			at, separator = i, s
		}
	}
	if at < 0 || strings.ContainsAny(head[:at], " \t\n'\"") {
		return "", "", Word{}, false
	}
	value = Word{Column: w.Column + at + len(separator), Quoted: w.Quoted}
	rest := head[at+len(separator):]
	if rest != "" || len(w.Parts) == 1 {
		value.Parts = append(value.Parts, Part{Text: rest})
	}
	if value.source, ok = strings.CutPrefix(w.source, head[:at]+separator); !ok { // the quotes begin before it
		value.source = "'" + w.source[min(1+at+len(separator), len(w.source)):]
	}
	value.Parts = append(value.Parts, w.Parts[1:]...)
	return head[:at], separator, value, true
}

// Text returns the word for a text, in quotes if it needs them.
func Text(s string) Word {
	switch {
	case s == "", s == "as", s == "{", s == "!", strings.ContainsAny(s, " \t\n'$"), strings.ContainsAny(s[:1], `"#`):
		return Quote(s)
	}
	return Word{Parts: []Part{{Text: s}}, source: s}
}

// Quote returns the word for a text in quotes. A line break, which no quotes can
// hold, is spelled $NL between two quoted texts.
func Quote(s string) Word {
	inside := strings.NewReplacer("'", "''", "\n", "'$NL'").Replace(s)
	return Word{Parts: []Part{{Text: s}}, Quoted: true, source: "'" + inside + "'"}
}

// Variable returns the word that is a variable: Variable("WORK") is $WORK.
func Variable(name string) Word {
	return Word{Parts: []Part{{Text: name, Variable: true}}, source: "$" + name}
}

// Option returns the word KEY=VALUE. Its value is a Word, or any other value as a
// text.
func Option(key string, value any) Word {
	w, ok := value.(Word)
	if !ok {
		w = Text(fmt.Sprint(value))
	}
	return Join(Text(key+"="), w)
}

// Join returns one word made of several.
func Join(words ...Word) Word {
	var out Word
	for _, w := range words {
		out.Parts = append(out.Parts, w.Parts...)
		out.Quoted = out.Quoted || w.Quoted
		out.source += w.source
	}
	return out
}

// split breaks a line into words: on white space, with '…' literal (two quotes in
// it are one), $NAME or $NAME(ARG) a variable outside quotes, $$ a dollar, $NL a
// line break.
func split(line string) ([]Word, *mistake.Mistake) {
	var words []Word
	for i := 0; ; {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		if i >= len(line) {
			return words, nil
		}
		w, n, bad := scan(line[i:])
		if bad != nil {
			bad.Column += i
			return nil, bad
		}
		w.Column = i + 1
		words = append(words, w)
		i += n
	}
}

// scan reads the word at the start of a line, and returns its length. The column
// of a mistake counts from there.
func scan(line string) (w Word, n int, bad *mistake.Mistake) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			w.Parts = append(w.Parts, Part{Text: text.String()})
			text.Reset()
		}
	}
	i, head := 0, ""
	if line[0] == '"' { // it quotes at the start of a word, and is itself within one
		inside, n := quoted(line)
		if n < 0 {
			return w, 0, &mistake.Mistake{Column: 1, Message: "the quote that begins here is not closed",
				Hint: `write "" for a quote inside quotes`}
		}
		w.Quoted = true
		text.WriteString(inside)
		i, head = n, "'"+strings.ReplaceAll(inside, "'", "''")+"'"
	}
	from := i
	for i < len(line) && line[i] != ' ' && line[i] != '\t' {
		switch line[i] {
		case '\'':
			w.Quoted = true
			inside, n := quoted(line[i:])
			if n < 0 {
				return w, 0, &mistake.Mistake{Column: i + 1, Message: "the quote that begins here is not closed",
					Hint: "write '' for a quote inside quotes"}
			}
			text.WriteString(inside)
			i += n
		case '$':
			name, n, problem := variable(line[i:])
			if problem != "" {
				return w, 0, &mistake.Mistake{Column: i + 1, Message: problem, Hint: dollarHint}
			}
			i += n
			switch name {
			case "":
				text.WriteByte('$')
			case "NL":
				text.WriteByte('\n')
			default:
				flush()
				w.Parts = append(w.Parts, Part{name, true})
			}
		default:
			text.WriteByte(line[i])
			i++
		}
	}
	flush()
	if len(w.Parts) == 0 {
		w.Parts = []Part{{}}
	}
	w.source = head + line[from:i]
	return w, i, nil
}

// quoted reads the quotes at the start of a text: what is inside, and how long
// they are with it; -1 if they are not closed.
func quoted(s string) (inside string, n int) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != s[0]:
		case i+1 < len(s) && s[i+1] == s[0]:
			i++
		default:
			return strings.ReplaceAll(s[1:i], s[:1]+s[:1], s[:1]), i + 1
		}
	}
	return "", -1
}
