package rules

// Severity decides the class of a finding. The zero value leaves each point the
// class it has.
type Severity struct {
	// Stricter raises every Lint and Warn by one class.
	Stricter bool
	// Raised are points, as RULE/point, that a certain client suffers from
	// more than the specification says.
	Raised map[string]Class
}

func (s Severity) of(rule string, p Point) Class {
	if c, ok := s.Raised[rule+"/"+p.ID]; ok {
		return max(c, p.Class)
	}
	switch {
	case s.Stricter && p.Class == Lint:
		return Warn
	case s.Stricter && p.Class == Warn:
		return Fail
	}
	return p.Class
}
