// Drift prints the differences between the official schemas that the tests use and the newest schemas in the
// registry. Each difference comes with the table of protocol/acp/schema that it affects, and with the entries of
// news.yaml about it.
//
//	go run ./ci/drift              # the pinned package and the newest one
//	go run ./ci/drift OLD NEW      # two schemas, or two folders of the package
//
// The exit status is 1 if something differs.
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/protocol/acp/schema"
)

const sdk = "@agentclientprotocol/sdk"

func main() {
	text := ""
	must.Main("drift", 2, func() { text = run(os.Args[1:]) })
	if text == "" {
		fmt.Println("nothing differs")
		return
	}
	fmt.Print(text)
	os.Exit(1)
}

func run(args []string) string {
	switch len(args) {
	case 0:
		temp := must.Get(os.MkdirTemp("", "acp-test-drift-"))
		defer os.RemoveAll(temp)
		command("ci/install-npm", "ci/schema")
		command("npm", "install", "--prefix", temp, "--ignore-scripts", "--no-audit", "--no-fund", "--silent", sdk+"@latest")
		args = []string{filepath.Join("ci/schema/node_modules", sdk), filepath.Join(temp, "node_modules", sdk)}
	case 2:
	default:
		must.Fail("name two schemas, two folders or nothing")
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return ofFiles(args[0], args[1], "")
	}
	return ofPackages(args[0], args[1])
}

func command(name string, args ...string) {
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		must.Fail("%s %s: %w", name, strings.Join(args, " "), err)
	}
}

// ofPackages returns the differences between the schemas of two packages.
func ofPackages(older, newer string) string {
	var b strings.Builder
	b.WriteString(stale(older))
	for _, version := range []string{"v1", "v2"} {
		for _, kind := range []string{"schema.json", "schema.unstable.json"} {
			name := filepath.Join("schema", version, kind)
			text := ofFiles(filepath.Join(older, name), filepath.Join(newer, name),
				filepath.Join("protocol/acp/schema", version))
			if text != "" {
				fmt.Fprintf(&b, "## %s %s\n\n%s\n", version, strings.TrimSuffix(kind, ".json"), text)
			}
		}
	}
	return b.String()
}

// stale returns a report section if news.yaml names another package as pinned than the tests use, and "" otherwise.
// In that case, entries of news.yaml that the pinned schema now contains must be deleted.
func stale(pinned string) string {
	raw, err := os.ReadFile(filepath.Join(pinned, "package.json"))
	var p struct{ Name, Version string }
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return "" // not a package's folder
	}
	if told := schema.LatestNews().Pinned; !strings.HasPrefix(told, p.Name+" "+p.Version+" ") {
		return fmt.Sprintf("## news.yaml\n\n- it pins %s, but the installed package is %s %s\n\n", told, p.Name, p.Version)
	}
	return ""
}

// told returns the features in news.yaml that change a type, as text for a line of the report; "" if there are none.
func told(version, typeName string) string {
	var names []string
	for _, f := range schema.LatestNews().Features {
		if slices.Contains(f.Protocols, "acp-"+version) && slices.ContainsFunc(f.Touches, func(part string) bool {
			name, _, _ := strings.Cut(strings.ReplaceAll(part, "=", "."), ".")
			return name == typeName
		}) {
			names = append(names, fmt.Sprintf("%s, %s since %s", f.Name, f.State, f.Date))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " [news.yaml: " + strings.Join(names, "; ") + "]"
}

// ofFiles returns the differences between two schema files. tables is the folder of this project's tables for the
// schema, or "" if it has none.
func ofFiles(older, newer, tables string) string {
	ours := map[string]string{}
	if tables != "" {
		ours = places(os.DirFS(tables))
	}
	return words(read(older), read(newer), func(name string) string {
		where := ""
		if ours[name] != "" {
			where = " (" + ours[name] + ")"
		}
		return where + told(filepath.Base(tables), name)
	})
}

// places returns the position (file:line) of each type in this project's tables, by the type's name.
func places(tables fs.FS) map[string]string {
	ours := map[string]string{}
	for _, file := range must.Get(fs.Glob(tables, "*.txt")) {
		text, n := must.Get(fs.ReadFile(tables, file)), 0
		for line := range strings.Lines(string(text)) {
			n++
			f := strings.Fields(line)
			if line[0] != ' ' && line[0] != '#' && len(f) > 1 && f[0] != "method" && f[0] != "extend" {
				ours[f[1]] = fmt.Sprintf("%s:%d", file, n)
			}
		}
	}
	return ours
}
