package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// pathAbs judges paths and line numbers.
func pathAbs() *rule {
	r := ofAgent("PATH-ABS", "Paths are absolute and lines count from 1.")
	location := r.Fail("location", "the path of a tool call's location is not absolute", "TOOL-016", "PATH-001")
	diff := r.Fail("diff", "the path of a diff is not absolute", "TOOL-014", "PATH-001")
	file := r.Fail("file", "the path of a file request is not absolute", "FS-003", "PATH-001")
	cwd := r.Fail("terminal-cwd", "the cwd of a terminal is not absolute", "PATH-001", "TERM-003")
	listed := r.Fail("listed-cwd", "the cwd of a listed session is not absolute", "PATH-001", "LIST-006")
	dirs := r.Fail("listed-directories",
		"an additional directory of a listed session is not absolute", "PATH-001", "DIRS-008")
	line := r.Fail("line", "the line of a location is 0", "TOOL-017", "PATH-002")
	readLine := r.Fail("read-line", "the line of a read request is 0", "FS-004", "PATH-002")
	suffix := r.Lint("line-suffix", "a path ends in a line number", "TOOL-016")
	outside := r.Warn("start-directory",
		"a path lies in the directory the agent was started in, and in none of the session's roots", "SESSION-006")
	return r.watching(func(w *watch) {
		check := func(point int, ev *event, path wire.Value, what string) {
			if path.Kind() != wire.String {
				return
			}
			w.Saw(point)
			text, ok := path.Plain()
			if !ok {
				text = []byte(path.Str())
			}
			if !isAbsolute(text) {
				w.find(point, ev, ev.Method+string(text), nil, "The %s is %q, and must be an absolute path.", what, string(text))
				return
			}
			if w.lineSuffix(text) {
				w.find(suffix, ev, string(text), nil, "The %s %q seems to end in a line number.", what, string(text))
			}
			if s := ev.session; w.Config().Start != "" && s != nil && s.cwd != "" {
				w.Saw(outside)
				p := string(text)
				if under(p, w.Config().Start) && !under(w.Config().Start, s.cwd) && !w.within(p, s) {
					w.find(outside, ev, p, nil, "The %s %q lies in the directory the agent was started in, not in the session's %q.",
						what, p, s.cwd)
				}
			}
		}
		tool := func(ev *event, call wire.Value) {
			for l := range call.Get("locations").Items() {
				check(location, ev, l.Get("path"), "path of a location")
				if n := l.Get("line"); n.Kind() == wire.Number {
					w.Saw(line)
					if at, ok := n.Int(); ok && at == 0 {
						w.find(line, ev, "", nil, "The line of a location is 0, and lines count from 1.")
					}
				}
			}
			for c := range call.Get("content").Items() {
				if c.Get("type").Is("diff") {
					check(diff, ev, c.Get("path"), "path of a diff")
				}
			}
		}
		w.on(func(ev *event) { tool(ev, ev.update) }, toolCall, toolUpdate)
		w.on(func(ev *event) { tool(ev, ev.params.Get("toolCall")) }, asked(permission))
		w.on(func(ev *event) {
			check(file, ev, ev.params.Get("path"), "path of "+ev.Method)
			if n := ev.params.Get("line"); n.Kind() == wire.Number {
				w.Saw(readLine)
				if at, ok := n.Int(); ok && at == 0 {
					w.find(readLine, ev, "", nil, "The line of %s is 0, and lines count from 1.", ev.Method)
				}
			}
		}, asked(readFile), asked(writeFile))
		w.on(func(ev *event) { check(cwd, ev, ev.params.Get("cwd"), "cwd of terminal/create") }, asked(createTerminal))
		w.on(func(ev *event) {
			for item := range ev.result.Get("sessions").Items() {
				check(listed, ev, item.Get("cwd"), "cwd of a listed session")
				for dir := range item.Get("additionalDirectories").Items() {
					check(dirs, ev, dir, "additional directory of a listed session")
				}
			}
		}, answered(listSessions))
	})
}

// isAbsolute accepts POSIX and Windows paths, whichever machine this is.
func isAbsolute(path []byte) bool {
	if len(path) > 0 && path[0] == '/' || len(path) > 1 && path[0] == '\\' && path[1] == '\\' {
		return true
	}
	return len(path) > 2 && path[1] == ':' && (path[2] == '/' || path[2] == '\\') &&
		('a' <= path[0]|0x20 && path[0]|0x20 <= 'z')
}

// lineSuffix reports whether a path ends like "main.go:12" or "main.go:1-20".
func (w *watch) lineSuffix(path []byte) bool {
	colon := strings.LastIndexByte(string(path), ':')
	if colon < 2 || colon == len(path)-1 {
		return false
	}
	for _, b := range path[colon+1:] {
		if (b < '0' || b > '9') && b != '-' {
			return false
		}
	}
	return path[colon+1] != '-'
}

func (w *watch) within(path string, s *session) bool {
	if under(path, s.cwd) {
		return true
	}
	for _, roots := range [][]string{s.roots, w.Config().Roots} {
		for _, root := range roots {
			if under(path, root) {
				return true
			}
		}
	}
	return false
}

// under reports whether a path is a directory or lies in it.
func under(path, dir string) bool {
	dir = strings.TrimRight(dir, "/")
	return path == dir || strings.HasPrefix(path, dir+"/")
}
