package agents

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/wire"
	"github.com/tidwall/jsonc"
)

// Settings reads `agent_servers` in an editor's settings.json and returns one profile per agent, sorted by name. The
// file may contain comments and trailing commas. In the profiles' environments, dummies replace credentials, and the
// URL of the fake model server replaces the model's address. Entries without a command, such as those an editor
// installs by itself, become no profiles: they are listed in skipped, with the reason.
func Settings(file string) (profiles []*Profile, skipped []string, err error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading editor settings %s: %w", file, cause(err))
	}
	profiles, skipped, err = ParseSettings(file, src)
	slices.SortFunc(profiles, func(a, b *Profile) int { return strings.Compare(a.Title, b.Title) })
	slices.Sort(skipped)
	return profiles, skipped, err
}

// ParseSettings is like Settings, but parses the text src and keeps the order of the text. name is the file name that
// messages show.
func ParseSettings(name string, src []byte) (profiles []*Profile, skipped []string, err error) {
	defer mistake.Catch(&err)
	s, doc := readSettings(name, src)
	servers := doc.Get("agent_servers")
	if !servers.Exists() && bare(doc) {
		servers = doc
	}
	for key, v := range s.object(servers, "agent_servers") {
		where := "agent_servers." + key
		if v.Kind() != wire.Object {
			s.fail(v, "%s must be an object", where)
		}
		argv, env := s.program(v, where)
		switch kind := s.one(v.Get("type"), where+".type"); {
		case argv[0] != "":
			p := ofSettings(name, key, argv, env)
			p.OwnMode = s.one(v.Get("default_mode"), where+".default_mode")
			p.OwnModel = s.one(v.Get("default_model"), where+".default_model")
			profiles = append(profiles, p)
		case kind != "" && kind != "custom":
			skipped = append(skipped,
				fmt.Sprintf("%s: the editor installs this agent itself (type %q), so no command is named", key, kind))
		default:
			s.misspelt(v, where)
			skipped = append(skipped, fmt.Sprintf("%s: it has no command", key))
		}
	}
	return profiles, skipped, nil
}

// bare reports whether an object looks like the content of agent_servers without that key: it is not empty, and each
// member has a command.
func bare(doc wire.Value) bool {
	for _, v := range doc.Members() {
		if !v.Get("command").Exists() {
			return false
		}
	}
	return doc.Len() > 0
}

// ofSettings returns the profile of an agent in an editor's settings, with its key, command and variables there.
func ofSettings(file, key string, argv []string, env [][2]string) *Profile {
	p := AdHoc(argv)
	p.Name, p.Title, p.Source, p.Own = clean(key), key, file, map[string]string{}
	for _, pair := range env {
		k, v := pair[0], pair[1]
		p.Own[k] = v
		if _, ours := anyModel()[k]; ours {
			continue
		}
		if Secret(k) {
			v = dummyKey
		}
		p.Env[k] = strings.ReplaceAll(v, "$", "$$") // an editor does not expand variables
	}
	return p
}

var secret = lazy.Regexp(`(?i)(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|PRIVATE|SIGNATURE|` +
	`_PAT$|BEARER|DSN)`)

// Secret reports whether an environment variable's name looks as if its value were a credential.
func Secret(name string) bool { return secret().MatchString(name) }

// Server is an MCP server in an editor's settings: either a program with Command and Args, or a server at URL. Pairs
// has its variables or headers.
type Server struct {
	Name    string
	Type    string // stdio, http or sse
	Command string
	Args    []string
	URL     string
	// Pairs are the variables of a program, or the headers sent to URL, sorted by name.
	Pairs [][2]string
}

// serverKeys are the keys for MCP servers in the settings of editors.
var serverKeys = []string{"mcp_servers", "mcpServers", "context_servers"}

// ParseServers reads the MCP servers of an editor's settings.json, in the order of the file. name is the file name
// that messages show. ParseServers leaves out servers that are switched off ("enabled": false) and those of the
// editor's extensions, whose entries contain no command.
func ParseServers(name string, src []byte) (list []Server, err error) {
	defer mistake.Catch(&err)
	s, doc := readSettings(name, src)
	for _, key := range serverKeys {
		for called, v := range s.named(doc.Get(key), key) {
			server := s.server(called, key+"."+called, v)
			if server.Command+server.URL == "" {
				s.misspelt(v, key+"."+called)
			}
			if on, ok := v.Get("enabled").Bool(); (!ok || on) && server.Command+server.URL != "" {
				list = append(list, server)
			}
		}
	}
	return list, nil
}

// settings is the text of a settings file. Its methods report mistakes by a panic, which the exported functions
// recover.
type settings struct {
	name   string
	text   []byte
	before int // number of bytes added in front of the file's text
}

