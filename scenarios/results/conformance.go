package results

// Conformance is the requirement table with its verdict.
type Conformance struct {
	Verdict string `json:"verdict"` // CONFORMANT, NOT CONFORMANT, INCONCLUSIVE
	// Because are the requirements that decided the verdict, and what failed without
	// one: a check, a rule, or a scenario before its first check.
	Because      []string             `json:"because,omitempty"`
	Requirements []RequirementOutcome `json:"requirements"`
}

// RequirementOutcome is one line of the requirement table.
type RequirementOutcome struct {
	ID       string  `json:"id"`
	Tier     string  `json:"tier"`
	Level    string  `json:"level"`
	TCK      string  `json:"tck,omitempty"`
	Verdict  Verdict `json:"verdict"`
	Evidence int     `json:"evidence"`
	// Excluded: no test can show it broken; Reason says why.
	Excluded bool     `json:"excluded,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Checks   []string `json:"checks,omitempty"`
	Rules    []string `json:"rules,omitempty"`
}
