package scenarios

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/workspace"
)

// newSandbox makes the directories of a run below parent, "" for the system's
// place for temporary files.
func newSandbox(parent string) (*workspace.Dirs, error) {
	root, err := os.MkdirTemp(parent, "acp-test-run-")
	if err != nil {
		return nil, fmt.Errorf("making the run's directory: %w", err)
	}
	return workspace.MakeDirs(root)
}

// difference is the change from one snapshot to the next, as text for people.
func difference(before, after workspace.Snapshot) string {
	var b strings.Builder
	for _, c := range before.Changes(after) {
		path := c.Path
		if strings.ContainsFunc(path, unicode.IsControl) {
			path = strconv.Quote(path)
		}
		fmt.Fprintf(&b, "%s %s\n%s", c.What, path, golden.Diff(c.Before, c.After))
	}
	if cut := cmp.Or(after.Cut, before.Cut); cut != "" {
		fmt.Fprintf(&b, "the rest of the workspace was not looked at: %s\n", cut)
	}
	return b.String()
}
