package acptest_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tellers are functions and methods whose texts a user reads.
var tellers = []string{"Errorf", "New", "Usage", "Fault", "Fail", "Mistake", "Skipped", "Fprintf", "Fprintln",
	"Sprintf", "Back", "find", "judge"}

// unclear are parts of messages that nobody reads at once, and blanks that a value left behind.
var unclear = regexp.MustCompile(`\b(beside|so often|of its own accord|none is|in place of it)\b|` +
	`\bwhat (it|they) (is|are)\b|\bis none[.,;]|\p{L} ,|` +
	`\b1 (tools|calls|requests|entries|turns|sessions|files|scenarios)\b|\butili[sz]e`)

// TestMessagesAreReadOnce holds what commands, the language of scenarios and the rules say to plain words. The
// tables of wrong command lines and of examples show each message with its values.
func TestMessagesAreReadOnce(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir == "ci" || strings.HasPrefix(s.dir, "ci/") || slices.Contains(alone, s.dir) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(tellers, calledName(call)) {
				for _, arg := range call.Args {
					if part := unclear.FindString(joined(arg)); part != "" {
						t.Errorf("%s: %q in %q: say who does what, in words that are read once", s.at(call), part,
							joined(arg))
					}
				}
			}
			return true
		})
	}
	for _, text := range []string{"a tool beside it", "it opened 1 tools", "nothing , or"} {
		if !unclear.MatchString(text) {
			t.Errorf("%q is taken for clear", text)
		}
	}
}

// calledName is the name of the function or method that a call names, "" of any other.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// joined is the text of literals that are added up, as long messages are.
func joined(n ast.Expr) string {
	if sum, ok := n.(*ast.BinaryExpr); ok {
		return joined(sum.X) + joined(sum.Y)
	}
	return literal(n)
}
