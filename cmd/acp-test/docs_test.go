//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// fence is a fenced block of Markdown: what stands after the backquotes, its
// text, and the line it begins in.
type fence struct {
	info []string
	text string
	line int
}

func fences(page string) (all []fence) {
	var in *fence
	for i, line := range strings.Split(page, "\n") {
		switch {
		case in == nil && strings.HasPrefix(line, "```"):
			in = &fence{info: strings.Fields(line[3:]), line: i + 1}
		case in != nil && line == "```":
			all, in = append(all, *in), nil
		case in != nil:
			in.text += line + "\n"
		}
	}
	return all
}

// prose is a page without its fenced blocks.
func prose(page string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
}

// npmInstall is a line of the tutorial. It needs the registry of npm, or what ci/install-npm
// has from there.
const npmInstall = "npm install @agentclientprotocol/sdk tsx"

// elsewhere are command lines of the pages that are not executed here, and why.
var elsewhere = map[string]string{
	"./ci/test":                       "it is what runs this test",
	"ci/agents/install gemini-cli":    "phase install of ci/test runs it",
	"acp-test run --agent gemini-cli": "phase gemini-cli of ci/test runs it",
	"go run ./cmd/acp-test run":       "phase reference of ci/test runs it, and it needs the sources",
	npmInstall: "its packages are linked from ci/tutorial-npm; phase independent-agents " +
		"executes it",
	"npm install -D vitest":           "its packages are linked from ci/recipes",
	"npm install -D @playwright/test": "its packages are linked from ci/recipes",

	"go mod init editor && go get github.com/onsi/ginkgo/v2 github.com/onsi/gomega": "they are modules of " +
		"this repository",
	"acp-test run -- npx -y my-agent":    "there is no such package; the next line is the same with a file",
	"acp-test run -- python -m my_agent": "there is no such module; the line before is the same with a file",
}

var comment = regexp.MustCompile(` +#.*$`)

// script is the command lines of a block that are to be executed.
func script(block string) string {
	var b strings.Builder
	for line := range strings.Lines(block) {
		command := strings.TrimSpace(comment.ReplaceAllString(strings.TrimSpace(line), ""))
		if elsewhere[command] == "" || command == npmInstall && os.Getenv("ACP_TEST_NPM") != "" {
			b.WriteString(line)
		}
	}
	return b.String()
}

func pagesOfDocs() []string {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 8 {
		panic(fmt.Sprint("the pages are not where they should be: ", pages, err))
	}
	return append(pages, "../../README.md")
}

// recipes links the packages of the test runners, which the recipes would install, into a place.
func (p *place) recipes() {
	GinkgoHelper()
	packages, err := filepath.Abs("../../ci/recipes/node_modules")
	Expect(err).NotTo(HaveOccurred())
	for _, needed := range []string{packages, "pytest"} {
		if _, err := exec.LookPath(needed); needed != packages && err != nil {
			Skip("NOT TRIED, pytest is not installed: ci/test install")
		} else if _, err := os.Stat(packages); err != nil {
			Skip("NOT TRIED, the packages of the recipes are not installed: ci/test install")
		}
	}
	Expect(os.Symlink(packages, filepath.Join(p.dir, "node_modules"))).To(Succeed())
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile("../../" + file)
		Expect(err).NotTo(HaveOccurred())
		p.write(file, string(text))
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	Expect(err).NotTo(HaveOccurred())
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	p.env = append(p.env, "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPROXY=off", "GOCACHE="+cache,
		"GOMODCACHE="+modules)
}

