// Package must is for programs that end at their first error. An error becomes a panic, so deferred calls run. Main
// prints the error, Try returns it. Do, Get and Fail may be called only on the goroutine that runs Main or Try.
package must

import (
	"fmt"
	"os"
)

type failure struct{ error }

// Do ends the function that Main or Try runs, unless err is nil.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns v. If err is not nil, it ends the function that Main or Try runs.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Fail ends the function that Main or Try runs, with an error formatted by fmt.Errorf.
func Fail(format string, args ...any) { Do(fmt.Errorf(format, args...)) }

// Try runs a function and returns the error that ended it.
func Try(run func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	run()
	return nil
}

// Main calls run. If run ends with an error, Main prints the error after the program's name and exits with the
// status.
func Main(name string, status int, run func()) {
	if err := Try(run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(status)
	}
}
