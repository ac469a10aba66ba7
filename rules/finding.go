package rules

import (
	"fmt"
	"slices"
)

// Class says how bad something is: a finding, a check, a scenario. It is the one scale of
// all reports: the greater class is the worse one.
type Class uint8

// The classes, mildest first. Rules report Info to Fail; the others are verdicts of checks
// and scenarios. Pass, Info, Lint and Warn never make a run fail.
const (
	// None is the zero value: nothing was judged.
	None Class = iota
	// Pass found nothing wrong.
	Pass
	// Info is worth knowing and no fault: an unstable feature in use.
	Info
	// Lint breaks nothing in the specification, but users or clients suffer.
	Lint
	// Warn breaks a SHOULD, or a must that only prose backs.
	Warn
	// Skip was not run, because the agent did not advertise what it needs.
	Skip
	// Inconclusive could not be judged: what may have crossed on the wire
	// proves nothing.
	Inconclusive
	// Fail breaks a MUST, a required key, a closed enum or JSON-RPC.
	Fail
	// Error is a fault of the harness, its input or the environment, not of the agent.
	Error
)

var classNames = [...]string{"", "pass", "info", "lint", "warn", "skip", "inconclusive", "fail", "error"}

func (c Class) String() string { return classNames[min(c, Error)] }

// MarshalText writes the name of the class.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name of a class.
func (c *Class) UnmarshalText(text []byte) error {
	i := slices.Index(classNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("class %q is none of %q", text, classNames[Pass:])
	}
	*c = Class(i)
	return nil
}

// Side is the end of the connection that a rule judges.
type Side uint8

// The two sides. With our own editor a finding about the client is a fault of
// the harness, not of the agent under test.
const (
	OfAgent Side = iota
	OfClient
)

var sideNames = [...]string{"agent", "client"}

func (s Side) String() string { return sideNames[min(s, OfClient)] }

// MarshalText writes "agent" or "client".
func (s Side) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one way in which a transcript breaks a rule. The same thing done
// again to the same object is counted, not repeated.
type Finding struct {
	// Rule is the id of the rule, Point the part of it that is broken.
	Rule, Point string
	Side        Side
	Class       Class
	// Damage of a shape: "fatal" (peers drop the message) or "lossy" (peers
	// silently lose the value); else "".
	Damage string
	// Requirements are the ids of what is broken, the strongest first;
	// Citation is where the specification says the first of them.
	Requirements []string
	Citation     string
	// Conn is the agent process of the run, Session the ACP session, if any.
	Conn    int
	Session string
	// Entries are the Seqs that show it: of the first time, cause before
	// effect, and then of the last time if there were several.
	Entries []int
	// Count is how many times it was seen, at least 1.
	Count int
	// Message is one sentence in plain words. Detail is what may help beside
	// it, or "".
	Message, Detail string
}

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
