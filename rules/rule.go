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
	// Alone says that one message shows the rule broken, whatever comes before and after it.
	Alone bool
}

// Point is one way to break a rule, with a class and backing of its own.
type Point struct {
	ID           string
	Class        Class
	Requirements []string
	// Says is the point in one sentence.
	Says string
}

// Draft is a Rule while it is written: a method for each class adds a point and returns
// its index. Family stands before the ids of the requirements that points name.
type Draft struct {
	Rule
	Family string
	// Version is that of the protocol for which the rule is written, where a protocol has
	// several.
	Version int
}

// In returns the draft if it is written for a version, else nil. A point that is added to a
// nil draft has the index -1: a Watch neither counts nor reports it.
func (d *Draft) In(version int) *Draft {
	if d.Version != version {
		return nil
	}
	return d
}

// Fail adds a point of the class Fail.
func (d *Draft) Fail(id, says string, requirements ...string) int {
	return d.add(Fail, id, says, requirements)
}

// Warn adds a point of the class Warn.
func (d *Draft) Warn(id, says string, requirements ...string) int {
	return d.add(Warn, id, says, requirements)
}

// Lint adds a point of the class Lint.
func (d *Draft) Lint(id, says string, requirements ...string) int {
	return d.add(Lint, id, says, requirements)
}

// Inconclusive adds a point of the class Inconclusive.
func (d *Draft) Inconclusive(id, says string, requirements ...string) int {
	return d.add(Inconclusive, id, says, requirements)
}

// Info adds a point of the class Info.
func (d *Draft) Info(id, says string, requirements ...string) int {
	return d.add(Info, id, says, requirements)
}

func (d *Draft) add(c Class, id, says string, requirements []string) int {
	if d == nil {
		return -1
	}
	for i, r := range requirements {
		requirements[i] = d.Family + r
	}
	d.Points = append(d.Points, Point{ID: id, Class: c, Requirements: requirements, Says: says})
	return len(d.Points) - 1
}

// Class is the worst class among the rule's points.
func (r Rule) Class() Class {
	worst := None
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
