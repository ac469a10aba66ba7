package agents

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/transport"
)

// Sandbox describes where an agent runs and the part of the host that the agent may see.
type Sandbox struct {
	Work, Home, Temp string // absolute directories of the run
	LLM              string // base URL of the model server; "" means no server
	Proxy            string // URL of the proxy for connections to other machines; "" means no proxy
	Self             string // path of this program, for agents that are part of it
	Cwd              string // the user's current directory, absolute
	// HostEnv is the host's environment as os.Environ gives it. The method Launch passes on only the variables that
	// its comment lists.
	HostEnv []string
	Env     map[string]string // more environment for the agent, may use variables such as $WORK; wins over all
	Pass    []string          // names to pass from HostEnv; win over the profile
}

// Launch is a program to start, as plain data in which every variable is replaced.
type Launch struct {
	URL string // address of the agent; "" if the editor talks to its process by pipes
	// Headers go with each request to URL.
	Headers map[string]string
	Path    string // absolute path of the program; "" if the agent is already running at URL
	Args    []string
	Env     []string // the whole environment, sorted
	Dir     string
	Files   map[string][]byte // files to write below HOME first: slash-separated path to content
	Tools   []string          // directories with tools of the host that Env points to
	Found   Found
}

// Process returns the command that starts the profile's agent in a sandbox, and
// writes the profile's files below the sandbox's HOME. It returns the errors of
// Launch, and an error if a file cannot be written.
func (p *Profile) Process(s Sandbox, keeper []string) (c transport.Command, err error) {
	l, err := p.Launch(s)
	if err != nil {
		return c, err
	}
	return transport.Command{Path: l.Path, Args: l.Args, Env: l.Env, Dir: l.Dir, Keeper: keeper},
		workspace.Write(s.Home, l.Files)
}

// Launch prepares the start of the profile's agent in a sandbox.
//
// From the host's environment the agent gets PATH, the language, the user's name and the time zone. HOME and the
// directory for temporary files are the sandbox's. TERM is dumb and NO_COLOR is set. So that launchers work, the
// agent also gets the locations of the caches of npm, uv, pip, cargo, rustup, pyenv, nvm, volta, asdf, mise, the
// active virtualenv and Go, unless the profile says `caches: none`. Nothing else is passed on: a credential of the
// host reaches an agent only through Pass or Env.
//
// The usual proxy variables are set to the sandbox's proxy. A proxy set by the profile, Pass or Env wins.
//
// If the program is not found, Launch returns a *MissingError.
func (p *Profile) Launch(s Sandbox) (Launch, error) {
	l, _, err := p.launch(s)
	return l, err
}

// launch does the work of Launch, and also returns the values of the profile's variables.
func (p *Profile) launch(s Sandbox) (_ Launch, values map[string]string, err error) {
	host := environment(s.HostEnv)
	found, err := p.Locate(s)
	if err != nil {
		return Launch{}, nil, err
	}
	values = map[string]string{"LLM": s.LLM, "KEY": dummyKey, "WORK": s.Work, "HOME": s.Home, "TMP": s.Temp,
		"AGENT_DIR": found.AgentDir, "SELF": s.Self, "CWD": s.Cwd}
	if p.URL != "" {
		values["PRINTED"] = "$PRINTED" // replaced later, by the URL that the server prints
		if values["PORT"], err = freePort(); err != nil {
			return Launch{}, nil, fmt.Errorf("choosing a port for %s: %w", p.Shown(), err)
		}
	}
	url := expand(p.URL, values, false)
	headers, err := p.headers(values, host)
	if err != nil {
		return Launch{}, nil, err
	}
	if p.Remote() {
		return Launch{URL: url, Headers: headers, Found: found, Dir: s.Work}, values, nil
	}
	l := Launch{URL: url, Headers: headers, Path: found.Path, Found: found, Dir: s.Work, Files: map[string][]byte{}}
	l.Args = expandAll(p.Command[1:], values, p.literal)
	if p.Dir != "" {
		l.Dir = p.absolute(expand(p.Dir, values, false), s.Cwd)
	}
	for name, content := range p.Home {
		l.Files[name] = []byte(expand(content, values, false))
	}
	maps.Copy(l.Files, p.prepared.in(s))

	env := basic(host, s)
	if !p.NoCaches {
		maps.Copy(env, caches(host))
		l.Tools = tools(env)
	}
	for k, v := range p.Env {
		env[k] = expand(v, values, false)
	}
	for _, k := range s.Pass {
		v, ok := host[k]
		if !ok {
			return Launch{}, nil, fmt.Errorf("passing %s to %s: this variable is not set", k, p.Shown())
		}
		env[k] = v
	}
	for k, v := range s.Env {
		env[k] = expand(v, values, true)
	}
	throughProxy(env, s.Proxy)
	if bin := found.bin(); bin != "" {
		// The program may be a script for the interpreter installed next to it.
		env["PATH"] = strings.TrimSuffix(bin+string(filepath.ListSeparator)+env["PATH"], string(filepath.ListSeparator))
	}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		l.Env = append(l.Env, k+"="+env[k])
	}
	return l, values, nil
}

