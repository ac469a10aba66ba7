package rules

import (
	"fmt"
	"slices"
)

// Class is the severity of a finding, or the verdict of a check or a scenario. All reports use this one scale. A
// greater class is worse.
type Class uint8

// The classes, mildest first. Rules report the classes Info to Fail; all classes can be verdicts of checks and
// scenarios. Pass, Info, Lint and Warn never make a run fail.
const (
	// None is the zero value: nothing was checked.
	None Class = iota
	// Pass means that a check found no fault.
	Pass
	// Info is a fact that is no fault, such as the use of an unstable feature.
	Info
	// Lint violates no sentence of the specification, but harms users or clients.
	Lint
	// Warn violates a SHOULD, or a must that appears only in prose.
	Warn
	// Skip means that a check or scenario did not run, because the agent lacks a required capability.
	Skip
	// Inconclusive means that a judgment was impossible, for example because messages may have crossed on the wire.
	Inconclusive
	// Fail violates a MUST, a required key, a closed enum or JSON-RPC.
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

// Side is the end of the connection whose behavior a rule judges.
type Side uint8

// The two sides. If acp-test itself plays the client, a finding about the client is a fault of the harness, not of
// the agent under test.
const (
	OfAgent Side = iota
	OfClient
)

var sideNames = [...]string{"agent", "client"}

func (s Side) String() string { return sideNames[min(s, OfClient)] }

// MarshalText returns "agent" or "client".
func (s Side) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one violation of a rule in a transcript. A repeated violation by the same object only increases Count.
type Finding struct {
	// Rule is the id of the violated rule; Point is the id of its violated point.
	Rule, Point string
	Side        Side
	Class       Class
	// Damage is the effect of a malformed value: "fatal" (peers drop the message), "lossy" (peers silently lose the
	// value), or "" for other findings.
	Damage string
	// Requirements lists the ids of the violated requirements, the strongest first. Citation is the place of the first
	// one in the specification.
	Requirements []string
	Citation     string
	// Conn is the number of the agent process in the run. Session is the id of
	// the ACP session, or "".
	Conn    int
	Session string
	// Entries lists the Seqs that show the first violation, cause before effect. If there are several violations, those
	// of the last one follow.
	Entries []int
	// Count is how many times the violation occurred; at least 1.
	Count int
	// Message describes the violation in one plain sentence. Detail is further help, or "".
	Message, Detail string
}

// Severity decides the class of a finding. Its zero value keeps the class of
// each point.
type Severity struct {
	// Stricter raises every Lint and Warn by one class.
	Stricter bool
	// Raised maps a point, as RULE/point, to a higher class. It is for a client that the violation harms more than the
	// specification suggests.
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
