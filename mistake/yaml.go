package mistake

import (
	"errors"

	"github.com/goccy/go-yaml"
)

// OfYAML is what the parser says of a file that is no YAML.
func OfYAML(file string, err error) *Mistake {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return &Mistake{File: file, Line: 1, Column: 1, Message: err.Error()}
	}
	p := y.GetToken().Position
	return &Mistake{File: file, Line: p.Line, Column: p.Column, Message: y.GetMessage()}
}