// readSettings parses an editor's settings.
func readSettings(name string, src []byte) (settings, wire.Value) {
	s := settings{name: name, text: jsonc.ToJSON(src)} // keeps all offsets
	if bytes.HasPrefix(s.text, []byte("\ufeff")) {     // editors on Windows write a byte order mark
		copy(s.text, "   ")
	}
	if text := bytes.TrimSpace(s.text); bytes.HasPrefix(text, []byte(`"`)) { // a copied fragment
		s.text, s.before = slices.Concat([]byte("{"), bytes.TrimRight(s.text, ", \t\r\n"), []byte("}")), 1
	}
	doc, err := wire.Parse(s.text)
	var bad *wire.SyntaxError
	switch {
	case errors.As(err, &bad):
		m := s.placed(bad.Offset)
		m.Message = bad.Msg
		panic(m)
	case doc.Kind() != wire.Object:
		s.fail(doc, "the settings must be an object")
	}
	return s, doc
}

func (s settings) fail(at wire.Value, format string, args ...any) {
	m := s.placed(at.Offset())
	m.Message = fmt.Sprintf(format, args...)
	panic(m)
}

func (s settings) server(name, where string, v wire.Value) Server {
	if v.Kind() != wire.Object {
		s.fail(v, "%s must be an object with a command or a url", where)
	}
	server := Server{Name: name, Type: "stdio", URL: s.one(v.Get("url"), where+".url")}
	argv, env := s.program(v, where)
	server.Command, server.Args, server.Pairs = argv[0], argv[1:], env
	if server.URL != "" {
		server.Type = cmp.Or(s.one(v.Get("type"), where+".type"), s.one(v.Get("transport"), where+".transport"), "http")
		if server.Type != "http" && server.Type != "sse" {
			s.fail(v, "%s.type must be http or sse, not %q", where, server.Type)
		}
		server.Args, server.Pairs = nil, s.pairs(v.Get("headers"), where+".headers")
	}
	return server
}

// program reads the command line and the environment of a program in the settings. argv[0] is "" if the entry has no
// command. In an older form of the settings, all three are members of "command".
func (s settings) program(v wire.Value, where string) (argv []string, env [][2]string) {
	argv = []string{""}
	if inner := v.Get("command"); inner.Kind() == wire.Object {
		argv, env = s.program(inner, where+".command")
	} else {
		argv[0] = s.one(inner, where+".command")
	}
	argv[0] = Home(cmp.Or(argv[0], s.one(v.Get("path"), where+".path")))
	args := v.Get("args")
	if args.Exists() && !args.IsNull() && args.Kind() != wire.Array {
		s.fail(args, "%s.args must be a list of texts", where)
	}
	for arg := range args.Items() {
		argv = append(argv, s.one(arg, where+".args"))
	}
	return argv, append(env, s.pairs(v.Get("env"), where+".env")...)
}

// Home replaces ~/ at the beginning of a command by the user's home directory, as editors do.
func Home(command string) string {
	if rest, ok := strings.CutPrefix(command, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return command
}

// misspelt is for an entry without a command or a URL: it fails if a key of the entry looks like a misspelling of one
// of these.
func (s settings) misspelt(v wire.Value, where string) {
	for key, inner := range v.Members() {
		if meant := mistake.Nearest(key, []string{"command", "url"}); meant != "" && key != "command" && key != "url" {
			s.fail(inner, "%s: unknown key %q (%s)", where, key, meant)
		}
	}
}

// object yields the members of a JSON object, and nothing if v is missing or null. It fails if v is another JSON
// type.
func (s settings) object(v wire.Value, where string) func(func(string, wire.Value) bool) {
	if v.Exists() && !v.IsNull() && v.Kind() != wire.Object {
		s.fail(v, "%s must be an object", where)
	}
	return v.Members()
}

// named yields the members of an object by key, or the elements of a list by their member "name".
func (s settings) named(v wire.Value, where string) func(func(string, wire.Value) bool) {
	if v.Kind() != wire.Array {
		return s.object(v, where)
	}
	return func(yield func(string, wire.Value) bool) {
		for element := range v.Items() {
			name := s.one(element.Get("name"), where+".name")
			if name == "" {
				s.fail(element, "each of %s must have a name", where)
			}
			if !yield(name, element) {
				return
			}
		}
	}
}

func (s settings) one(v wire.Value, where string) string {
	if v.Exists() && !v.IsNull() && v.Kind() != wire.String {
		s.fail(v, "%s must be a text, not %s", where, v.Raw())
	}
	return v.Str()
}

func (s settings) pairs(v wire.Value, where string) [][2]string {
	var list [][2]string
	for k, v := range s.named(v, where) {
		if inner := v.Get("value"); v.Kind() == wire.Object {
			v = inner
		}
		list = append(list, [2]string{k, s.one(v, where+"."+k)})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}

// placed returns a Mistake for the position at an offset of the text.
func (s settings) placed(offset int) *Mistake {
	before := s.text[s.before:max(offset, s.before)]
	line := 1 + bytes.Count(before, []byte("\n"))
	return &Mistake{File: s.name, Line: line, Column: len(before) - bytes.LastIndexByte(before, '\n')}
}
