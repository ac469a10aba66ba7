package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/editors/personas"
	acpwords "github.com/acp-test/acp-test/protocol/acp/words"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
)

// play replaces the engine's editor with the persona that --editor names. The engine then ignores goldens, because
// they were written with the usual editor.
func (r *course) play(e *scenarios.Engine) error {
	if r.editor == "" {
		return nil
	}
	p, err := personas.Find(r.editor)
	switch {
	case err != nil:
		return fmt.Errorf("--editor: %w; acp-test help personas describes them", err)
	case e.Protocol.Name != language.Default:
		return fmt.Errorf("--editor %s: this editor speaks %s, but this run uses %s", r.editor,
			language.Default, e.Protocol.Name)
	case e.Update || e.GoldenRequired:
		return fmt.Errorf("--editor %s: goldens need the usual editor; omit --update and --golden-required", r.editor)
	}
	as := *e.Protocol
	as.Client = func() scenarios.Client { return acpwords.As(p) }
	e.Protocol, e.Golden = &as, nil
	return nil
}

// personasPage returns the page of the editors whose behavior a run can imitate.
func personasPage() string {
	var b strings.Builder
	b.WriteString(page("personas"))
	for _, name := range personas.Names() {
		p, err := personas.Find(name)
		if err != nil {
			return err.Error() // a test loads all personas
		}
		hello := map[string]any{"clientCapabilities": p.Capabilities}
		if p.Client != nil {
			hello["clientInfo"] = p.Client
		}
		raw, _ := json.Marshal(hello) // the value was read from YAML
		fmt.Fprintf(&b, "\n## %s\n\n%s. Its `initialize` has\n\n```json\n%s\n```\n\n", name, upper(p.Label()), raw)
		for _, f := range p.Facts {
			fmt.Fprintf(&b, "- %s ([source](%s))\n", f.Says, f.Source)
		}
	}
	return b.String()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
