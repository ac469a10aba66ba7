package recordings

import (
	"bytes"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/wire"
)

// Confinement rewrites the messages of a recorded editor so that the agent that gets them does not start, contact or
// open anything outside a folder.
type Confinement struct {
	// Root is that folder. Relative paths start in Work, a folder inside Root.
	Root, Work string
	// Server returns the entry of mcpServers that replaces a recorded one.
	Server func(Server) ([]byte, error)
	// Outside creates a folder below Root that replaces a recorded folder outside Root. If Outside is nil, none is
	// created.
	Outside func(dir string) error
	// Kept, if not nil, is called for each thing that is withheld from the agent, with the name of the thing.
	Kept func(what string)
}

// ErrUnreadable is the error for a line that is not JSON but may name programs or folders.
var ErrUnreadable = errors.New("it is not JSON, and may name programs or folders")

// telling matches text in a line that is not JSON. A tolerant agent might read that text as one of the members that
// Frame rewrites.
var telling = lazy.Regexp(`(?i)mcpServers|cwd|additionalDirectories|file:|_meta|` +
	strings.Join(runs, "|") + `|\\u`)

// runs are the members that name a program, its environment or an address.
var runs = []string{"command", "args", "env", "url", "headers", "executable"}

// traces are the members of _meta that hold a W3C trace context.
var traces = []string{"traceparent", "tracestate", "baggage"}

// opaque are the members that are never rewritten: texts for people and models, and ids of the protocol.
var opaque = []string{"text", "data", "blob", "sessionId"}

// Frame returns a line of the editor as the agent may receive it. It returns raw if nothing must change.
func (c *Confinement) Frame(raw []byte) ([]byte, error) {
	v, err := wire.Parse(raw)
	if err != nil {
		if telling().Match(raw) {
			return nil, ErrUnreadable
		}
		return raw, nil
	}
	r := &rewriting{Confinement: c}
	if out := r.message(v); r.changed || r.err != nil {
		return out, r.err
	}
	return raw, nil
}

// rewriting is the state of rewriting one message.
type rewriting struct {
	*Confinement
	changed bool
	err     error
}

// message rewrites the params of a message, or of each message of a batch.
func (r *rewriting) message(v wire.Value) []byte {
	switch v.Kind() {
	case wire.Array:
		return r.list(v, r.message)
	case wire.Object:
		return r.members(v, func(key string, m wire.Value) ([]byte, bool) {
			if strings.EqualFold(key, "params") {
				return r.value(key, m), true
			}
			return m.Raw(), true
		})
	}
	return v.Raw()
}

func (r *rewriting) list(v wire.Value, item func(wire.Value) []byte) []byte {
	items := lists.Collect(v.Items(), func(m wire.Value) []byte { return item(m) })
	return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
}

