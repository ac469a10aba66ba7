package golden_test

import (
	"testing"

	"github.com/acp-test/acp-test/golden"
)

func TestGoesOn(t *testing.T) {
	const want = "--> prompt\n<-- tool_call\n--> selected\n<-- commands\n<-- agent_message \"Once upon\"\n"
	for name, c := range map[string]struct {
		got string
		on  bool
	}{
		"the same":        {want, true},
		"more at the end": {want + "<-- end_turn\n", true},
		"more between the last": {"--> prompt\n<-- tool_call\n--> selected\n<-- plan\n<-- commands\n" +
			"<-- agent_message \"Once upon a time\"\n", true},
		"more before the last act": {"--> prompt\n<-- plan\n<-- tool_call\n--> selected\n<-- commands\n" +
			"<-- agent_message \"Once upon\"\n", false},
		"another text": {"--> prompt\n<-- tool_call\n--> selected\n<-- commands\n<-- agent_message \"Twice\"\n",
			false},
		"less": {"--> prompt\n<-- tool_call\n--> selected\n<-- commands\n", false},
		"another order": {"--> prompt\n<-- tool_call\n--> selected\n<-- agent_message \"Once upon\"\n<-- commands\n",
			false},
	} {
		if on := golden.GoesOn(want, c.got); on != c.on {
			t.Errorf("%s: goes on: %v, want %v", name, on, c.on)
		}
	}
}
