package rules

import (
	"fmt"
	"slices"
)

// Class says how bad a finding, a check or a scenario is. All reports use this
// one scale: a greater class is worse.
type Class uint8

// The classes, mildest first. Rules report Info to Fail; the others are verdicts of checks
// and scenarios. Pass, Info, Lint and Warn never make a run fail.
const (
	// None is the zero value: nothing was judged.
	None Class = iota
	// Pass means that nothing wrong was found.
	Pass
	// Info is worth knowing and not a fault: an unstable feature in use.
	Info
	// Lint breaks no sentence of the specification, but users or clients suffer.
	Lint
	// Warn breaks a SHOULD, or a must that rests only on prose.
	Warn
	// Skip was not run, because the agent did not advertise a required
	// capability.
	Skip
	// Inconclusive could not be judged, for example because messages may have
	// crossed on the wire.
	Inconclusive
	// Fail breaks a MUST, a required key, a closed enum or JSON-RPC.
	Fail
	// Error is a fault of the harness, its input or the environment, not of the agent.
	Error
)

var classNames = [...]string{"", "pass", "info", "lint", "warn", "skip", "inconclusive", "fail", "error"}

func (c Class) String() string { return classNames[min(c, Error)] }

// MarshalText returns the name of the class.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name of a class.
func (c *Class) UnmarshalText(text []byte) error {
	i := slices.Index(classNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("class %q is not one of %q", text, classNames[Pass:])
	}
	*c = Class(i)
	return nil
}

// Side is the end of the connection that a rule judges.
type Side uint8

// The two sides. With acp-test's own editor, a finding about the client is a
// fault of the harness, not of the agent under test.
const (
	OfAgent Side = iota
	OfClient
)

var sideNames = [...]string{"agent", "client"}

func (s Side) String() string { return sideNames[min(s, OfClient)] }

// MarshalText returns "agent" or "client".
func (s Side) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one way in which a transcript breaks a rule. A repetition about the
// same object is counted, not reported again.
type Finding struct {
	// Rule is the id of the rule, Point the part of it that was broken.
	Rule, Point string
	Side        Side
	Class       Class
	// Damage is the effect of a wrong shape: "fatal" (peers drop the message) or
	// "lossy" (peers silently lose the value); "" for other findings.
	Damage string
	// Requirements are the ids of the broken requirements, the strongest first;
	// Citation is the place of the first in the specification.
	Requirements []string
	Citation     string
	// Conn is the number of the agent process in the run, Session the ACP
	// session, if any.
	Conn    int
	Session string
	// Entries are the Seqs that show the finding: those of the first time, cause
	// before effect, then those of the last time if there were several.
	Entries []int
	// Count is how many times the finding occurred, at least 1.
	Count int
	// Message is one sentence in plain words. Detail is further help, or "".
	Message, Detail string
}

// Severity decides the class of a finding. The zero value keeps the class of each
// point.
type Severity struct {
	// Stricter raises every Lint and Warn by one class.
	Stricter bool
	// Raised maps points, as RULE/point, to a higher class, for a client that
	// suffers from them more than the specification says.
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
