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
func (s *session) roots() []string { return append(slices.Clone(s.more), s.cwd) }

// also tells the model of the further folders.
func (t *turn) also() string {
	if len(t.s.more) == 0 {
		return ""
	}
	return " You may also work in " + strings.Join(t.s.more, ", ") + "."
}

func manyFolders() bool { return fault("commands-run-in-additional-folder") }

// further checks the folders that a session has besides its own.
func further(given []string) ([]string, error) {
	if !manyFolders() {
		return nil, nil
	}
	for _, folder := range given {
		if !filepath.IsAbs(folder) {
			return nil, acp.NewInvalidParams(map[string]any{"additionalDirectories": folder})
		}
	}
	return given, nil
}
