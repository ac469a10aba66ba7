package fakellm

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page of model scripts explains each key that the parser knows, and no other.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/model-script.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "\n## ")
	_, example, _ := strings.Cut(parts[0], "```yaml\n")
	example, _, fenced := strings.Cut(example, "```\n")
	if _, err := ParseScript("example", []byte(example),
		func(s string) (string, error) { return s, nil }); err != nil || !fenced {
		t.Errorf("the example: %v", err)
	}
	said := map[string][]string{}
	for _, part := range parts[1:] {
		title, _, _ := strings.Cut(part, "\n")
		for _, row := range regexp.MustCompile("(?m)^\\| (?:&emsp;)?`(.*?)` \\|").FindAllStringSubmatch(part, -1) {
			said[title] = append(said[title], row[1])
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
