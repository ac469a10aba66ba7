package scenarios

import (
	"fmt"
	"strings"
)

// word is one argument of a line: literal text and variables, still to be
// expanded.
type word struct {
	parts  []part
	column int
	// quoted says that the word has quotes, so that it is text even if it
	// looks like a keyword or an option.
	quoted bool
}

type part struct {
	text     string // literal text, or the name of a variable
	variable bool
}

// raw is the word as far as it is known before the run: variables stand as
// $NAME.
func (w word) raw() string {
	var b strings.Builder
	for _, p := range w.parts {
		if p.variable {
			b.WriteString("$")
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// literal is the text of a word without variables, and whether it has none.
func (w word) literal() (string, bool) {
	for _, p := range w.parts {
		if p.variable {
			return "", false
		}
	}
	return w.raw(), true
}

// cut splits a word at the first unquoted occurrence of any of the separators,
// longest first. It only looks at the first part, since the key of an option
// is never a variable.
func (w word) cut(separators ...string) (key, separator string, value word, ok bool) {
	if len(w.parts) == 0 || w.parts[0].variable {
		return "", "", word{}, false
	}
	head := w.parts[0].text
	at := -1
	for _, s := range separators {
		if i := strings.Index(head, s); i > 0 && (at < 0 || i < at || i == at && len(s) > len(separator)) {
			at, separator = i, s
		}
	}
	if at < 0 || strings.ContainsAny(head[:at], " \t\n'\"") {
		return "", "", word{}, false
	}
	value = word{column: w.column + at + len(separator), quoted: w.quoted}
	if rest := head[at+len(separator):]; rest != "" || len(w.parts) == 1 {
		value.parts = append(value.parts, part{text: rest})
	}
	value.parts = append(value.parts, w.parts[1:]...)
	return head[:at], separator, value, true
}

// split breaks a line into words: on white space, with '…' literal (” in it
// is a quote), $NAME or $NAME(ARG) a variable outside quotes, $$ a dollar, $NL a line
// break.
func split(line string) ([]word, *Mistake) {
	var words []word
	i := 0
	for {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		if i >= len(line) {
			return words, nil
		}
		w := word{column: i + 1}
		var text strings.Builder
		flush := func() {
			if text.Len() > 0 {
				w.parts = append(w.parts, part{text: text.String()})
				text.Reset()
			}
		}
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			if line[i] == '"' && i+1 == w.column && !w.quoted {
				return nil, &Mistake{Column: w.column, Message: "text is quoted with ', not with \"", Hint: "a text that begins with \" is quoted, too: '\"yes\"'"}
			}
			switch c := line[i]; c {
			case '\'':
				w.quoted = true
				start := i
				i++
				for {
					if i >= len(line) {
						return nil, &Mistake{Column: start + 1, Message: "the quote that begins here is not closed", Hint: "write '' for a quote inside quotes"}
					}
					if line[i] == '\'' {
						if i+1 < len(line) && line[i+1] == '\'' {
							text.WriteByte('\'')
							i += 2
							continue
						}
						i++
						break
					}
					text.WriteByte(line[i])
					i++
				}
			case '$':
				name, n, err := variable(line[i:])
				if err != "" {
					return nil, &Mistake{Column: i + 1, Message: err, Hint: "write $$ for a dollar"}
				}
				i += n
				switch name {
				case "":
					text.WriteByte('$')
				case "NL":
					text.WriteByte('\n')
				default:
					flush()
					w.parts = append(w.parts, part{name, true})
				}
			default:
				text.WriteByte(c)
				i++
			}
		}
		flush()
		if len(w.parts) == 0 {
			w.parts = []part{{}}
		}
		words = append(words, w)
	}
}

// variable reads a variable at the start of s and returns its name, with its
// argument ("SESSION(a)") or path ("T.title"), and its length. "$$", and a
// dollar before anything but a letter, are a dollar and have no name.
func variable(s string) (name string, n int, problem string) {
	if strings.HasPrefix(s, "$$") {
		return "", 2, ""
	}
	i := 1
	for i < len(s) && (s[i] == '_' || isLetter(s[i]) || i > 1 && isDigit(s[i])) {
		i++
	}
	if i == 1 { // as at the end of a regular expression
		return "", 1, ""
	}
	if i < len(s) && s[i] == '(' {
		end := strings.IndexByte(s[i:], ')')
		if end < 0 {
			return "", 0, "the parenthesis after the variable is not closed"
		}
		return s[1 : i+end+1], i + end + 1, ""
	}
	for i+1 < len(s) && s[i] == '.' && (isLetter(s[i+1]) || isDigit(s[i+1])) {
		j := i + 1
		for j < len(s) && (s[j] == '_' || isLetter(s[j]) || isDigit(s[j])) {
			j++
		}
		if !pathLike(s[1:i]) {
			break
		}
		i = j
	}
	return s[1:i], i, ""
}

// pathLike keeps "$WORK.go" from being read as a path into WORK: only captures
// have paths, and the variables of the run are known.
func pathLike(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	switch head {
	case "WORK", "HOME", "TMP", "LLM", "SELF", "NL":
		return false
	}
	return true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// Expand replaces the variables in a text that is no script line, such as
// llm.yaml. Unknown variables are a mistake with their line and column.
func expandText(file, text string, lookup func(string) (string, error)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '$' {
			j := strings.IndexByte(text[i:], '$')
			if j < 0 {
				j = len(text) - i
			}
			b.WriteString(text[i : i+j])
			i += j
			continue
		}
		name, n, problem := variable(text[i:])
		value := "$"
		var err error
		if problem == "" && name != "" {
			if value, err = lookup(name); err != nil {
				problem = err.Error()
			}
		}
		if problem != "" {
			before := text[:i]
			return "", &Mistake{File: file, Line: strings.Count(before, "\n") + 1, Column: i - strings.LastIndexByte(before, '\n'),
				Message: problem, Hint: "write $$ for a dollar"}
		}
		b.WriteString(value)
		i += n
	}
	return b.String(), nil
}

func unknownVariable(name string, known []string) error {
	return fmt.Errorf("unknown variable $%s%s", name, suggestion(name, known))
}
