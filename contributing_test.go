package acptest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is a fenced block of a page.
type block struct {
	above    string // the line of text above it
	language string
	text     string
}

// blocks returns the fenced blocks of a page.
func blocks(page string) (all []block) {
	open, above := false, ""
	for line := range strings.Lines(page) {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !open:
			open, all = true, append(all, block{above: above, language: language})
		case fence:
			open, above = false, ""
		case open:
			all[len(all)-1].text += line
		case strings.TrimSpace(line) != "":
			above = strings.TrimSpace(line)
		}
	}
	return all
}

// namesFile is a line that says into which file the block below it goes.
var namesFile = regexp.MustCompile("`([^` ()]+)`:$")

// The walk-throughs of CONTRIBUTING.md work: each file is written and each command
// run, in their order, in one copy of the repository.
func TestWalkThroughs(t *testing.T) {
	if part := os.Getenv("ACP_TEST_PART"); testing.Short() || part != "" && !strings.HasPrefix(part, "1/") {
		t.Skip("it builds a copy of the repository, in CI for each third commit")
	}
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, found := strings.Cut(string(page), "\n## Walk-throughs\n")
	if !found {
		t.Fatal("CONTRIBUTING.md has no walk-throughs")
	}
	dir := copyOfRepository(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	files, scripts := 0, 0
	for _, b := range blocks(walks) {
		if name := namesFile.FindStringSubmatch(b.above); name != nil {
			files++
			path := filepath.Join(dir, filepath.FromSlash(name[1]))
			if err := os.WriteFile(path, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b.language != "sh" {
			t.Errorf("a block says neither into which file it goes nor that it is a command:\n%s", b.text)
			continue
		}
		scripts++
		c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.text)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, b.text, out)
		}
	}
	if files < 6 || scripts < 6 {
		t.Errorf("the page has %d files and %d commands: fewer than there are walk-throughs", files, scripts)
	}
	bad, err := exec.CommandContext(ctx, "gofmt", "-l", dir).Output()
	if err != nil || len(bad) > 0 {
		t.Errorf("gofmt would change %s (%v)", bad, err)
	}
}

// copyOfRepository copies the files that git tracks, or would.
func copyOfRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, but not yet committed
		} else if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600|info.Mode()&0o100); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each module that go.mod requires for itself has its reason in docs/code.md, and no
// other has one.
func TestLibrariesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/code.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Libraries")
	table, _, _ = strings.Cut(table, "\n## ")
	version := regexp.MustCompile(`/v\d+$`)
	required := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		required[strings.TrimPrefix(version.ReplaceAllString(m[1], ""), "github.com/")] = true
	}
	for _, m := range regexp.MustCompile("`([a-z]\\S*/\\S+|[a-zA-Z]+/[a-z]+)`").FindAllStringSubmatch(table, -1) {
		if !required[m[1]] {
			t.Errorf("docs/code.md has a reason for %s, which go.mod does not require", m[1])
		}
		delete(required, m[1])
	}
	for name := range required {
		t.Errorf("docs/code.md has no reason for %s", name)
	}
}
