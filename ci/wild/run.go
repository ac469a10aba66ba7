package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/scenarios/results"
)

// gate lists the checks that an agent must pass before its results count. They cover what a user does in the first
// minute. Findings of rules in these scenarios are ignored.
var gate = []struct{ name, scenario, check string }{
	{"text", "prompt-turn/text", "prompt-003"},
	{"write", "tool-calls/edit", "edit-was-made"},
	{"shell", "tool-calls/execute", "output-reaches-model"},
	{"permission", "permission/allow-once-edit", "no-write-before-answer"},
}

// runner installs versions and runs scenarios against them.
type runner struct {
	*Data
	cache, out string
	jobs       int

	temp    string // folder for temporary files of this run
	program string // path of acp-test
	node    string // folder of the Node.js that agents run on
}

// nodePackage returns the npm package that contains Node.js for this machine.
func nodePackage() string {
	os := map[string]string{"windows": "win"}
	arch := map[string]string{"amd64": "x64"}
	return "node-" + cmp.Or(os[runtime.GOOS], runtime.GOOS) + "-" + cmp.Or(arch[runtime.GOARCH], runtime.GOARCH)
}

// command runs a program to its end. If the program fails, the error contains its output.
func (r *runner) command(dir string, env []string, name string, args ...string) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		must.Fail("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
}

// install installs packages and their dependencies into a folder of the cache, and returns the folder. It runs no
// install scripts, except that of the named package if scripts is set. If the same packages are already installed
// there, it does nothing.
func (r *runner) install(name, version string, scripts bool, beside ...string) string {
	dir := filepath.Join(r.cache, strings.ReplaceAll(name, "/", "+")+"@"+version)
	stamp := filepath.Join(dir, ".done")
	all := append([]string{name + "@" + version}, beside...)
	want := strings.Join(all, "\n")
	if b, err := os.ReadFile(stamp); err == nil && string(b) == want {
		return dir
	}
	must.Do(os.MkdirAll(dir, 0o755))
	must.Do(os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644))
	args := append([]string{"install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"}, all...)
	r.command(dir, r.path(), "npm", args...)
	if scripts {
		r.command(dir, r.path(), "npm", "rebuild", name)
	}
	must.Do(os.WriteFile(stamp, []byte(want), 0o644))
	return dir
}

// path returns a PATH variable with the agents' Node.js first, or nil if that is not installed yet.
func (r *runner) path() []string {
	if r.node == "" {
		return nil
	}
	return []string{"PATH=" + r.node + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// profile writes the profile of a version and returns the file's path.
func (r *runner) profile(v Variant, version string) string {
	all := map[string]any{}
	if v.Like != "" {
		must.Do(yaml.Unmarshal(must.Get(os.ReadFile(filepath.Join("agents", "profiles", v.Like+".yaml"))), &all))
	}
	// Goldens and known failures in the profile belong to another version.
	delete(all, "known-failures")
	delete(all, "install")
	// If a bug makes the agent hang, each repeat waits for this timeout.
	lay(all, map[string]any{"timeouts": map[string]any{"step": "12s"}})
	lay(all, v.With)
	all["name"] = name(v.Package, version)
	file := filepath.Join(r.temp, all["name"].(string)+".yaml")
	must.Do(os.WriteFile(file, must.Get(yaml.Marshal(all)), 0o644))
	return file
}

// name returns the profile name for a version of a package.
func name(pkg, version string) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(pkg+"-"+version, "-"), "-")
}

// folder returns the output folder of a named run against a version.
func (r *runner) folder(pkg, version, run string) string {
	return filepath.Join(r.out, name(pkg, version), run)
}

// lay overwrites members of under with those of over, recursively where both are maps. A nil value in over deletes
// the member.
func lay(under, over map[string]any) {
	for k, v := range over {
		above, ok := v.(map[string]any)
		below, both := under[k].(map[string]any)
		switch {
		case ok && both:
			lay(below, above)
		case v == nil:
			delete(under, k)
		default:
			under[k] = v
		}
	}
}

// run runs scenarios against a version and returns the results. It ignores the exit status, because even good versions
// rarely pass everything.
func (r *runner) run(v Variant, version, out string, args ...string) []results.Result {
	dir, file := r.install(v.Package, version, v.Scripts, v.Beside...), r.profile(v, version)
	out = r.folder(v.Package, version, out)
	args = append([]string{"run", "--agent", file, "--golden", filepath.Join(r.temp, "golden"), "--no-smoke", "-q",
		"-j", fmt.Sprint(r.jobs), "--out", out}, args...)
	c := exec.Command(r.program, args...)
	c.Env = append(append(os.Environ(), r.path()...), "ACP_TEST_AGENTS="+filepath.Join(dir, "node_modules", ".bin"))
	said, _ := c.CombinedOutput()
	outcomes, err := resultsOf(out)
	if errors.Is(err, os.ErrNotExist) {
		must.Fail("acp-test %s: no results\n%s", strings.Join(args, " "), bytes.TrimSpace(said))
	}
	return must.Get(outcomes, err)
}

// resultsOf reads the results of a run from its folder.
func resultsOf(out string) ([]results.Result, error) {
	b, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err != nil {
		return nil, err
	}
	var all results.Run
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	return all.Results, nil
}
