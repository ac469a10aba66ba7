package scenarios

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios/language"
)

// GoldensOf is the name under which a profile has its goldens in this protocol: the
// profile's, with the protocol's behind it where the profile is for another one.
func (p *Protocol) GoldensOf(of *agents.Profile) string {
	if p.own(of) {
		return of.Name
	}
	return of.Name + "-" + p.Name
}

// own reports whether a profile is for this protocol.
func (p *Protocol) own(of *agents.Profile) bool {
	return p.Name == "" || p.Name == cmp.Or(of.Protocol, language.Default)
}

// KnownOf are those of a list of known failures of a profile that count in this protocol:
// an entry that names none counts in the profile's own. One that names a rule by an alias
// counts for the rule.
func (p *Protocol) KnownOf(of *agents.Profile, list []agents.KnownFailure) (here []agents.KnownFailure) {
	for _, k := range list {
		if slices.Contains(k.Protocols, p.Name) || len(k.Protocols) == 0 && p.own(of) {
			k.ID = p.Rules.Current(k.ID)
			here = append(here, k)
		}
	}
	return here
}

// renamed says of each known failure that names a rule by an alias what it is called now.
func (e *Engine) renamed() (notes []string) {
	for _, k := range append(slices.Clone(e.Known), e.Profile.KnownFailures...) {
		if now := e.Protocol.Rules.Renamed(k.ID); now != "" {
			notes = append(notes, fmt.Sprintf("known failure %s:%d: %s", k.File, k.Line, now))
		}
	}
	return notes
}

func (e *Engine) goldens() string { return e.Protocol.GoldensOf(e.Profile) }

// ListedIn are the protocols that a new known failure of the engine's run names.
func (e *Engine) ListedIn() []string {
	if e.Protocol.own(e.Profile) {
		return nil
	}
	return []string{e.Protocol.Name}
}
