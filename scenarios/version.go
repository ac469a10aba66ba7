package scenarios

import (
	"cmp"
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
// an entry that names none counts in the profile's own.
func (p *Protocol) KnownOf(of *agents.Profile, list []agents.KnownFailure) []agents.KnownFailure {
	return slices.DeleteFunc(slices.Clone(list), func(k agents.KnownFailure) bool {
		if len(k.Protocols) == 0 {
			return !p.own(of)
		}
		return !slices.Contains(k.Protocols, p.Name)
	})
}

func (e *Engine) goldens() string { return e.Protocol.GoldensOf(e.Profile) }

// ListedIn are the protocols that a new known failure of the engine's run names.
func (e *Engine) ListedIn() []string {
	if e.Protocol.own(e.Profile) {
		return nil
	}
	return []string{e.Protocol.Name}
}
