package rules

import "fmt"

// Class says how bad a finding is. Fail and Inconclusive change the verdict of
// a run; Warn, Lint and Info never do.
type Class uint8

// The classes, mildest first.
const (
	// Info is worth knowing and no fault: an unstable feature in use.
	Info Class = iota
	// Lint breaks nothing in the specification, but users or clients suffer.
	Lint
	// Warn breaks a SHOULD, or a must that only prose backs.
	Warn
	// Inconclusive could not be judged: what may have crossed on the wire
	// proves nothing.
	Inconclusive
	// Fail breaks a MUST, a required key, a closed enum or JSON-RPC.
	Fail
)

var classNames = [...]string{"info", "lint", "warn", "inconclusive", "fail"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", c)
}

// MarshalText writes the name of the class.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name of a class.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range classNames {
		if name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("class %q is none of %q", text, classNames)
}

// Side is the end of the connection that a rule judges.
type Side uint8

// The two sides. With our own editor a finding about the client is a fault of
// the harness, not of the agent under test.
const (
	OfAgent Side = iota
	OfClient
)

func (s Side) String() string {
	if s == OfClient {
		return "client"
	}
	return "agent"
}

// MarshalText writes "agent" or "client".
func (s Side) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads "agent" or "client".
func (s *Side) UnmarshalText(text []byte) error {
	switch string(text) {
	case "agent":
		*s = OfAgent
	case "client":
		*s = OfClient
	default:
		return fmt.Errorf("side %q is neither agent nor client", text)
	}
	return nil
}

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
	// Count is how often it was seen, at least 1.
	Count int
	// Message is one sentence in plain words. Detail is what may help beside
	// it, or "".
	Message, Detail string
}
