package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Current returns the current id for a former id of a rule or of a point. The
// form of a point is RULE/POINT or "RULE POINT". Current returns any other text
// unchanged.
func (s *Set) Current(id string) string {
	if s == nil {
		return id
	}
	at := strings.IndexAny(id, "/ ")
	if at < 0 {
		return cmp.Or(s.aliases[id], id)
	}
	rule, between, point := id[:at], id[at:at+1], id[at+1:]
	if now := s.aliases[rule+"/"+point]; now != "" {
		return strings.Replace(now, "/", between, 1)
	}
	return cmp.Or(s.aliases[rule], rule) + between + point
}

// Renamed returns a sentence with the current id of an alias. It returns "" if
// id is not an alias.
func (s *Set) Renamed(id string) string {
	if now := s.Current(id); now != id {
		return fmt.Sprintf("%s is now called %s", id, now)
	}
	return ""
}

// Aliases returns the former ids of rules and points, sorted.
func (s *Set) Aliases() []string {
	return slices.Sorted(maps.Keys(s.aliases))
}

// readAliases reads the aliases of a definition. It returns an error if the new
// id does not exist or the old id still exists.
func readAliases(d Definition) (map[string]string, error) {
	known := map[string]bool{}
	for _, r := range d.Rules {
		known[r.ID] = true
		for _, p := range r.Points {
			known[r.ID+"/"+p.ID] = true
		}
	}
	aliases := map[string]string{}
	for i, line := range strings.Split(d.Aliases, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if len(words) != 2 || known[words[0]] || !known[words[1]] {
			return nil,
				fmt.Errorf("aliases.txt:%d: want OLD NEW: the id of no rule, then that of a rule or RULE/POINT, got %q",
					i+1, line)
		}
		aliases[words[0]] = words[1]
	}
	return aliases, nil
}
