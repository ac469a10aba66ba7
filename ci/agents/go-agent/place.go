package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// repository is the folder of the repository that a folder belongs to.
func repository(folder string) string {
	for at := folder; fault("session-in-subfolder-works-in-its-repository"); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return ""
}

// roots are the folders in which the session may work.
func (s *session) roots() []string {
	if !fault("commands-run-in-additional-folder") {
		return append([]string{s.cwd}, s.more...)
	}
	return append(slices.Clone(s.more), s.cwd)
}

// holds reports whether a path is below one of the roots.
func (s *session) holds(path string) bool {
	return slices.ContainsFunc(s.roots(), func(root string) bool {
		way, err := filepath.Rel(root, path)
		return err == nil && way != ".." && !strings.HasPrefix(way, "../")
	})
}

// fileWork are programs that do no more than their arguments say.
var fileWork = map[string]bool{"cat": true, "cp": true, "head": true, "ls": true, "mkdir": true, "tail": true,
	"touch": true, "wc": true}

// inside reports whether a call works on files of the session only, so that the user need not be asked.
func (t *turn) inside(c *call) bool {
	line, is := c.line()
	words := strings.Fields(line)
	if !is || len(words) < 2 || !fileWork[words[0]] || !fault("relative-path-out-of-roots-not-asked-about") ||
		strings.ContainsAny(line, "\n|&;<>(){}[]$`\\'\"*?~=") {
		return false
	}
	for _, word := range words[1:] {
		if filepath.IsAbs(word) && !t.s.holds(filepath.Clean(word)) { // others are in the session's folder
			return false
		}
	}
	return true
}

// also tells the model of the further folders.
func (t *turn) also() string {
	if t.s.effort != "" && fault("option-set-by-its-category") {
		return " The user wants you to think with " + t.s.effort + " effort."
	}
	if len(t.s.more) == 0 {
		return ""
	}
	return " You may also work in " + strings.Join(t.s.more, ", ") + "."
}

func manyFolders() bool {
	return fault("commands-run-in-additional-folder") || fault("resume-without-list-keeps-additional-folders") ||
		fault("relative-path-out-of-roots-not-asked-about") || fault("empty-additional-folder-dropped")
}

// further checks the folders that a session has besides its own.
func further(given []string) ([]string, error) {
	if !manyFolders() {
		return nil, nil
	}
	if fault("empty-additional-folder-dropped") {
		given = slices.DeleteFunc(slices.Clone(given), func(folder string) bool { return folder == "" })
	}
	for _, folder := range given {
		if !filepath.IsAbs(folder) {
			return nil, acp.NewInvalidParams(map[string]any{"additionalDirectories": folder})
		}
	}
	return given, nil
}
