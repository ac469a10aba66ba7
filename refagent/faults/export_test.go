package faults

import "github.com/acp-test/acp-test/refagent"

// Nothing is the tap that all faults on the wire are made of, without one.
func Nothing() refagent.Hooks { return (&tap{}).hooks() }
