package acp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp"
)

// The guide names the suites and the words that version 2 alone has, and its rules.
func TestGuideOfVersion2(t *testing.T) {
	text, err := os.ReadFile("../../docs/acp-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{}
	for _, c := range acp.V1().Words {
		first[c.Name] = true
	}
	names := append([]string{"V2-STATES", "V2-RESUME", "--protocol acp-v2 --faults"}, own...)
	for _, c := range acp.V2().Words {
		if !first[c.Name] {
			names = append(names, "`"+c.Name)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(text), name) {
			t.Errorf("the guide does not name %s", name)
		}
	}
}
