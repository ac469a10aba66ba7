package script

import (
	"strings"

	"github.com/acp-test/acp-test/mistake"
)

const dollarHint = "write $$ for a dollar"

// ExpandText expands the variables in a text that is not a line of a script, such as llm.yaml. An error is a mistake
// with its position in the text; file is the file's name in it.
func ExpandText(file, text string, lookup func(name string) (string, error)) (string, error) {
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
			return "", &mistake.Mistake{File: file, Line: strings.Count(before, "\n") + 1,
				Column: i - strings.LastIndexByte(before, '\n'), Message: problem, Hint: dollarHint}
		}
		b.WriteString(value)
		i += n
	}
	return b.String(), nil
}

// variable parses the variable at the start of s. It returns its name, including an argument ("SESSION(a)") or a path
// ("T.title"), and its length in bytes. name is "" for a literal dollar: "$$", or a dollar that is not followed by a
// letter or "_".
func variable(s string) (name string, n int, problem string) {
	if strings.HasPrefix(s, "$$") {
		return "", 2, ""
	}
	i := 1
	for i < len(s) && (s[i] == '_' || isLetter(s[i]) || i > 1 && isDigit(s[i])) {
		i++
	}
	if i == 1 { // for example at the end of a regular expression
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
		if !hasPath(s[1:i]) {
			break
		}
		i = j
	}
	return s[1:i], i, ""
}

// hasPath reports whether a variable can have a path. The predefined variables cannot: "$WORK.go" is $WORK followed
// by ".go".
func hasPath(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	switch head {
	case "WORK", "HOME", "TMP", "LLM", "SELF", "NL":
		return false
	}
	return true
}

// IsName reports whether a text is a valid name for a session or for the result of a line. Names consist of letters,
// digits and "_", and do not begin with a digit.
func IsName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isLetter(s[i]) && s[i] != '_' && !(i > 0 && isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
