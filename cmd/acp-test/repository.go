package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/acp-test/acp-test/internal/lazy"
)

// repository describes the agent in a folder, as far as the folder's files show it. Unknown values are zero.
type repository struct {
	Language string   // node, python, rust or go
	Name     string   // name of the agent
	Command  []string // command that starts the agent
	Build    []string // shell commands that build the agent
	Downloads
	CI string // name of the CI system in ciFiles
}

// Downloads describes the files that a package manager fetches. CI systems cache them between runs.
type Downloads struct {
	Variable, Cache string // variable for the cache folder, and the folder
	Lock            string // the lock file that lists the downloads
}

// languages maps a language to its values for CI files and its lines for .gitignore.
var languages = map[string]struct{ image, action, with, ignore string }{
	"node":   {"node:22", "actions/setup-node@v4", "{node-version: 22}", "node_modules/\n"},
	"python": {"python:3.13", "actions/setup-python@v5", `{python-version: "3.13"}`, ".venv/\n__pycache__/\n"},
	"rust":   {"rust:1", "", "", "target/\n"},
	"go":     {"golang:1.26", "actions/setup-go@v5", "{go-version-file: go.mod}", ""},
}

// recipe holds the values for a template of a CI file.
type recipe struct {
	repository
	source
	Image, Action, With string
	Keeps               bool // the setup action caches downloads by itself
}

func (r repository) recipe(from source) recipe {
	l := languages[cmp.Or(r.Language, "go")]
	fill := recipe{repository: r, source: from, Image: l.image, Keeps: r.Language == "go"}
	if r.Language != "" {
		fill.Action, fill.With = l.action, l.with
	}
	return fill
}

// look describes the repository in dir, from the files there. It ignores files that cannot be read.
func look(dir string) repository {
	r := repository{CI: ciOf(dir)}
	for _, read := range []func(*repository, string){nodeOf, pythonOf, rustOf, goOf} {
		if read(&r, dir); r.Language != "" {
			break
		}
	}
	return r
}

// nodeOf reads package.json. The agent is the program that the package installs, else its script acp or start, else
// its main file.
func nodeOf(r *repository, dir string) {
	var p struct {
		Name    string
		Bin     any
		Main    string
		Scripts map[string]string
	}
	src, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil || json.Unmarshal(src, &p) != nil {
		return
	}
	r.Language, r.Name = "node", path.Base(p.Name) // without the package's scope
	manager := "npm"
	r.Build = []string{"npm install"}
	for _, by := range []struct {
		manager, install string
		downloads        Downloads
	}{
		{"npm", "npm ci", Downloads{"npm_config_cache", ".npm", "package-lock.json"}},
		{"pnpm", "corepack enable && pnpm install --frozen-lockfile",
			Downloads{"npm_config_store_dir", ".pnpm-store", "pnpm-lock.yaml"}},
		{"yarn", "corepack enable && yarn install --immutable",
			Downloads{"YARN_CACHE_FOLDER", ".yarn-cache", "yarn.lock"}},
	} {
		if has(dir, by.downloads.Lock) {
			manager, r.Downloads, r.Build = by.manager, by.downloads, []string{by.install}
		}
	}
	if p.Scripts["build"] != "" {
		r.Build = append(r.Build, manager+" run build")
	}
	program := ""
	switch bin := p.Bin.(type) {
	case string:
		program = bin
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(bin)) {
			if file, ok := bin[name].(string); ok && program == "" {
				program, r.Name = file, name
			}
		}
	}
	switch {
	case program != "":
		r.Command = []string{"node", strings.TrimPrefix(program, "./")}
	case p.Scripts["acp"] != "":
		r.Command = []string{manager, "run", "--silent", "acp"}
	case p.Scripts["start"] != "":
		r.Command = []string{manager, "run", "--silent", "start"}
	case p.Main != "":
		r.Command = []string{"node", strings.TrimPrefix(p.Main, "./")}
	}
}

