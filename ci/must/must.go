// Package must is for programs that end at their first error. An error becomes a panic, which Main prints and Try
// returns; deferred calls run. Only the goroutine that runs Main or Try may use it.
package must

import (
	"fmt"
	"os"
)

type failure struct{ error }

// Do ends the program if err is not nil.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns v, or ends the program if err is not nil.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Fail ends the program with an error formatted by fmt.Errorf.
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

// Main runs a program. It prints an error after the program's name and exits with status.
func Main(name string, status int, run func()) {
	if err := Try(run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(status)
	}
}