var _ = Describe("the pages of docs", func() {
	// Whom the README sends there is never left with a page that was not followed.
	for i, page := range pagesOfDocs() {
		name := filepath.Base(filepath.Dir(page)) + "/" + filepath.Base(page)

		// Each page is followed literally, in a folder of its own with nothing
		// but Node and the program: a block that names a file is that file, a
		// block of sh is executed, and ends with the status it names.
		It("can be followed: "+name, func() {
			npm := filepath.Base(page) == "tutorial.md" && os.Getenv("ACP_TEST_NPM") != ""
			if filepath.Base(page) != "README.md" && !npm {
				oneOf(i)
			}
			src, err := os.ReadFile(page)
			Expect(err).NotTo(HaveOccurred())
			p := newPlace()
			p.env = append(p.env, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1")
			if filepath.Base(page) == "README.md" {
				// Who reads it has an agent and wrote the scenario.
				p.write("my-agent", "#!/bin/sh\nexec acp-test refagent\n")
				p.write("my.txtar", good)
			}
			if filepath.Base(page) == "tutorial.md" && !npm {
				packages, err := filepath.Abs("../../ci/tutorial-npm/node_modules")
				Expect(err).NotTo(HaveOccurred())
				if _, err := os.Stat(packages); err != nil {
					Skip("NOT TRIED, the packages of the tutorial are not installed: run ci/install-npm " +
						"ci/tutorial-npm")
				}
				Expect(os.Symlink(packages, filepath.Join(p.dir, "node_modules"))).To(Succeed())
			}
			if filepath.Base(page) == "editor-tests.md" {
				p.recipes()
			}
			for _, block := range fences(string(src)) {
				switch {
				case len(block.info) == 2 && block.info[0] != "sh":
					p.write(block.info[1], block.text)
				case len(block.info) > 0 && block.info[0] == "sh":
					want, checkout := 0, len(block.info) == 2 && block.info[1] == "checkout"
					if len(block.info) == 2 && !checkout {
						_, err := fmt.Sscanf(block.info[1], "exit=%d", &want)
						Expect(err).NotTo(HaveOccurred(), "%s:%d", page, block.line)
					}
					c := exec.Command("bash", "-euo", "pipefail", "-c", script(block.text))
					c.Dir, c.Env = p.dir, p.env
					if checkout { // here
						c.Dir, c.Env = "../..", append(os.Environ(), "GOBIN="+filepath.Join(p.dir, "gobin"))
					}
					if filepath.Base(page) == "README.md" { // all suites would take a while
						c.Args[4] = strings.Replace(c.Args[4], "acp-test run\n",
							"sed -i.all 's/suites: all/suites: [content]/' acp-test.yaml; acp-test run\n", 1)
					}
					out, err := c.CombinedOutput()
					Expect(status(err)).To(Equal(want), "%s:%d: %s\n%s", page, block.line, block.text, out)
				}
			}
		})

		It("lead somewhere: "+name, func() {
			src, err := os.ReadFile(page)
			Expect(err).NotTo(HaveOccurred())
			known := map[string]string{} // the headings of pages
			for _, link := range regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`).
				FindAllStringSubmatch(prose(string(src)), -1) {
				to := page
				if link[1] != "" {
					to = filepath.Join(filepath.Dir(page), link[1])
				}
				Expect(to).To(BeAnExistingFile(), "%s links to it", page)
				if link[2] != "" && filepath.Ext(to) == ".md" {
					if known[to] == "" {
						known[to] = headings(to)
					}
					Expect(strings.Contains(known[to], "\n"+link[2]+"\n")).To(BeTrue(), "%s links to %s", page, link[0])
				}
			}
		})
	}

	It("lead a newcomer from an empty folder to red and to green, by 12 commands and with 40 lines of TypeScript",
		func() {
			src, err := os.ReadFile("../../docs/tutorial.md")
			Expect(err).NotTo(HaveOccurred())
			page, _, ok := strings.Cut(string(src), "\n## 5. ")
			Expect(ok).To(BeTrue())
			var commands, ends []string
			for _, block := range fences(page) {
				switch block.info[0] {
				case "sh":
					commands = append(commands, strings.Split(strings.TrimSpace(block.text), "\n")...)
					ends = append(ends, strings.Join(block.info[1:], ""))
				case "ts":
					blank := strings.Count(block.text, "\n\n")
					Expect(strings.Count(block.text, "\n") - blank).To(BeNumerically("<=", 40))
				case "txtar":
					template, err := os.ReadFile("templates/cancel.txtar")
					Expect(err).NotTo(HaveOccurred())
					Expect(block.text).To(Equal(string(template)), "what init writes")
				}
			}
			Expect(len(commands)).To(BeNumerically("<=", 12), "%q", commands)
			Expect(ends).To(Equal([]string{"checkout", "", "exit=1", "exit=1", ""}))
		})

	It("name in the table of features only what there is", func() {
		page, err := os.ReadFile("../../docs/features.md")
		Expect(err).NotTo(HaveOccurred())
		p := newPlace()
		there := map[string]bool{"_meta": true}
		for _, list := range []string{"run --list", "run --protocol acp-v2 --list", "run --protocol ag-ui --list",
			"run --over http --list", "run --over ws --list", "editors --list"} {
			for line := range strings.Lines(p.run(strings.Fields(list)...).out) {
				there[strings.Fields(line)[0]] = true
			}
		}
		for _, reference := range []string{"rules", "acp-v2", "ag-ui"} {
			text, err := os.ReadFile("../../docs/reference/" + reference + ".md")
			Expect(err).NotTo(HaveOccurred())
			for _, rule := range regexp.MustCompile(`(?m)^### ([A-Z0-9-]+)$`).FindAllStringSubmatch(string(text), -1) {
				there[rule[1]] = true
			}
		}
		for line := range strings.Lines(p.run("refagent", "--liberties").out) {
			there["liberty "+strings.Fields(line)[0]] = true
		}
		for _, command := range []string{"prompt", "record", "sweep", "refagent", "run"} {
			for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(p.run("help", command).out, -1) {
				there[command+" "+flag] = true
			}
		}
		rows := 0
		for row := range strings.Lines(string(page)) {
			if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| feature ") {
				continue
			}
			rows++
			_, where, _ := strings.Cut(row[2:], " | ")
			Expect(where).To(MatchRegexp("`|\\]\\("), "nothing tests %s", row)
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(where, -1) {
				Expect(there[name[1]]).To(BeTrue(), "there is no %s: %s", name[1], row)
			}
		}
		Expect(rows).To(BeNumerically(">=", 70))
	})

	It("name only commands that there are as not executed here", func() {
		var all strings.Builder
		for _, page := range pagesOfDocs() {
			src, err := os.ReadFile(page)
			Expect(err).NotTo(HaveOccurred())
			all.Write(src)
		}
		for line, why := range elsewhere {
			Expect(all.String()).To(ContainSubstring(line), why)
		}
	})
})

// headings are the names by which a link leads to the headings of a page on GitHub, a line each.
func headings(page string) string {
	names := "\n"
	src, err := os.ReadFile(page)
	Expect(err).NotTo(HaveOccurred())
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(src), -1) {
		name := regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(strings.ToLower(h[1]), "")
		names += strings.ReplaceAll(name, " ", "-") + "\n"
	}
	return names
}
