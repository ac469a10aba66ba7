// Package lazy postpones work that a process may not need. This program starts itself as the keeper and the reference
// agent of each run, and these processes need few of the program's tables.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles an expression on its first call. That call panics if the expression is
// invalid.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
