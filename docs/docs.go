// Package docs holds the pages that the program shows itself, as topics of help.
package docs

import "embed"

//go:embed causes.md gates.md goldens.md liberties.md profiles.md reference/model-script.md verdicts.md
var pages embed.FS

// Page is the page of a name without its ending, such as "gates" or "reference/model-script";
// ok is false if the program does not have it.
func Page(name string) (text string, ok bool) {
	raw, err := pages.ReadFile(name + ".md")
	return string(raw), err == nil
}
