package isolate

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// View selects the files of this machine that an agent sees, in addition to the system's programs and libraries:
// absolute paths of existing files. No other file exists for the agent, and it cannot reach sockets there.
type View struct {
	Write []string `json:",omitempty"` // the agent may write here; at least one
	Read  []string `json:",omitempty"`
	Hide  []string `json:",omitempty"` // directories in Write or Read that are empty for the agent
}

// Tools returns the paths that a program needs to run: the directories of programs in its PATH, the installations of
// the program and of the files among its arguments, and the interpreters of these. The result never includes the
// user's directory home or a directory above it.
func Tools(home, program string, args, path []string) []string {
	t := tools{home: resolved(cmp.Or(home, "/"))}
	for _, dir := range path {
		t.programs(dir)
	}
	t.file(program)
	for _, a := range args {
		if filepath.IsAbs(a) {
			t.file(a)
		}
	}
	slices.Sort(t.found)
	var all []string // a path inside another one follows it in sorted order, and is left out
	for _, path := range t.found {
		if !slices.ContainsFunc(all, func(above string) bool { return contains(above, path) }) {
			all = append(all, path)
		}
	}
	return all
}

type tools struct {
	home  string
	found []string
}

// add adds a path, unless it leads to the user's directory or to a directory above that.
func (t *tools) add(path string) {
	if at, err := filepath.EvalSymlinks(path); err == nil && !contains(at, t.home) {
		t.found = append(t.found, filepath.Clean(path))
	}
}

// private reports whether a directory is too general to show as part of a tool:
// the user's directory, any directory above it, or one directly below the root.
func (t *tools) private(dir string) bool {
	return strings.Count(filepath.ToSlash(dir), "/") < 2 || contains(dir, t.home)
}

// contains reports whether path is dir or is below dir.
func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// programs adds a directory of programs. If its name is "bin", programs also adds the directory above, where the rest
// of the installation is. If that directory is too general or directly in the user's home, such as ~/.local, it adds
// only lib, lib64 and libexec there.
func (t *tools) programs(dir string) {
	if !filepath.IsAbs(dir) {
		return
	}
	t.add(dir)
	above := filepath.Dir(dir)
	switch {
	case filepath.Base(dir) != "bin":
	case t.private(above) || filepath.Dir(above) == t.home:
		for _, beside := range []string{"lib", "lib64", "libexec"} {
			t.add(filepath.Join(above, beside))
		}
	default:
		t.add(above)
	}
}

// file adds the installation that a file belongs to, both at path and where path leads after links are resolved. It
// also adds the interpreter in the file's first line. If path is a directory, file adds only the directory.
func (t *tools) file(path string) {
	for _, at := range []string{path, resolved(path)} {
		info, err := os.Stat(at)
		switch {
		case err != nil:
		case info.IsDir():
			t.add(at)
		default:
			t.add(t.whole(at))
			if dir := filepath.Dir(at); filepath.Base(dir) == "bin" {
				t.programs(dir)
			}
		}
	}
	if interpreter := interpreter(path); interpreter != "" && interpreter != path {
		t.file(interpreter)
	}
}

// whole returns the folder in which a file is installed: the outermost node_modules, else the nearest directory above
// that looks like a project, else the file's directory. If the file's directory is too general or is a "bin", whole
// returns the file instead.
func (t *tools) whole(file string) string {
	dir := filepath.Dir(file)
	if above, _, ok := strings.Cut(dir+"/", "/node_modules/"); ok {
		return filepath.Join(above, "node_modules")
	}
	for at := dir; at != "/" && at != "." && !contains(at, t.home); at = filepath.Dir(at) {
		for _, sign := range projectSigns {
			if _, err := os.Stat(filepath.Join(at, sign)); err == nil {
				return at
			}
		}
	}
	if t.private(dir) || filepath.Base(dir) == "bin" {
		return file
	}
	return dir
}

// projectSigns lists files that are at the top of a project or an installed package.
var projectSigns = []string{"package.json", "pyproject.toml", "setup.py", "pyvenv.cfg", "go.mod", "Cargo.toml",
	"pom.xml", "build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "deno.json", "mix.exs"}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// interpreter returns the program that runs a script, or "" if path is not a script.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	line, _ := bufio.NewReaderSize(f, 512).ReadSlice('\n')
	words := strings.Fields(string(bytes.TrimPrefix(line, []byte("#!"))))
	if !bytes.HasPrefix(line, []byte("#!")) || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	return words[0]
}
