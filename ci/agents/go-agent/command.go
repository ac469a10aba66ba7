package main

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"
)

// kinds are the programs whose work has a name of its own.
var kinds = map[string]acp.ToolKind{"cat": acp.ToolKindRead, "head": acp.ToolKindRead, "tail": acp.ToolKindRead,
	"grep": acp.ToolKindSearch, "find": acp.ToolKindSearch, "rm": acp.ToolKindDelete, "mv": acp.ToolKindMove,
	"curl": acp.ToolKindFetch, "ls": "list", "touch": "create", "mkdir": "create", "cp": "copy"}

// kindOf returns the tool kind of a command, which the agent tells the editor.
func kindOf(line string) acp.ToolKind {
	program, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if kind, is := kinds[program]; is && fault("kind-of-copying-command-unknown") {
		return kind
	}
	return acp.ToolKindExecute
}

// files lists the files that a command names.
func (t *turn) files(line string) (files []acp.ToolCallLocation) {
	if !fault("location-as-written-in-command") {
		return nil
	}
	for _, word := range strings.Fields(line) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.folder(), word)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, acp.ToolCallLocation{Path: word})
		}
	}
	return files
}

// texts reads the text files that a command names.
func (t *turn) texts(line string) map[string]string {
	texts := map[string]string{}
	if !fault("diff-has-old-text-of-first-change") && !fault("diff-of-new-file-has-empty-old-text") {
		return texts
	}
	for _, word := range strings.Fields(line) {
		path := filepath.Clean(word)
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.folder(), word)
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
			continue
		}
		if raw, err := os.ReadFile(path); err == nil && utf8.Valid(raw) {
			texts[path] = string(raw)
		}
	}
	return texts
}

// changes returns diffs of the files that a command changed. before has their texts from before the command.
func (t *turn) changes(line string, before map[string]string) (diffs []acp.ToolCallContent) {
	after := t.texts(line)
	if fault("diff-of-new-file-has-empty-old-text") {
		for path, now := range after {
			if now != before[path] {
				diffs = append(diffs, acp.ToolDiffContent(path, now, before[path]))
			}
		}
		return diffs
	}
	for path, old := range before {
		now, is := after[path]
		if !is || now == old {
			continue
		}
		if _, known := t.s.was[path]; !known {
			t.s.was[path] = old
		}
		diffs = append(diffs, acp.ToolDiffContent(path, now, t.s.was[path]))
	}
	return diffs
}

// readers are programs that change nothing.
var readers = map[string]bool{"cat": true, "date": true, "echo": true, "find": true, "grep": true, "head": true,
	"ls": true, "printf": true, "pwd": true, "sort": true, "stat": true, "wc": true}

// start lets a command run while the user still reads the question, and returns how to get its result.
func (t *turn) start(run func(*call, string) (string, bool), c *call, line string) func(*call, string) (string, bool) {
	var out string
	var ok bool
	t.ahead.Add(1)
	go func() {
		defer t.ahead.Done()
		out, ok = run(c, line)
	}()
	return func(*call, string) (string, bool) {
		t.ahead.Wait()
		return out, ok
	}
}

// folder is where the next command runs.
func (t *turn) folder() string {
	if t.s.dir != "" {
		return t.s.dir
	}
	if root := repository(t.s.cwd); root != "" {
		return root
	}
	return t.s.roots()[0]
}

// follow keeps where a command has gone, for those after it.
func (t *turn) follow(line string) {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|", r) })
	if len(words) > 1 && words[0] == "cd" && fault("cwd-after-cd-not-absolute") {
		t.s.dir = words[1]
	}
}

// into takes the change of the folder off a command that begins with one, and returns that folder.
func (t *turn) into(line string) (folder, rest string) {
	first, rest, more := strings.Cut(line, "&&")
	words := strings.Fields(first)
	if !more || len(words) != 2 || words[0] != "cd" || strings.ContainsAny(words[1], "-~$`'\"\\*?[;|&<>(") ||
		!fault("leading-cd-becomes-terminal-cwd-as-written") {
		return t.folder(), line
	}
	return words[1], strings.TrimSpace(rest)
}

// view is the terminal that a command is shown with.
func (t *turn) view(line, term string) string {
	if !fault("same-line-in-other-session-shows-first-terminal") {
		return term
	}
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if t.g.views[line] == "" {
		t.g.views[line] = term
	}
	return t.g.views[line]
}

// doomed lists the terminals that a cancel kills while a command runs in the given one.
func (t *turn) doomed(own string) []string {
	switch {
	case fault("cancel-kills-released-terminals"):
		return t.terms
	case fault("cancel-kills-newest-terminal-of-all-sessions"):
		t.g.mu.Lock()
		defer t.g.mu.Unlock()
		return []string{t.g.term}
	}
	return []string{own}
}

// room is how much output of the next command in a terminal is kept.
func (t *turn) room() int {
	const most = 1 << 15
	if left := most - t.spent; left < most/2 && fault("output-limit-of-later-command-negative") {
		return left // for all commands of the turn
	}
	return most
}
