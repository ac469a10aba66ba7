// Package lazy postpones work that a process may never need. This program starts itself as the
// keeper and as the agent of each run, and those need few of its tables.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns what compiles an expression when it is first called. A wrong expression
// panics then.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
