package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
)

// Word is one argument of a line: literal text and unexpanded variables. The zero Word means that there is no word,
// and prints nothing.
type Word struct {
	Parts []Part
	// Column is the column of the word's first character, from 1. It is 0 if the word was not parsed.
	Column int
	// Quoted means that the word contains quotes. A quoted word is never a keyword or an option.
	Quoted bool

	source string // the word as it is spelled in a file
}

// Part is literal text or a variable.
type Part struct {
	Text     string // literal text, or the name of a variable
	Variable bool
}

// String returns the word as it is spelled in a file.
func (w Word) String() string { return w.source }

// Exists reports whether the word differs from the zero Word.
func (w Word) Exists() bool { return w.Parts != nil }

// Is reports whether the word is this keyword, without quotes.
func (w Word) Is(keyword string) bool { return !w.Quoted && w.Raw() == keyword }

// Raw returns the text of the word, with unexpanded variables in the form $NAME.
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

// Literal returns the text of a word without variables. It returns false if the word has variables.
func (w Word) Literal() (string, bool) {
	variable := slices.ContainsFunc(w.Parts, func(p Part) bool { return p.Variable })
	if variable {
		return "", false
	}
	return w.Raw(), true
}

// Expand returns the text of the word with its variables expanded by lookup. It returns an error if lookup does.
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

// Cut splits a word at the first separator. If several separators match at the same place, it uses the longest. It
// searches only the first part of the word, because the key of an option is never a variable.
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
	if value.source, ok = strings.CutPrefix(w.source, head[:at]+separator); !ok { // a quote begins before the separator
		value.source = "'" + w.source[min(1+at+len(separator), len(w.source)):]
	}
	value.Parts = append(value.Parts, w.Parts[1:]...)
	return head[:at], separator, value, true
}

// Text converts a text to a word. It adds quotes if necessary.
func Text(s string) Word {
	switch {
	case s == "", s == "as", s == "{", s == "!", strings.ContainsAny(s, " \t\n'$"), strings.ContainsAny(s[:1], `"#`):
		return Quote(s)
	}
	return Word{Parts: []Part{{Text: s}}, source: s}
}

// Quote converts a text to a quoted word. Quoted text cannot contain a line break, so Quote writes $NL between two
// quoted parts.
func Quote(s string) Word {
	inside := strings.NewReplacer("'", "''", "\n", "'$NL'").Replace(s)
	return Word{Parts: []Part{{Text: s}}, Quoted: true, source: "'" + inside + "'"}
}

// Variable returns a word that is a variable: Variable("WORK") is $WORK.
func Variable(name string) Word {
	return Word{Parts: []Part{{Text: name, Variable: true}}, source: "$" + name}
}

// Option returns the word KEY=VALUE. If value is not a Word, it is converted to text.
func Option(key string, value any) Word {
	w, ok := value.(Word)
	if !ok {
		w = Text(fmt.Sprint(value))
	}
	return Join(Text(key+"="), w)
}

// Join concatenates words to one word.
func Join(words ...Word) Word {
	var out Word
	for _, w := range words {
		out.Parts = append(out.Parts, w.Parts...)
		out.Quoted = out.Quoted || w.Quoted
		out.source += w.source
	}
	return out
}

// split splits a line into words at white space. Text in '…' is literal, and two quotes in a row in it mean one
// quote. Outside quotes, $NAME and $NAME(ARG) are variables, $$ is a dollar, and $NL is a line break.
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

// scan parses the word at the start of line. It returns the word and its length in bytes. The column of a mistake is
// relative to the start of line.
func scan(line string) (w Word, n int, bad *mistake.Mistake) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			w.Parts = append(w.Parts, Part{Text: text.String()})
			text.Reset()
		}
	}
	i, head := 0, ""
	if line[0] == '"' { // a double quote opens a quoted text only at the start of a word
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

// quoted parses the quoted text at the start of s. It returns the text without quotes, and the length including
// quotes. n is -1 if the closing quote is missing.
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
