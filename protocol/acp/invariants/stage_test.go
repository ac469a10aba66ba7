package invariants_test

import (
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
)

// stage judges a text in the notation of the examples.
func stage(text string, config rules.Config) ([]rules.Finding, *rules.Checker, []string) {
	return dialectV1().stage(invariants.V1(), text, config)
}
