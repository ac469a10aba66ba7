//go:build unix

package isolate_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/internal/isolate"
)

// Tools are what a program needs, and nothing of the user's.
func TestTools(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"home/.ssh/id", "home/.local/share/keyrings/k", "home/.local/lib/python/x.py",
		"home/.nvm/v20/bin/node", "home/.nvm/v20/lib/node_modules/npm/x.js", "home/agent", "home/notes/agent",
		"home/project/package.json", "home/project/dist/agent.js", "home/project/sub/deep/agent.js",
		"home/tool/node_modules/a/cli.js", "home/tool/secrets.env", "home/venv/pyvenv.cfg", "home/venv/bin/python",
		"home/.local/share/uv/tools/t/pyvenv.cfg", "home/.local/share/uv/python/p/bin/python3", "opt/lib/x"} {
		put(name, "")
	}
	put("home/.local/share/uv/tools/t/bin/t", "#!"+root+"/home/.local/share/uv/tools/t/bin/python\n")
	for at, to := range map[string]string{
		"home/.local/bin/t":                           "../share/uv/tools/t/bin/t",
		"home/.local/share/uv/tools/t/bin/python":     root + "/home/.local/share/uv/python/p/bin/python3",
		"home/tool/node_modules/.bin/cli":             "../a/cli.js",
		"opt/agent":                                   root + "/home/project/dist/agent.js",
		"home/.local/share/uv/tools/t/bin/a-loop":     "a-loop",
		"home/.local/share/uv/tools/t/bin/leads-back": root + "/home",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, at)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(root, at)); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name          string
		program, args string
		path          string
		want          string
	}{
		{name: "the user's own program is shown alone", program: "home/agent", want: "home/agent"},
		{name: "one in a folder of the user's with it", program: "home/notes/agent", want: "home/notes"},
		{name: "a project is shown whole", program: "home/project/sub/deep/agent.js", want: "home/project"},
		{name: "also where it is an argument, or a link leads to it", program: "opt/agent",
			args: "home/project/dist/agent.js",
			want: "home/project opt"},
		{name: "of what is installed with npm the outermost folder", program: "home/tool/node_modules/.bin/cli",
			want: "home/tool/node_modules"},
		{name: "a virtual environment", program: "home/venv/bin/python", want: "home/venv"},
		{name: "a script with its interpreter, through links", program: "home/.local/bin/t",
			want: "home/.local/bin home/.local/lib home/.local/share/uv/python/p home/.local/share/uv/tools/t"},
		{name: "of PATH what is installed together", path: "home/.nvm/v20/bin", want: "home/.nvm/v20"},
		{name: "but nothing beside ~/.local/bin but libraries", path: "home/.local/bin home/.missing/bin",
			want: "home/.local/bin home/.local/lib"},
		{name: "never the home or what is above it", path: "home .",
			args: "home . home/.local/share/uv/tools/t/bin/leads-back"},
		{name: "a link to nowhere is nothing", args: "home/.local/share/uv/tools/t/bin/a-loop"},
	} {
		t.Run(x.name, func(t *testing.T) {
			at := func(words string) (all []string) {
				for _, w := range strings.Fields(words) {
					all = append(all, filepath.Join(root, w))
				}
				return all
			}
			program := "/none"
			if x.program != "" {
				program = at(x.program)[0]
			}
			got := isolate.Tools(filepath.Join(root, "home"), program, at(x.args), at(x.path))
			if !slices.Equal(got, at(x.want)) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(at(x.want), "\n"))
			}
		})
	}
}
