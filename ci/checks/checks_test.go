// Package checks holds tests of the files that ci/ gives to other systems.
package checks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func lint(t *testing.T, name string, src []byte) []*actionlint.Error {
	t.Helper()
	l, err := actionlint.NewLinter(&bytes.Buffer{}, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	errs, err := l.Lint(name, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	return errs
}

func TestWorkflow(t *testing.T) {
	for _, name := range []string{"github.yml", "github-ag-ui.yml"} {
		src, err := os.ReadFile("../samples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range lint(t, name, src) {
			t.Error(e)
		}
		if len(lint(t, name, bytes.Replace(src, []byte("runs-on"), []byte("run-on"), 1))) == 0 {
			t.Error("a workflow with a mistake passes")
		}
	}
	guide, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../samples/github-ag-ui.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, job, _ := bytes.Cut(shown, []byte("\n"))
	if !bytes.Contains(guide, append([]byte("```yaml\n"), job...)) {
		t.Error("docs/ci.md does not show github-ag-ui.yml")
	}
}

// repositories are of all languages and package managers whose files init reads.
var repositories = map[string]map[string]string{
	"npm":    {"package.json": `{"bin": "a.js", "scripts": {"build": "tsc"}}`, "package-lock.json": "{}"},
	"pnpm":   {"package.json": `{"main": "a.js"}`, "pnpm-lock.yaml": ""},
	"yarn":   {"package.json": `{"scripts": {"start": "node a.js"}}`, "yarn.lock": ""},
	"pip":    {"pyproject.toml": "[project]\nname = 'a'\n"},
	"uv":     {"pyproject.toml": "[project]\nname = 'a'\n", "uv.lock": ""},
	"cargo":  {"Cargo.toml": "[package]\nname = 'a'\n", "Cargo.lock": ""},
	"go":     {"go.mod": "module a\n\ngo 1.26\n", "go.sum": "", "main.go": "package main\n"},
	"nobody": {},
}

// TestInit checks the CI files that init writes into repositories of all languages.
func TestInit(t *testing.T) {
	program := filepath.Join(t.TempDir(), "acp-test")
	build := exec.Command("go", "build", "-o", program, "./cmd/acp-test")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, files := range repositories {
		for ci, file := range map[string]string{"github": ".github/workflows/acp.yml",
			"forgejo": ".forgejo/workflows/acp.yml",
			"gitlab":  ".gitlab-ci.yml", "azure": "azure-pipelines.yml", "woodpecker": ".woodpecker/acp.yml"} {
			t.Run(name+" "+ci, func(t *testing.T) {
				dir := t.TempDir()
				for name, text := range files {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				// As if it had been there before: only the file of the CI system is written.
				if err := os.WriteFile(filepath.Join(dir, "acp-test.yaml"), []byte("agent: reference\n"),
					0o644); err != nil {
					t.Fatal(err)
				}
				c := exec.Command(program, "init", "--ci", ci, "--from", "https://example.org/acp-test.tgz")
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				src, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if ci != "github" {
					decode(t, ci+".yml", src)
					return
				}
				for _, e := range lint(t, file, src) {
					t.Error(e)
				}
			})
		}
	}
}

// TestAction lints the steps of the action as those of a workflow, since
// actionlint reads workflows only.
func TestAction(t *testing.T) {
	src, err := os.ReadFile("../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Name, Description, Author string
		Branding                  map[string]string
		Inputs                    map[string]struct{ Description, Default string }
		Outputs                   map[string]struct{ Description, Value string }
		Runs                      struct {
			Using string
			Steps []map[string]any
		}
	}
	if err := yaml.UnmarshalStrict(src, &action); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]any{}
	for name, in := range action.Inputs {
		if in.Description == "" {
			t.Errorf("input %s has no description", name)
		}
		inputs[name] = map[string]any{"type": "string", "description": in.Description}
		if !strings.Contains(string(src), "inputs."+name+" ") {
			t.Errorf("nothing uses the input %s", name)
		}
	}
	for _, s := range action.Runs.Steps {
		if s["run"] != nil && s["shell"] == nil {
			t.Errorf("the step %v of a composite action needs a shell", s)
		}
		if run, _ := s["run"].(string); strings.Contains(run, "${{") {
			t.Errorf("an input is text of the command %q: it could be any command", run)
		}
	}
	workflow, err := yaml.Marshal(map[string]any{
		"on":   map[string]any{"workflow_call": map[string]any{"inputs": inputs}},
		"jobs": map[string]any{"x": map[string]any{"runs-on": "ubuntu-latest", "steps": action.Runs.Steps}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range lint(t, "action.yml", workflow) {
		t.Error(e)
	}
	for _, script := range []string{"../action", "../action-install"} {
		if info, err := os.Stat(script); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s, a script of the action, cannot be executed: %v", script, err)
		}
	}
}

// TestKubernetes decodes the manifests strictly into the types of Kubernetes.
func TestKubernetes(t *testing.T) {
	src, err := os.ReadFile("../kubernetes.yml")
	if err != nil {
		t.Fatal(err)
	}
	var claim core.PersistentVolumeClaim
	var parts, report batch.Job
	documents := strings.Split(string(src), "\n---\n")
	if len(documents) != 3 {
		t.Fatalf("got %d documents, want 3", len(documents))
	}
	for i, into := range []any{&claim, &parts, &report} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Errorf("document %d: %v", i+1, err)
		}
		mistaken := strings.Replace(documents[i], "\nspec:", "\nspce:", 1)
		if err := yaml.UnmarshalStrict([]byte(mistaken), into); err == nil {
			t.Errorf("document %d passes with a mistake", i+1)
		}
	}
	if t.Failed() {
		return
	}
	env := func(j batch.Job, name string) string {
		for _, v := range j.Spec.Template.Spec.Containers[0].Env {
			if v.Name == name {
				return v.Value
			}
		}
		return ""
	}
	if *parts.Spec.CompletionMode != batch.IndexedCompletion || *parts.Spec.Completions != 4 ||
		*parts.Spec.Parallelism != 4 ||
		env(parts, "JOB_COMPLETIONS") != "4" || env(report, "PARTS") != "4" {
		t.Error("the number of parts is not the same everywhere")
	}
	for _, j := range []batch.Job{parts, report} {
		mounted := j.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
		if mounted != claim.Name {
			t.Errorf("%s mounts %s, the claim is %s", j.Name, mounted, claim.Name)
		}
	}
}

func TestSamplesAreKnown(t *testing.T) {
	files, err := filepath.Glob("../samples/*")
	if err != nil || len(files) != 7 {
		t.Errorf("got samples %v (%v), want those of six systems, and one for AG-UI: a new one needs a check", files,
			err)
	}
	for _, file := range []string{"azure.yml", "woodpecker.yml", "forgejo.yml", "gitlab.yml"} {
		src, err := os.ReadFile("../samples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		decode(t, file, src)
	}
}

type step struct {
	Script, Run, Uses, Task, Condition string
	Inputs, With                       map[string]any
}

// decode decodes a CI file strictly into what we know of the system, which name says.
func decode(t *testing.T, name string, src []byte) {
	t.Helper()
	var jobs map[string]gitlabJob
	into := map[string]any{
		"azure.yml": &struct {
			Trigger   []string
			Pool      struct{ VMImage string }
			Container string
			Variables map[string]string
			Steps     []step
		}{},
		"woodpecker.yml": &struct {
			When  struct{ Event []string }
			Steps map[string]struct {
				Image    string
				Commands []string
			}
		}{},
		"forgejo.yml": &struct {
			Name string
			On   []string `json:"true"` // as YAML 1.1 has it
			Jobs map[string]struct {
				RunsOn         string `json:"runs-on"`
				TimeoutMinutes int    `json:"timeout-minutes"`
				Env            map[string]string
				Steps          []step
			}
		}{},
		"gitlab.yml": &jobs,
	}[name]
	if into == nil {
		t.Fatalf("nothing is known of %s", name)
	}
	if err := yaml.UnmarshalStrict(src, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for name, j := range jobs {
		if len(j.Script) == 0 || j.Image == "" {
			t.Errorf("the job %s has no script or no image", name)
		}
		for _, n := range j.Needs {
			if _, ok := jobs[n]; !ok {
				t.Errorf("the job %s needs %s, which is not there", name, n)
			}
		}
	}
}

// gitlabJob is a job of GitLab, as far as we use it.
type gitlabJob struct {
	Image     string
	Stage     string
	When      string
	Parallel  int
	Needs     []string
	Variables map[string]string
	Cache     struct {
		Key   struct{ Files []string }
		Paths []string
	}
	BeforeScript []string `json:"before_script"`
	Script       []string
	Artifacts    struct {
		When    string
		Paths   []string
		Reports map[string]string
	}
}
