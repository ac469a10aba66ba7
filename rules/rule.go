package rules

import "slices"

// Rule is one passive invariant: what it says and what backs it. The set it
// belongs to watches for it.
type Rule struct {
	// ID is the name users know it by: "CANCEL-REASON".
	ID   string
	Side Side
	// Sentence says the rule in one sentence.
	Sentence string
	// Points are the ways to break it.
	Points []Point
	// Versions are the protocol versions in which the rule holds as written;
	// nil means all.
	Versions []int
}

// Point is one way to break a rule, with a class and backing of its own.
type Point struct {
	ID           string
	Class        Class
	Requirements []string
	// Says is the point in one sentence.
	Says string
}

// Class is the worst class among the rule's points.
func (r Rule) Class() Class {
	worst := Info
	for _, p := range r.Points {
		worst = max(worst, p.Class)
	}
	return worst
}

// Requirements are the ids of all requirements the rule can show broken.
func (r Rule) Requirements() []string {
	var ids []string
	for _, p := range r.Points {
		for _, id := range p.Requirements {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