// freePort returns a port of this machine on which nothing listens. The port is below the range from which systems
// choose ports by themselves (Linux from 32768, others from 49152). Otherwise the system could give the port to
// another program before the server listens.
func freePort() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

// absolute resolves a path of the profile: relative to the folder of the profile's file or, for a command that the
// user typed, relative to the user's current directory.
func (p *Profile) absolute(path, cwd string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	switch {
	case p.literal:
		return filepath.Join(cwd, path)
	case filepath.IsAbs(p.base):
		return filepath.Join(p.base, path)
	}
	return filepath.Join(cwd, p.base, path)
}

// environment converts a list of K=V to a map. If a name occurs twice, the last value wins.
func environment(list []string) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		// On Windows, the names of per-drive directories begin with =.
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			out[k] = v
		}
	}
	return out
}

// passed matches the host's variables that every agent gets: the search path, the user's language and time zone, and
// those that the system needs to start a program.
var passed = lazy.Regexp(`^(PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|USER|LOGNAME|SHELL|` +
	`SYSTEMROOT|SystemRoot|SYSTEMDRIVE|SystemDrive|WINDIR|windir|COMSPEC|ComSpec|PATHEXT|OS|NUMBER_OF_PROCESSORS|` +
	`PROCESSOR_ARCHITECTURE)$`)

func basic(host map[string]string, s Sandbox) map[string]string {
	env := maps.Clone(host)
	maps.DeleteFunc(env, func(name, _ string) bool { return !passed().MatchString(name) })
	maps.Copy(env, map[string]string{"HOME": s.Home, "TMPDIR": s.Temp, "TERM": "dumb", "NO_COLOR": "1"})
	if env["PATH"] == "" && host["Path"] != "" {
		env["PATH"] = host["Path"] // the name on Windows
	}
	if _, windows := host["SystemRoot"]; windows || host["SYSTEMROOT"] != "" {
		env["USERPROFILE"] = s.Home
		env["APPDATA"] = filepath.Join(s.Home, "AppData", "Roaming")
		env["LOCALAPPDATA"] = filepath.Join(s.Home, "AppData", "Local")
		env["TEMP"], env["TMP"] = s.Temp, s.Temp
	}
	return env
}

var variableNames = []string{"LLM", "KEY", "WORK", "HOME", "TMP", "AGENT_DIR", "SELF", "CWD", "PORT", "PRINTED"}

var reference = lazy.Regexp(`\$\$|\$[A-Za-z_][A-Za-z0-9_]*|\$`)

// variables reports a mistake at the node if a text contains a $NAME that Launch does not know.
func variables(at *yamlfile.Node, texts ...string) {
	for _, v := range reference().FindAllString(strings.Join(texts, " "), -1) {
		name := v[1:]
		if v != "$$" && !slices.Contains(variableNames, name) {
			at.Fail(mistake.Suggest(name, variableNames)+"; $$ is a dollar", "unknown variable %q", v)
		}
	}
}

// expand replaces variables by their values. $$ becomes a dollar. If literal is true, because a user typed the text,
// $$ and unknown variables stay as they are.
func expand(text string, values map[string]string, literal bool) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return reference().ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := values[v[1:]]; ok {
			return value
		}
		if v == "$$" && !literal {
			return "$"
		}
		return v
	})
}

func expandAll(words []string, values map[string]string, literal bool) []string {
	return lists.Map(words, func(w string) string { return expand(w, values, literal) })
}

var headerName = lazy.Regexp(`^[A-Za-z0-9!#$%&'*+.^_|~` + "`" + `-]+$`)

func CheckHeader(name string) error {
	if !headerName().MatchString(name) {
		return fmt.Errorf("%q is not a header name", name)
	}
	return nil
}

