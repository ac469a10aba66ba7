package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
)

// Rule is a property that every transcript must have. It has a statement and the requirements on which it is based.
// The code that checks it belongs to the Set.
type Rule struct {
	// ID is the name that users see, such as "CANCEL-REASON".
	ID   string
	Side Side
	// Sentence states the rule in one sentence.
	Sentence string
	// Points lists the ways to violate the rule. Elsewhere lists the ids of points that only other versions of the
	// protocol have.
	Points    []Point
	Elsewhere []string
	// Alone means that a single message can prove a violation, without the messages before and after it.
	Alone bool
}

// Point is one way to violate a rule. It has its own class and requirements.
type Point struct {
	ID           string
	Class        Class
	Requirements []string
	// Says describes the point in one sentence.
	Says string
}

// readRules reads rules from a text. Lines that begin with # are comments; a rule is a block:
//
//	ID SIDE [alone]
//	  SENTENCE
//	  CLASS POINT REQUIREMENTS: SAYS
//	  elsewhere POINTS
func readRules(text string) (all []Rule, err error) {
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch last := len(all) - 1; {
		case line == "" || line[0] == '#':
		case line[0] != ' ':
			side := OfAgent
			if slices.Contains(words, OfClient.String()) {
				side = OfClient
			}
			all = append(all, Rule{ID: words[0], Side: side, Alone: words[len(words)-1] == "alone"})
		case last < 0:
			return nil, fmt.Errorf("rules.txt:%d: text before the first rule", i+1)
		case all[last].Sentence == "":
			all[last].Sentence = strings.TrimSpace(line)
		case words[0] == "elsewhere":
			all[last].Elsewhere = words[1:]
		default:
			p, err := readPoint(line)
			if err != nil {
				return nil, fmt.Errorf("rules.txt:%d: %w", i+1, err)
			}
			all[last].Points = append(all[last].Points, p)
		}
	}
	return all, nil
}

// readPoint reads a line that defines a point.
func readPoint(line string) (p Point, err error) {
	head, says, _ := strings.Cut(line, ": ")
	words := strings.Fields(head)
	if says == "" || len(words) < 2 {
		return p, errors.New("want CLASS POINT REQUIREMENTS: SAYS")
	}
	p = Point{ID: words[1], Requirements: words[2:], Says: says}
	return p, p.Class.UnmarshalText([]byte(words[0]))
}

// Class returns the worst class among the rule's points.
func (r Rule) Class() Class {
	worst := None
	for _, p := range r.Points {
		worst = max(worst, p.Class)
	}
	return worst
}

// Requirements returns the ids of all requirements whose violation the rule can show.
func (r Rule) Requirements() []string {
	var ids []string
	for _, p := range r.Points {
		ids = lists.With(ids, p.Requirements...)
	}
	return ids
}
