// Package mistake describes a mistake in a file that a user wrote: its position, a message, and a hint for the
// correction.
package mistake

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

// Mistake is an error in a scenario, a profile, a model script or a command
// line. The user must correct it; the agent is never at fault.
type Mistake struct {
	File         string
	Line, Column int // counted from 1; 0 if unknown
	Message      string
	// Hint helps to correct the mistake: "did you mean …", or the usage of a command.
	Hint string
}

func (m *Mistake) Error() string {
	s := m.Where() + ": " + m.Message
	if m.Hint != "" {
		s += " (" + m.Hint + ")"
	}
	return s
}

// Where returns "file:line:column". It leaves out the parts that are unknown.
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

// Catch recovers from a panic with a *Mistake and stores the mistake in *err. Functions that read files panic at the
// first mistake, and their callers defer Catch. Catch panics again for any other value.
func Catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Mistake:
		*err = p
	default:
		panic(p)
	}
}

// OfYAML converts the parser's error for invalid YAML to a Mistake.
func OfYAML(file string, err error) *Mistake {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return &Mistake{File: file, Line: 1, Column: 1, Message: err.Error()}
	}
	p := y.GetToken().Position
	return &Mistake{File: file, Line: p.Line, Column: p.Column, Message: y.GetMessage()}
}