// headers returns the profile's headers with variables replaced. A header may also name a variable of the host's
// environment, so that secrets need not be written to a file or a command line.
func (p *Profile) headers(values, host map[string]string) (map[string]string, error) {
	known := maps.Clone(host)
	maps.Copy(known, values)
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		for _, v := range reference().FindAllString(p.Headers[name], -1) {
			if _, ok := known[v[1:]]; !ok && v != "$$" && v != "$" {
				return nil, fmt.Errorf("the header %s of %s: the variable %s is not set", name, p.Shown(), v)
			}
		}
		out[name] = expand(p.Headers[name], known, false)
	}
	return out, nil
}

// proxyVariables are the variables that name a proxy, in both spellings. Programs
// differ in which spelling wins.
var proxyVariables = [][]string{{"HTTP_PROXY", "http_proxy"}, {"HTTPS_PROXY", "https_proxy"}}

// direct lists the hosts to reach without the proxy.
const direct = "127.0.0.1,localhost,::1"

// throughProxy adds the proxy to an environment without a proxy. Node reads the proxy variables only if
// NODE_USE_ENV_PROXY is set.
func throughProxy(env map[string]string, proxy string) {
	if proxy == "" {
		return
	}
	set := func(value string, names ...string) {
		if slices.ContainsFunc(names, func(name string) bool { _, ok := env[name]; return ok }) {
			return
		}
		for _, name := range names {
			env[name] = value
		}
	}
	for _, names := range proxyVariables {
		set(proxy, names...)
	}
	set(direct, "NO_PROXY", "no_proxy")
	set("1", "NODE_USE_ENV_PROXY")
}

// Fetches reports whether the command is a launcher, such as npx, that may have
// to fetch the agent from a registry first.
func (p *Profile) Fetches() bool {
	return len(p.Command) > 0 && slices.Contains(launchers, base(p.Command[0]))
}

// cache is a directory of the host that a launcher needs to work without a
// network.
type cache struct {
	names []string // the variable for the directory, then other variable names that a host may use
	// places are the default locations below the host's HOME, in order of preference. They apply if the host sets
	// none of the variables. Without places, only the host's variable is passed.
	places []string
	// mixed marks a directory that may also contain files of the user, such as sources or credentials.
	mixed bool
}

// cacheTable has a line for each cache of a tool or toolchain: the word "mixed" for a mixed cache, its names and its
// places. The table names only folders. Settings that may contain a password, such as the address of a registry, are
// left out.
//
//go:embed tables/caches.txt
var cacheTable string

func allCaches() (list []cache) {
	for line := range strings.Lines(cacheTable) {
		rest, mixed := strings.CutPrefix(line, "mixed ")
		words := strings.Fields(rest)
		list = append(list, cache{strings.Split(words[0], "|"), words[1:], mixed})
	}
	return list
}

// CacheDir returns the cache folder of the host's user, or "" if none is found. env is a list of K=V.
func CacheDir(env []string) string {
	host := environment(env)
	named := lists.First([]string{host["XDG_CACHE_HOME"], host["LOCALAPPDATA"]}, filepath.IsAbs)
	home := host["HOME"]
	if named != "" || home == "" {
		return named
	}
	if mac := filepath.Join(home, "Library", "Caches"); isDir(mac) {
		return mac
	}
	return filepath.Join(home, ".cache")
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// caches returns the variables for the caches that this host has.
func caches(host map[string]string) map[string]string {
	env := map[string]string{}
	home := cmp.Or(host["HOME"], host["USERPROFILE"])
	for _, c := range allCaches() {
		if dir := c.locate(host, home); dir != "" {
			env[c.names[0]] = dir
		}
	}
	if _, ok := env["npm_config_cache"]; ok {
		// npm must use cached packages without asking a registry, and must not
		// look for its own updates or mention them.
		env["npm_config_prefer_offline"] = "true"
		env["npm_config_update_notifier"] = "false"
		env["npm_config_fund"] = "false"
		env["npm_config_audit"] = "false"
	}
	return env
}

// tools returns the cache directories in env that contain only tools, and no files of the user.
func tools(env map[string]string) []string {
	own := lists.Where(allCaches(), func(c cache) bool { return filepath.IsAbs(env[c.names[0]]) && !c.mixed })
	return lists.Map(own, func(c cache) string { return env[c.names[0]] })
}

func (c cache) locate(host map[string]string, home string) string {
	set := lists.First(c.names, func(name string) bool { return host[name] != "" })
	if set != "" || home == "" {
		return host[set]
	}
	dirs := lists.Map(c.places, func(place string) string { return filepath.Join(home, filepath.FromSlash(place)) })
	return lists.First(dirs, isDir)
}
