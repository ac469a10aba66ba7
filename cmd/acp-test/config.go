package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/scenarios/language"
)

// config is the content of acp-test.yaml at the root of a repository. It holds defaults for the flags of acp-test
// run. Flags override it. Paths are relative to the file.
type config struct {
	Agent       string            `yaml:"agent"`
	Command     []string          `yaml:"command"`
	Scenarios   []string          `yaml:"scenarios"`
	Suites      []string          `yaml:"suites"`
	Goldens     string            `yaml:"goldens"`
	Baseline    string            `yaml:"baseline"`
	Severity    string            `yaml:"severity"`
	Strict      bool              `yaml:"strict"`
	Timeout     string            `yaml:"timeout"`
	StepTimeout string            `yaml:"step-timeout"`
	Env         map[string]string `yaml:"env"`
	PassEnv     []string          `yaml:"pass-env"`
	Reports     []string          `yaml:"reports"`
	Out         string            `yaml:"out"`
	Durations   string            `yaml:"durations"`
}

// findConfig reads the acp-test.yaml in dir or in its nearest parent, up to the root of the repository. If there is
// none, it returns an empty config.
func findConfig(dir string) (config, error) {
	for {
		file := filepath.Join(dir, language.Config)
		src, err := os.ReadFile(file)
		if err == nil {
			return parseConfig(file, src)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return config{}, err
		}
		_, err = os.Lstat(filepath.Join(dir, ".git"))
		if parent := filepath.Dir(dir); err != nil && parent != dir {
			dir = parent
			continue
		}
		return config{}, nil
	}
}

func parseConfig(file string, src []byte) (c config, err error) {
	defer mistake.Catch(&err)
	root, err := yamlfile.Parse(file, src)
	if err != nil {
		return c, err
	}
	for i := range root.Fields {
		if f := &root.Fields[i]; f.Key == "suites" && f.Kind == yamlfile.Scalar && f.Text == "all" {
			one := *f.Node
			f.Node.Kind, f.Node.Items = yamlfile.List, []*yamlfile.Node{&one}
		}
	}
	root.Decode(&c, language.Config, "")
	for key, d := range map[string]string{"timeout": c.Timeout, "step-timeout": c.StepTimeout} {
		if _, err := duration(d); err != nil {
			root.Field(key).Fail("", "%s must be a duration such as 20s or 1m30s, not %q", key, d)
		}
	}
	c.known(root)
	from := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(file), path)
	}
	for _, path := range []*string{&c.Goldens, &c.Baseline, &c.Out, &c.Durations} {
		*path = from(*path)
	}
	for i := range c.Scenarios {
		c.Scenarios[i] = from(c.Scenarios[i])
	}
	if isFile(c.Agent) {
		c.Agent = from(c.Agent)
	}
	if len(c.Command) > 0 && strings.ContainsRune(c.Command[0], '/') {
		c.Command[0] = from(c.Command[0])
	}
	return c, nil
}

// known reports an error for each severity or suite in the file that does not exist.
func (c *config) known(root *yamlfile.Node) {
	suites := append(suiteNames(), language.AllSuites)
	slices.Sort(suites)
	suites = slices.Compact(suites)
	names := map[string][]string{"severity": {c.Severity}, "suites": c.Suites}
	for key, known := range map[string][]string{"severity": invariants.SeverityNames(), "suites": suites} {
		for _, name := range names[key] {
			if name != "" && !slices.Contains(known, name) {
				root.Field(key).Fail(mistake.Suggest(name, known), "%s: there is no %q", key, name)
			}
		}
	}
}

// duration parses a duration; "" is 0.
func duration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	return time.ParseDuration(s)
}

// isFile reports whether agent is the path of a profile file rather than the name of a profile.
func isFile(agent string) bool {
	return strings.ContainsRune(agent, '/') || strings.HasSuffix(agent, ".yaml") || strings.HasSuffix(agent, ".yml")
}
