package rules

import "sort"

// severity decides the class of a finding under one chosen set.
type severity struct {
	// stricter raises every Lint and Warn by one class.
	stricter bool
	// raised are points, as RULE/point, that a certain client suffers from
	// more than the specification says.
	raised map[string]Class
}

// Severities names the sets that Config.Severity may choose, and says what
// each is for.
func Severities() map[string]string {
	return map[string]string{
		"v1":        "what the specification of version 1 says, and nothing else",
		"pedantic":  "one class more for every lint and warn",
		"zed":       "v1, and what Zed drops: updates before the response that names their session",
		"jetbrains": "v1, and what JetBrains IDEs hang on: updates before the response that names their session",
		"emacs":     "v1, and what agent-shell for Emacs reports as a bug: content outside any turn",
	}
}

// SeverityNames returns the names of the sets, sorted.
func SeverityNames() []string {
	var names []string
	for name := range Severities() {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func severityNamed(name string) severity {
	switch name {
	case "pedantic":
		return severity{stricter: true}
	case "zed":
		return severity{raised: map[string]Class{"SESSION-KNOWN-FIRST/early": Warn}}
	case "jetbrains":
		return severity{raised: map[string]Class{"SESSION-KNOWN-FIRST/early": Fail}}
	case "emacs":
		return severity{raised: map[string]Class{
			"LATE-CONTENT/continues-turn":  Fail,
			"LATE-CONTENT/after-turn":      Fail,
			"LATE-CONTENT/agent-initiated": Fail,
		}}
	}
	return severity{}
}

func (s severity) of(rule string, p Point) Class {
	if c, ok := s.raised[rule+"/"+p.ID]; ok {
		return max(c, p.Class)
	}
	switch {
	case s.stricter && p.Class == Lint:
		return Warn
	case s.stricter && p.Class == Warn:
		return Fail
	}
	return p.Class
}
