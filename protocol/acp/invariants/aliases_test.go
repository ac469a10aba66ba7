package invariants_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
)

// No file of this repository calls a rule by a former id: aliases are for files of users. The
// number of a requirement may follow (V2-SHAPE-001).
func TestNoFileUsesAnAlias(t *testing.T) {
	former := regexp.MustCompile(`\b(` +
		strings.Join(slices.DeleteFunc(invariants.V2().Aliases(), func(id string) bool {
			return strings.Contains(id, "/")
		}), "|") + `)\b(-[0-9A-Z])?`)
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (base == "node_modules" || base != ".." && strings.HasPrefix(base, ".") ||
			strings.HasPrefix(base, "acp-test-out")):
			return fs.SkipDir
		case d.IsDir(), base == "aliases.txt", base == "aliases_test.go", !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text[:min(len(text), 1000)], 0) >= 0 {
			return err
		}
		for _, found := range former.FindAllSubmatch(text, -1) {
			if len(found[2]) == 0 {
				t.Errorf("%s has %s, which %s: edit it", name, found[1],
					strings.TrimPrefix(invariants.V2().Renamed(string(found[1])), string(found[1])+" "))
				return nil
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
