//go:build linux

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever command meets them, planted secrets reach neither the disk nor what is
// printed.
func TestSecrets(t *testing.T) {
	l := newLab(t)
	all := plants()
	dir := t.TempDir()
	work := t.TempDir() // what the agent writes there is its own
	script := filepath.Join(dir, "leak.txtar")
	if err := os.WriteFile(script, []byte("# A turn.\nprompt Hello.\nawait turn\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "llm.yaml")
	if err := os.WriteFile(model, []byte("replies:\n  - - text: Hello.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(dir, "recording.jsonl")
	transcript := filepath.Join(dir, "run", "leak", "transcript.jsonl")
	var passed []string
	for name := range planted {
		passed = append(passed, "--pass-env", name)
	}
	run := func(words ...string) []string { return append(append(words, passed...), "--", l.agent, "leaks") }
	for _, c := range []struct {
		name, stdin string
		words       []string
	}{
		{"run", "", run("run", script, "-v", "--out", filepath.Join(dir, "run"), "--report", "markdown", "--report",
			"github",
			"--report", "tap", "--report", "text")},
		{"sweep", "", run("sweep", script, "--max", "4", "--confirm", "1", "--out", filepath.Join(dir, "sweep"),
			"--repro", filepath.Join(dir, "repro"))},
		{"record", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
			`"clientCapabilities":{}}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":` + quote(work) + `,"mcpServers":[]}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Hello."}]}}
`, []string{"record", "--out", recording, "--", l.agent, "leaks"}},
		{"replay", "", run("replay", recording, "--out", filepath.Join(dir, "replay"))},
		{"check", "", []string{"check", recording, transcript}},
		{"show", "", []string{"show", transcript}},
		{"show -f", "", []string{"show", "-f", recording}},
		{"convert", "", []string{"convert", "--partial", "--out", filepath.Join(dir, "converted.txtar"), transcript}},
		{"diff", "", []string{"diff", recording, transcript}},
		{"prompt", "", []string{"prompt", "Hello.", "--cwd", work, "--llm", model, "--save-session",
			filepath.Join(dir, "saved.json"), "--", l.agent, "leaks"}},
		{"prompt as JSON", "", []string{"prompt", "Hello.", "--cwd", work, "-o", "jsonl", "--llm", model, "--", l.agent,
			"leaks"}},
		{"serve", strings.Join(spilling(work), ""), []string{"serve", "m02", "--out", filepath.Join(dir, "served")}},
		{"editors", "", []string{"editors", "-v", "--out", filepath.Join(dir, "editors"), "--report", "markdown",
			"--timeout", "10s",
			"--run", "m02", "--", l.agent, "editor", "leaks", "{agent}"}},
	} {
		cmd := l.command(dir, c.words...)
		for name, value := range planted {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Stdin = strings.NewReader(c.stdin)
		var out, frames bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		switch c.name { // what the other side gets is what this one said
		case "record":
			cmd.Stdout, cmd.Stderr = &frames, &frames
		case "serve":
			cmd.Stdout = &frames
		}
		err := cmd.Run()
		if _, exited := err.(*exec.ExitError); err != nil && !exited || cmd.ProcessState.ExitCode() == 2 &&
			c.name != "diff" {
			t.Errorf("%s: %v\n%.2000s", c.name, err, out.String())
		}
		look := func(where string, text []byte) {
			for _, p := range all {
				for form, times := p.secret, 0; times < 4; form, times = jsonOf(form), times+1 {
					if at := bytes.Index(text, []byte(form)); at >= 0 {
						t.Errorf("%s: in %s is %s: %q", c.name, where, p.name,
							text[max(at-60, 0):min(at+len(form)+10, len(text))])
						break
					}
				}
			}
		}
		look("what it prints", out.Bytes())
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if text, err := os.ReadFile(path); err == nil {
					look(strings.TrimPrefix(path, dir), text)
				}
			}
			return nil
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d secrets in all commands", len(all))
}
