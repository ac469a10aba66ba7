package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/ci/must"
)

const older = `{"$defs": {
	"Kept": {"type": "object", "properties": {"a": {"type": "string"}}},
	"Gone": {"type": "string"},
	"Prompt": {"type": "object", "required": ["id"], "description": "Asks.", "properties": {
		"id": {"type": "string"}, "text": {"type": "string"}, "list": {"type": "array", "items": {"$ref": ` +
	`"#/$defs/Kept"}}}},
	"Status": {"anyOf": [{"type": "string", "const": "pending"}, {"type": "string", "const": "done"}]},
	"Update": {"anyOf": [
		{"type": "object", "properties": {"kind": {"const": "chunk"}}, "allOf": [{"$ref": "#/$defs/Kept"}]},
		{"title": "other", "type": "object", "properties": {"kind": {"type": "string"}}}]}
}}`

const newer = `{"$defs": {
	"Kept": {"type": "object", "properties": {"a": {"type": "string"}}},
	"Added": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
	"Prompt": {"type": "object", "required": ["id", "text"], "description": "Asks for a turn.", "properties": {
		"id": {"type": ["string", "null"]}, "text": {"type": "string"}, "key": {"type": "string", "minLength": 1}}},
	"Status": {"anyOf": [{"type": "string", "const": "pending"}, {"type": "string", "const": "paused"}]},
	"Update": {"anyOf": [
		{"type": "object", "properties": {"kind": {"const": "chunk"}}, "allOf": [{"$ref": "#/$defs/Added"}]},
		{"type": "object", "properties": {"kind": {"const": "whole"}}, "allOf": [{"$ref": "#/$defs/Kept"}]},
		{"title": "other", "type": "object", "properties": {"kind": {"type": "string"}}}]}
}}`

const table = `# Prompts.

method prompt request to-agent Prompt -> Kept

type Prompt
  id    string
  text? string

enum Status
  pending done
`

func TestDrift(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"old.json": older, "new.json": newer, "tables/agent.txt": table} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := ofFiles(filepath.Join(dir, "old.json"), filepath.Join(dir, "new.json"), filepath.Join(dir, "tables"))
	want := strings.TrimLeft(`
- Added
  - added: x, y
- Gone
  - removed
- Prompt (agent.txt:5)
  - described in other words: the type
  - changed Prompt.id: was string, must be there, is string or null, must be there
  - added Prompt.key: minLength 1 string, may be left out
  - removed Prompt.list
  - changed Prompt.text: was string, may be left out, is string, must be there
- Status (agent.txt:9)
  - removed Status=done
  - added Status=paused: "paused" string
- Update
  - changed Update=chunk: was Kept object, is Added object
  - added Update=whole: Kept object
`, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if same := run([]string{filepath.Join(dir, "new.json"), filepath.Join(dir, "new.json")}); same != "" {
		t.Errorf("of one schema with itself: %q", same)
	}
	if err := must.Try(func() { run([]string{"old.json"}) }); err == nil {
		t.Error("one schema is no comparison")
	}
}

func TestNews(t *testing.T) {
	if got, want := told("v1", "SubagentUpdate"),
		" [news.yaml: subagent sessions, stable since 2026-11-20]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := told("v1", "Plan"); got != "" {
		t.Errorf("news of a type without any: %q", got)
	}
	dir := t.TempDir()
	for version, want := range map[string]bool{"2.4.0": false, "2.9.1": true} {
		text := `{"name": "@agentclientprotocol/sdk", "version": "` + version + `"}`
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := stale(dir) != ""; got != want {
			t.Errorf("a pinned package %s is called stale: %v", version, got)
		}
	}
}
