package lexicon_test

import (
	"testing"

	"github.com/acp-test/acp-test/protocol/lexicon"
	"github.com/acp-test/acp-test/scenarios"
)

const table = `greet NAME [loud]
  acts captures cuts
  greet somebody
  NAME is anybody,
  also nobody.

seen
  back negatable
  ask what was seen
`

func nothing(*scenarios.Line) scenarios.Step { return nil }

func TestCommands(t *testing.T) {
	list := lexicon.Commands(table, lexicon.Compilers{"greet": nothing, "seen": nothing})
	if len(list) != 2 {
		t.Fatalf("got %d commands", len(list))
	}
	greet, seen := list[0], list[1]
	if greet.Name != "greet" || greet.Args != "NAME [loud]" || greet.Group != "acts" ||
		greet.Summary != "greet somebody" ||
		greet.Detail != "NAME is anybody,\nalso nobody." || !greet.Captures || !greet.Cuts || greet.Negatable {
		t.Errorf("got %+v", greet)
	}
	if seen.Args != "" || seen.Detail != "" || seen.Group != "back" || !seen.Negatable || seen.Compile == nil {
		t.Errorf("got %+v", seen)
	}
}

func TestACommandWithoutAFunctionPanics(t *testing.T) {
	defer func() {
		if said := recover(); said != "the command seen has no function" {
			t.Errorf("it panics with %v", said)
		}
	}()
	lexicon.Commands(table, lexicon.Compilers{"greet": nothing})
}