// members rewrites the members of an object. It keeps duplicate members, because agents differ in which of them they
// use.
func (r *rewriting) members(v wire.Value, member func(key string, m wire.Value) ([]byte, bool)) []byte {
	var list [][]byte
	for key, m := range v.Fields() {
		if text, stays := member(key.Str(), m); stays {
			list = append(list, slices.Concat(key.Raw(), []byte(":"), text))
		} else {
			r.changed = true
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(list, []byte(",")), []byte("}"))
}

// value returns the rewritten value of the member with the given key.
func (r *rewriting) value(key string, v wire.Value) []byte {
	switch v.Kind() {
	case wire.Object:
		return r.members(v, r.member)
	case wire.Array:
		return r.list(v, func(m wire.Value) []byte {
			if m.Kind() == wire.Object && strings.EqualFold(key, "mcpServers") {
				return r.server(m)
			}
			return r.value(key, m)
		})
	case wire.String:
		return r.text(key, v)
	}
	return v.Raw()
}

func (r *rewriting) member(key string, m wire.Value) ([]byte, bool) {
	switch {
	case isAny(key, runs) && names(m):
		r.kept(key)
		return nil, false
	case strings.EqualFold(key, "_meta") && m.Kind() == wire.Object:
		return r.members(m, r.meta), true
	}
	return r.value(key, m), true
}

// names reports whether a value may name a program or an address. An empty list or object does not: a capability may
// also be called url, for example.
func names(v wire.Value) bool {
	switch v.Kind() {
	case wire.String:
		return true
	case wire.Array, wire.Object:
		return v.Len() > 0
	}
	return false
}

// meta rewrites a member of a _meta. It keeps only trace contexts, numbers and booleans, because agents read settings,
// such as the program to run, from other values.
func (r *rewriting) meta(key string, m wire.Value) ([]byte, bool) {
	trace := m.Kind() == wire.String && slices.Contains(traces, key)
	if !trace && slices.Contains([]wire.Kind{wire.String, wire.Object, wire.Array}, m.Kind()) {
		r.kept("_meta." + key)
		return nil, false
	}
	return m.Raw(), true
}

// server returns the replacement for an entry of mcpServers.
func (r *rewriting) server(v wire.Value) []byte {
	s := serverOf(v)
	if s.Command == "" && s.URL == "" {
		return r.value("", v)
	}
	text, err := r.Server(s)
	r.changed, r.err = true, errors.Join(r.err, err)
	return text
}

// text rewrites a string if it is a path or a file URI outside Root.
func (r *rewriting) text(key string, v wire.Value) []byte {
	if isAny(key, opaque) {
		return v.Raw()
	}
	s := v.Str()
	now, err := r.within(s)
	if err != nil {
		r.err = errors.Join(r.err, err)
	}
	if now == s {
		return v.Raw()
	}
	r.changed = true
	if isAny(key, []string{"cwd", "additionalDirectories"}) && r.Outside != nil {
		r.err = errors.Join(r.err, r.Outside(now))
	}
	return []byte(serve.Quote(now))
}

// drive matches the beginning of a Windows path.
var drive = lazy.Regexp(`^[A-Za-z]:[\\/]`)

// within moves a path or file URI that lies outside Root to a place below Root. It returns any other text unchanged.
func (r *rewriting) within(s string) (string, error) {
	// Parsers of URLs remove control characters, and agents may treat paths in the same way.
	plain := strings.ReplaceAll(strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, s)), `\`, "/")
	if len(plain) >= 5 && strings.EqualFold(plain[:5], "file:") {
		u, err := url.Parse(plain)
		if err != nil {
			return s, err
		}
		name := u.Path
		if u.Opaque != "" {
			if name, err = url.PathUnescape(u.Opaque); err != nil {
				return s, err
			}
		}
		if u.Host != "" && u.Host != "localhost" {
			name = "//" + u.Host + name
		}
		now := r.place(name, u.Host != "" && u.Host != "localhost")
		if now == name {
			return s, nil
		}
		return "file://" + (&url.URL{Path: now}).EscapedPath(), nil
	}
	parts := strings.Split(plain, "/")
	if !path.IsAbs(plain) && !drive().MatchString(plain) && !slices.Contains(parts, "..") {
		return s, nil
	}
	if now := r.place(plain, false); now != plain {
		return now, nil
	}
	return s, nil
}

// place returns name if it is a path below Root, else a path below Root that replaces it. foreign says that name
// belongs to another machine.
func (r *rewriting) place(name string, foreign bool) string {
	at := path.Clean(name)
	if !path.IsAbs(at) && !drive().MatchString(name) {
		at = path.Join(r.Work, at)
	}
	if !foreign && (at == r.Root || strings.HasPrefix(at, strings.TrimSuffix(r.Root, "/")+"/")) {
		if slices.Contains(strings.Split(name, "/"), "..") {
			return at // a link in the path may lead to another place than the text says
		}
		return name
	}
	r.kept(name)
	return path.Join(r.Root, "outside", strings.ReplaceAll(path.Join("/", name), ":", ""))
}

func (r *rewriting) kept(what string) {
	if r.Kept != nil {
		r.Kept(what)
	}
}

func isAny(key string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(key, name) })
}
