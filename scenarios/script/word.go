package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
)

// Word is one argument of a line: literal text and unexpanded variables. The zero Word stands for no word and prints
// nothing.
type Word struct {
	Parts []Part
	// Column is the column at which the word begins, from 1; 0 in a word that was not parsed.
	Column int
	// Quoted says that the word has quotes. A quoted word is never a keyword or an option.
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

// Exists reports whether the word is not the zero Word.
func (w Word) Exists() bool { return w.Parts != nil }

// Is reports whether the word equals a keyword and has no quotes.
func (w Word) Is(keyword string) bool { return !w.Quoted && w.Raw() == keyword }

// Raw returns the text of the word with unexpanded variables, as $NAME.
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

// Literal returns the text of a word and true, or false if it has variables.
func (w Word) Literal() (string, bool) {
	variable := slices.ContainsFunc(w.Parts, func(p Part) bool { return p.Variable })
	if variable {
		return "", false
	}
	return w.Raw(), true
}

// Expand returns the text of the word with its variables replaced by their values. It returns the errors of lookup.
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

// Cut splits a word at the first occurrence of a separator, the longest if several match there. It looks only at the
// first part, because the key of an option is never a variable.
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

// Text converts a text to a word, quoted if necessary.
func Text(s string) Word {
	switch {
	case s == "", s == "as", s == "{", s == "!", strings.ContainsAny(s, " \t\n'$"), strings.ContainsAny(s[:1], `"#`):
		return Quote(s)
	}
	return Word{Parts: []Part{{Text: s}}, source: s}
}

// Quote converts a text to a quoted word. Quotes cannot hold a line break, so Quote writes $NL between two quoted
// texts.
func Quote(s string) Word {
	inside := strings.NewReplacer("'", "''", "\n", "'$NL'").Replace(s)
	return Word{Parts: []Part{{Text: s}}, Quoted: true, source: "'" + inside + "'"}
}

// Variable returns the word that stands for a variable: Variable("WORK") is $WORK.
func Variable(name string) Word {
	return Word{Parts: []Part{{Text: name, Variable: true}}, source: "$" + name}
}

// Option returns the word KEY=VALUE. The value is a Word, or any other value as a text.
func Option(key string, value any) Word {
	w, ok := value.(Word)
	if !ok {
		w = Text(fmt.Sprint(value))
	}
	return Join(Text(key+"="), w)
}

// Join returns several words as one.
func Join(words ...Word) Word {
	var out Word
	for _, w := range words {
		out.Parts = append(out.Parts, w.Parts...)
		out.Quoted = out.Quoted || w.Quoted
		out.source += w.source
	}
	return out
}

// split splits a line into words at white space. '…' is literal, and two quotes in it are one quote. Outside quotes,
// $NAME and $NAME(ARG) are variables, $$ is a dollar, and $NL is a line break.
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

// scan reads the word at the start of line and returns it and its length. The column of a mistake counts from the
// start of line.
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

// quoted reads the quoted text at the start of s. It returns the text inside the quotes and the length including them,
// or -1 if the closing quote is missing.
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
