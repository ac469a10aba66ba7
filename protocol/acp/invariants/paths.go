package invariants

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/wire"
)

// pathAbs checks that paths are absolute and line numbers valid.
func pathAbs(w *watch) {
	v := w.version
	elsewhere := otherFolder(w)
	check := func(point string, ev *event, path wire.Value, what string) {
		if path.Kind() != wire.String {
			return
		}
		w.Saw(point)
		text, ok := path.Plain()
		if !ok {
			text = []byte(path.Str())
		}
		if !isAbsolute(text) {
			w.find(point, ev, ev.Method+string(text), nil,
				"The %s is %q; it must be an absolute path.", what, string(text))
			return
		}
		elsewhere(ev, string(text))
		if bytes.IndexByte(text, ':') > 1 && lineSuffix().Match(text) {
			w.find("line-suffix", ev, string(text), nil, "The %s %q seems to end in a line number.", what, string(text))
		}
		if s := ev.session; w.Config().Start != "" && s != nil && s.cwd != "" {
			p := string(text)
			w.judge("start-directory", under(p, w.Config().Start) && !under(w.Config().Start, s.cwd) && !w.within(p, s), ev, p,
				nil, "The %s %q lies in the directory the agent was started in, not in the session's %q.", what, p, s.cwd)
		}
	}
	count := func(point string, ev *event, n wire.Value, of string) {
		if n.Kind() == wire.Number {
			at, ok := n.Int()
			w.judge(point, ok && at == 0, ev, "", nil, "The line of %s is 0, but lines count from 1.", of)
		}
	}
	tool := func(ev *event, call wire.Value) {
		for l := range call.Get("locations").Items() {
			check("location", ev, l.Get("path"), "path of a location")
			count("line", ev, l.Get("line"), "a location")
		}
		for c := range call.Get("content").Items() {
			if c.Get("type").Is("diff") {
				check("diff", ev, c.Get("path"), "path of a diff")
			}
			uri := cmp.Or(c.Path("content.uri").Str(), c.Path("content.resource.uri").Str())
			w.judge("uri", uri != "" && isRelative(uri), ev, uri, nil,
				"The content of a tool call has the URI %q, which is a relative path.", uri)
			for change := range c.Get("changes").Items() {
				check("diff", ev, change.Get("path"), "path of a diff")
				check("diff", ev, change.Get("oldPath"), "oldPath of a diff")
			}
		}
	}
	w.On(func(ev *event) { tool(ev, ev.update) }, toolCall, toolUpdate)
	w.On(func(ev *event) { tool(ev, ev.params.Path(v.call)) }, asked(permission))
	w.On(func(ev *event) {
		check("file", ev, ev.params.Get("path"), "path of "+ev.Method)
		count("read-line", ev, ev.params.Get("line"), ev.Method)
	}, asked(readFile), asked(writeFile))
	w.On(func(ev *event) { check("terminal-cwd", ev, ev.params.Get("cwd"), "cwd of terminal/create") },
		asked(createTerminal))
	w.On(func(ev *event) {
		for item := range ev.result.Get("sessions").Items() {
			check("listed-cwd", ev, item.Get("cwd"), "cwd of a listed session")
			for dir := range item.Get("additionalDirectories").Items() {
				check("listed-directories", ev, dir, "additional directory of a listed session")
			}
		}
	}, answered(listSessions))
}

// lineSuffix matches the end of a path like "main.go:12" or "main.go:1-20".
var lineSuffix = lazy.Regexp(`..:[0-9][0-9-]*$`)

// isAbsolute reports whether a path is absolute. It accepts POSIX and Windows paths on all machines.
func isAbsolute(path []byte) bool {
	if len(path) > 0 && path[0] == '/' || len(path) > 1 && path[0] == '\\' && path[1] == '\\' {
		return true
	}
	return len(path) > 2 && path[1] == ':' && (path[2] == '/' || path[2] == '\\') &&
		('a' <= path[0]|0x20 && path[0]|0x20 <= 'z')
}

// schemeOf matches the scheme of a URI.
var schemeOf = lazy.Regexp(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// isRelative reports whether a URI is a relative path, as in src/main.go or file://main.go.
func isRelative(uri string) bool {
	path, isFile := strings.CutPrefix(uri, "file:")
	if !isFile {
		return !isAbsolute([]byte(uri)) && !schemeOf().MatchString(uri)
	}
	host, named := strings.CutPrefix(path, "//")
	if !named {
		return !isAbsolute([]byte(path))
	}
	host, _, _ = strings.Cut(host, "/")
	return host != "" && host != "localhost" && !strings.Contains(host, ":")
}

// within reports whether a path lies in one of the roots of a session or of the run.
func (w *watch) within(path string, s *session) bool {
	return slices.ContainsFunc(slices.Concat([]string{s.cwd}, s.roots, w.Config().Roots),
		func(root string) bool { return under(path, root) })
}

// under reports whether path is the directory dir or lies in it.
func under(path, dir string) bool {
	dir = strings.TrimRight(dir, "/")
	return path == dir || strings.HasPrefix(path, dir+"/")
}
