package fakellm

import (
	"slices"
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	if _, err := ParseScript("example", []byte(referenceExample), func(s string) (string, error) { return s, nil }); err != nil {
		t.Errorf("the example: %v", err)
	}
	said := map[string][]string{}
	for _, s := range sections() {
		for _, w := range s.words {
			said[s.title] = append(said[s.title], strings.TrimSpace(w.key))
		}
	}
	steps := stepKeys()
	for _, o := range stepOptions {
		steps = append(steps, o.options...)
	}
	slices.Sort(steps)
	for title, want := range map[string][]string{
		"The script": scriptKeys, "A reply": slices.Compact(steps), "A fault": faultKeys,
		"Conditions": slices.Concat(textFields, flagFields), "A lane": {"when", "reply", "main"},
	} {
		for _, key := range want {
			if !slices.Contains(said[title], key) {
				t.Errorf("%s: the reference does not say what %q is", title, key)
			}
		}
		for _, key := range said[title] {
			if !slices.Contains(want, key) {
				t.Errorf("%s: the reference explains %q, which there is not", title, key)
			}
		}
	}
}
