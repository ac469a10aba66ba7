package faults

import (
	"maps"
	"slices"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/mutation"
)

// Nothing is the tap that mutations are played by, with none.
func Nothing() refagent.Hooks {
	var h refagent.Hooks
	(&tap{player: (&mutation.Mutation{}).Player()}).install(&h)
	return h
}

// Code reports whether the fault has code.
func (f Fault) Code() bool { return f.acp != nil || f.web != nil }

// Coded are the names that there is code for.
func Coded(protocol string) []string {
	switch protocol {
	case ACPv1:
		return slices.Collect(maps.Keys(inACP()))
	case AGUI:
		return slices.Collect(maps.Keys(inWeb()))
	}
	return nil
}
