package rules_test

import (
	"strings"
	"testing"

	"github.com/acp-test/acp-test/rules"
)

func TestAliases(t *testing.T) {
	define := func(aliases string) rules.Definition {
		return rules.Definition{Rules: []rules.Rule{shout}, Aliases: aliases,
			Watch:      func(c *rules.Checker) rules.Observer { return listener{c.Watch(shout)} },
			Severities: map[string]rules.Severity{"soft": {Raised: map[string]rules.Class{"YELL/noisy": rules.Error}}}}
	}
	set, err := rules.New(define("# former ids\nYELL SHOUT\nYELL/noisy SHOUT/loud\n"))
	if err != nil {
		t.Fatal(err)
	}
	for old, now := range map[string]string{"YELL": "SHOUT", "YELL/noisy": "SHOUT/loud", "YELL noisy": "SHOUT loud",
		"YELL/other": "SHOUT/other", "SHOUT": "SHOUT", "SHOUT/loud": "SHOUT/loud", "ends": "ends", "": ""} {
		if got := set.Current(old); got != now {
			t.Errorf("%q is now %q, want %q", old, got, now)
		}
	}
	if got, want := set.Renamed("YELL"), "YELL is now called SHOUT"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := set.Renamed("SHOUT"); got != "" {
		t.Errorf("SHOUT is no alias, got %q", got)
	}
	if r, ok := set.Rule("YELL"); !ok || r.ID != "SHOUT" {
		t.Errorf("the rule YELL is %q", r.ID)
	}
	if off := set.NewChecker(rules.Config{Off: map[string]string{"YELL": "test"}}).Evidence(); len(off) > 0 {
		t.Errorf("rules that are on: %v", off)
	}
	for _, wrong := range []string{"YELL", "YELL WHISPER", "SHOUT SHOUT", "A B C"} {
		if _, err := rules.New(define(wrong)); err == nil ||
			!strings.HasPrefix(err.Error(), "aliases.txt:1: want OLD NEW") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
