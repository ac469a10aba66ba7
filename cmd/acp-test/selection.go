package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
)

// selection is what a command line chose to run.
type selection struct {
	list    []*scenarios.Scenario
	shipped bool // suites of this program are among them
	whole   bool // nothing of a collection was left out
	of      protocol
}

func (o *options) selection(h *host) (selection, error) {
	p, err := o.speaks(h)
	if err != nil {
		return selection{}, err
	}
	s := selection{of: p}
	s.shipped = len(o.paths) == 0 || len(o.suites) > 0
	s.whole = len(o.suites) == 0 || len(o.suites) == len(p.SuiteNames()) || slices.Contains(o.suites, language.AllSuites)
	if len(o.paths) > 0 {
		list, err := p.Load(o.paths...)
		if err != nil {
			return s, err
		}
		s.list = list
		for _, path := range o.paths {
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				s.whole = false
			}
		}
	}
	if s.shipped {
		list, err := p.Shipped(o.suites...)
		if err != nil {
			return s, err
		}
		s.list = append(s.list, list...)
	}
	if err := distinct(s.list); err != nil {
		return s, err
	}
	all := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x *scenarios.Scenario) bool { return x.Role == "agent" })
	roles := all - len(s.list)
	match, err := regexp.Compile(o.match)
	if err != nil {
		return s, fmt.Errorf("--run: %w", err)
	}
	all = len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x *scenarios.Scenario) bool {
		return !match.MatchString(x.ID) || !tagged(x.Tags, o.tags)
	})
	s.whole = s.whole && len(s.list) == all
	switch {
	case len(s.list) > 0:
		return s, nil
	case all > 0:
		return s, fmt.Errorf("none of %d scenarios matches%s; --list lists what does", all, o.filters())
	case roles > 0:
		return s, errors.New("all scenarios script the agent's side (role agent): acp-test editors runs those")
	}
	return s, errors.New("there are no scenarios")
}

// filters are the flags that narrow the choice, as they were typed.
func (o *choice) filters() string {
	s := ""
	if o.match != "" {
		s += fmt.Sprintf(" --run %q", o.match)
	}
	if len(o.tags) > 0 {
		s += " --tag " + strings.Join(o.tags, ",")
	}
	return s
}

func distinct(list []*scenarios.Scenario) error {
	files := map[string]string{}
	for _, s := range list {
		if other, twice := files[s.ID]; twice {
			return fmt.Errorf("%s: %s has the same id %q; put an %s at the root of one of them", s.File, other, s.ID,
				language.Config)
		}
		files[s.ID] = s.File
	}
	return nil
}

// tagged reports whether a scenario with these tags is wanted: it has one of
// the wanted tags, if there are any, and none of those with a !.
func tagged(tags, wanted []string) bool {
	any, need := false, false
	for _, w := range wanted {
		if not, ok := strings.CutPrefix(w, "!"); ok {
			if slices.Contains(tags, not) {
				return false
			}
			continue
		}
		need = true
		any = any || slices.Contains(tags, w)
	}
	return any || !need
}

// complete reports whether a golden of the store that no selected scenario has
// is without a scenario at all. Goldens of suites and of scenarios on disk may
// lie in one folder; those of the other kind say nothing.
func (s selection) complete(store *golden.Store, agent string) bool {
	if !s.whole || store == nil {
		return false
	}
	suites := s.of.SuiteNames()
	for _, id := range store.List(agent) {
		suite, _, _ := strings.Cut(filepath.ToSlash(id), "/")
		of := slices.Contains(suites, suite)
		if of != s.shipped && !slices.ContainsFunc(s.list, func(x *scenarios.Scenario) bool { return x.ID == id }) {
			return false
		}
	}
	return true
}
