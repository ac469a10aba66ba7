package results

// Cause is one thing that is wrong, wherever it was seen: what breaks one point of a
// rule, and the checks of the same requirement that miss beside it, are one cause.
type Cause struct {
	// ID is the rule with its point, else the requirement, else the check, else "golden"
	// or nothing.
	ID string `json:"id,omitempty"`
	// Class is the worst with which it was seen.
	Class        Verdict  `json:"class"`
	Title        string   `json:"title"` // one sentence
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	// Known: it is a known failure in each of the Scenarios.
	Known bool `json:"known,omitempty"`
	// Scenarios are those that show it, the one with the fewest frames first.
	Scenarios []string `json:"scenarios"`
}
