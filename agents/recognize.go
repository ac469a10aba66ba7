package agents

import (
	"slices"
	"strings"
)

// Recognize returns the shipped profile of the agent that a command starts: by
// its program, its script or, behind a launcher that fetches one, by the full name
// of its package. It returns nil if no profile knows it.
func Recognize(argv []string) *Profile {
	return recognized(func(p *Profile) bool { return p.starts(argv) })
}

// RecognizeInfo returns the shipped profile of the agent that gave itself this name in its
// answer to initialize, nil if no profile knows it.
func RecognizeInfo(name string) *Profile {
	return recognized(func(p *Profile) bool { return slices.Contains(p.AgentInfo, name) })
}

// recognized returns the first shipped profile that is the one, nil if none is.
func recognized(is func(*Profile) bool) *Profile {
	for _, name := range Names() {
		if p, err := Shipped(name); err == nil && is(p) {
			return p
		}
	}
	return nil
}

// starts reports whether a command starts the profile's agent.
func (p *Profile) starts(argv []string) bool {
	if len(p.Command) == 0 || p.Command[0] == "$SELF" {
		return false
	}
	if fetchers[base(argv[0])] {
		return p.Install.NPM != "" && unversioned(fetched(argv[1:])) == unversioned(p.Install.NPM)
	}
	return nameOf(argv) == scriptName(base(p.Command[0]))
}

// fetchers start a package by its name.
var fetchers = map[string]bool{"npx": true, "bunx": true, "pnpx": true}

// unversioned is the name of a package without its version.
func unversioned(spec string) string {
	if at := strings.LastIndex(spec, "@"); at > 0 {
		return spec[:at]
	}
	return spec
}

// IsDressed reports whether the profile has what another one knows.
func (p *Profile) IsDressed() bool { return p.dressed }

// Dressed is an ad-hoc profile with what another one knows of its agent: the
// environment, HOME, set-up step, login, model, tools and times. It stays ad hoc: what is known
// to fail, and goldens, are of the version that the other one was written for.
func (p *Profile) Dressed(known *Profile) *Profile {
	q := p.WithEnv(known.Env)
	q.dressed = true
	q.Home, q.NoCaches, q.Model, q.Auth = known.Home, known.NoCaches, known.Model, known.Auth
	q.Tools, q.Lanes, q.Normalize, q.Policy = known.Tools, known.Lanes, known.Normalize, known.Policy
	q.Timeouts, q.Setup, q.setupBase = known.Timeouts, known.Setup, known.base
	q.Timeouts.Start = max(p.Timeouts.Start, known.Timeouts.Start)
	return q
}
