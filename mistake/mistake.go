// Package mistake says what is wrong with a file that a user wrote: where, what
// and what would be right.
package mistake

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

// Mistake is something wrong with a scenario, a profile, a model script or a
// command line: the user's to mend, never the agent's.
type Mistake struct {
	File         string
	Line, Column int // from 1; 0 if unknown
	Message      string
	// Hint says what would be right: "did you mean …", the usage of a command.
	Hint string
}

func (m *Mistake) Error() string {
	s := m.Where() + ": " + m.Message
	if m.Hint != "" {
		s += " (" + m.Hint + ")"
	}
	return s
}

// Where is "file:line:column", as far as it is known.
func (m *Mistake) Where() string {
	s := m.File
	if m.Line > 0 {
		s += fmt.Sprintf(":%d", m.Line)
		if m.Column > 0 {
			s += fmt.Sprintf(":%d", m.Column)
		}
	}
	return s
}

// Catch turns the panic with a *Mistake, by which a reader of a file leaves at
// the first one, into the error it is. It is to be deferred.
func Catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Mistake:
		*err = p
	default:
		panic(p)
	}
}

// OfYAML is what the parser says of a file that is no YAML.
func OfYAML(file string, err error) *Mistake {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return &Mistake{File: file, Line: 1, Column: 1, Message: err.Error()}
	}
	p := y.GetToken().Position
	return &Mistake{File: file, Line: p.Line, Column: p.Column, Message: y.GetMessage()}
}