// pythonOf reads pyproject.toml. The agent is the first of the project's scripts, else the project's module.
func pythonOf(r *repository, dir string) {
	var p struct {
		Project struct {
			Name    string
			Scripts map[string]string
		}
	}
	if _, err := toml.DecodeFile(filepath.Join(dir, "pyproject.toml"), &p); err != nil {
		return
	}
	r.Language, r.Build, r.Name = "python", []string{"pip install ."}, p.Project.Name
	r.Downloads = Downloads{"PIP_CACHE_DIR", ".pip", "pyproject.toml"}
	uv := has(dir, "uv.lock")
	if uv {
		r.Build = []string{"pip install uv", "uv sync"}
		r.Downloads = Downloads{"UV_CACHE_DIR", ".uv", "uv.lock"}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Project.Scripts)) {
		r.Command, r.Name = []string{name}, name
		break
	}
	if r.Command == nil && p.Project.Name != "" {
		r.Command = []string{"python", "-m", strings.ReplaceAll(p.Project.Name, "-", "_")}
	}
	if uv && r.Command != nil {
		r.Command = append([]string{"uv", "run"}, r.Command...)
	}
}

// rustOf reads Cargo.toml. The agent is the first binary of the package, else the package itself.
func rustOf(r *repository, dir string) {
	var p struct {
		Package struct{ Name string }
		Bin     []struct{ Name string }
	}
	if _, err := toml.DecodeFile(filepath.Join(dir, "Cargo.toml"), &p); err != nil {
		return
	}
	r.Language, r.Build = "rust", []string{"cargo build --release"}
	if has(dir, "Cargo.lock") {
		r.Downloads = Downloads{"CARGO_HOME", ".cargo", "Cargo.lock"}
	}
	name := p.Package.Name
	if len(p.Bin) > 0 {
		name = p.Bin[0].Name
	}
	if name != "" {
		r.Command, r.Name = []string{"./target/release/" + name}, name
	}
}

// goOf reads go.mod. The agent is the program in the root folder, else the only program in cmd.
func goOf(r *repository, dir string) {
	if !has(dir, "go.mod") {
		return
	}
	r.Language, r.Build = "go", []string{"go build ./..."}
	if has(dir, "go.sum") {
		r.Downloads = Downloads{"GOMODCACHE", ".gomodcache", "go.sum"}
	}
	programs, _ := filepath.Glob(filepath.Join(dir, "cmd", "*", "main.go"))
	switch {
	case has(dir, "main.go"):
		r.Command, r.Name = []string{"go", "run", "."}, filepath.Base(dir)
	case len(programs) == 1:
		r.Name = filepath.Base(filepath.Dir(programs[0]))
		r.Command = []string{"go", "run", "./cmd/" + r.Name}
	}
}

// hosts maps part of a remote's URL to the CI system of that host.
var hosts = []struct{ url, ci string }{
	{"github.com", "github"}, {"gitlab", "gitlab"}, {"dev.azure.com", "azure"}, {"visualstudio.com", "azure"},
	{"codeberg.org", "forgejo"}, {"forgejo", "forgejo"}, {"gitea", "forgejo"},
}

var origins = lazy.Regexp(`(?m)^\s*url\s*=\s*(.+)$`)

// ciOf returns the CI system whose files are in dir. Without such files, it returns the CI system of the Git remote's
// host.
func ciOf(dir string) string {
	for _, has := range []struct{ file, ci string }{
		{".github/workflows", "github"}, {".gitlab-ci.yml", "gitlab"}, {"Jenkinsfile", "jenkins"},
		{".forgejo", "forgejo"}, {".woodpecker", "woodpecker"}, {".woodpecker.yml", "woodpecker"},
		{"azure-pipelines.yml", "azure"},
	} {
		if _, err := os.Stat(filepath.Join(dir, has.file)); err == nil {
			return has.ci
		}
	}
	config, _ := os.ReadFile(filepath.Join(dir, ".git", "config"))
	for _, url := range origins().FindAllStringSubmatch(string(config), -1) {
		for _, host := range hosts {
			if strings.Contains(url[1], host.url) {
				return host.ci
			}
		}
	}
	return ""
}

func has(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}
