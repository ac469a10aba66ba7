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

// Sandbox is where an agent runs and what of the host it may see.
type Sandbox struct {
	Work, Home, Temp string // absolute directories of the run
	LLM              string // base URL of the model server; "" if there is none
	Proxy            string // URL of the proxy for all that is not on this machine; "" if there is none
	Self             string // this program, for agents that are part of it
	Cwd              string // where the user is, absolute
	// HostEnv is the host's environment as os.Environ gives it. Only the
	// variables on the list of Launch pass.
	HostEnv []string
	Env     map[string]string // more environment for the agent, with variables; wins over all
	Pass    []string          // names to pass from HostEnv; win over the profile
}

// Launch is what to start: plain data, with every variable replaced.
type Launch struct {
	URL string // where the agent is; "" if its process has pipes
	// Headers go with each request to URL.
	Headers map[string]string
	Path    string // the program, absolute; "" if it is not started here
	Args    []string
	Env     []string // the whole environment, sorted
	Dir     string
	Files   map[string][]byte // to write below HOME first: name with slashes to content
	Tools   []string          // directories of the host's tools that Env names
	Found   Found
}

// Process returns the command that starts the profile's agent in a sandbox, and writes the files of the
// profile below the HOME there. It fails where Launch fails, and where a file cannot be written.
func (p *Profile) Process(s Sandbox, keeper []string) (c transport.Command, err error) {
	l, err := p.Launch(s)
	if err != nil {
		return c, err
	}
	return transport.Command{Path: l.Path, Args: l.Args, Env: l.Env, Dir: l.Dir, Keeper: keeper},
		workspace.Write(s.Home, l.Files)
}

// Launch prepares the profile's agent to be started in a sandbox.
//
// Of the host's environment the agent gets PATH, the language, the user's name
// and the time zone; HOME and the places for temporary files are the
// sandbox's; the terminal is dumb and without colours. Launchers keep working:
// the caches of npm, uv, pip, cargo, rustup, pyenv, nvm, volta, asdf, mise, the
// active virtualenv and Go's are passed by their location, unless the profile
// says `caches: none`. Nothing else passes: no credential of the host reaches
// an agent but by Pass or Env.
//
// The proxy is named by the usual variables, unless the profile, Pass or Env
// name another one.
//
// A program that is not found is a *MissingError.
func (p *Profile) Launch(s Sandbox) (Launch, error) {
	l, _, err := p.launch(s)
	return l, err
}

// launch also returns the values of the profile's variables.
func (p *Profile) launch(s Sandbox) (_ Launch, values map[string]string, err error) {
	host := environment(s.HostEnv)
	found, err := p.Locate(s)
	if err != nil {
		return Launch{}, nil, err
	}
	values = map[string]string{"LLM": s.LLM, "KEY": dummyKey, "WORK": s.Work, "HOME": s.Home, "TMP": s.Temp,
		"AGENT_DIR": found.AgentDir, "SELF": s.Self, "CWD": s.Cwd}
	if p.URL != "" {
		values["PRINTED"] = "$PRINTED" // which only the server knows
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
			return Launch{}, nil, fmt.Errorf("passing %s to %s: it is not set here", k, p.Shown())
		}
		env[k] = v
	}
	for k, v := range s.Env {
		env[k] = expand(v, values, true)
	}
	throughProxy(env, s.Proxy)
	if bin := found.bin(); bin != "" {
		// The program may be a script for the interpreter installed beside it.
		env["PATH"] = strings.TrimSuffix(bin+string(filepath.ListSeparator)+env["PATH"], string(filepath.ListSeparator))
	}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		l.Env = append(l.Env, k+"="+env[k])
	}
	return l, values, nil
}

// freePort returns a port of this machine that nobody listens on. It is below those that
// systems choose themselves (Linux from 32768, others from 49152): one of those could be
// given to somebody else before the server listens.
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

// absolute takes a path of the profile from the profile's folder.
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

// environment is a list of K=V as a map; the last of two wins.
func environment(list []string) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		// A name begins with = on Windows for per-drive directories.
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			out[k] = v
		}
	}
	return out
}

// passed are the host's variables that every agent gets: they say where
// programs are, in which language and time zone people live, and what the
// system needs to start a program at all.
var passed = lazy.Regexp(`^(PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|USER|LOGNAME|SHELL|` +
	`SYSTEMROOT|SystemRoot|SYSTEMDRIVE|SystemDrive|WINDIR|windir|COMSPEC|ComSpec|PATHEXT|OS|NUMBER_OF_PROCESSORS|` +
	`PROCESSOR_ARCHITECTURE)$`)

func basic(host map[string]string, s Sandbox) map[string]string {
	env := maps.Clone(host)
	maps.DeleteFunc(env, func(name, _ string) bool { return !passed().MatchString(name) })
	maps.Copy(env, map[string]string{"HOME": s.Home, "TMPDIR": s.Temp, "TERM": "dumb", "NO_COLOR": "1"})
	if env["PATH"] == "" && host["Path"] != "" {
		env["PATH"] = host["Path"] // as Windows spells it
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

// variables rejects a $NAME that Launch would not know.
func variables(at *yamlfile.Node, texts ...string) {
	for _, v := range reference().FindAllString(strings.Join(texts, " "), -1) {
		name := v[1:]
		if v != "$$" && !slices.Contains(variableNames, name) {
			at.Fail(mistake.Suggest(name, variableNames)+"; $$ is a dollar", "unknown variable %q", v)
		}
	}
}

// expand puts the values of variables in. In a literal text, one that a user
// typed, everything else that begins with a dollar stays.
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

// CheckHeader says what is wrong with the name of a header.
func CheckHeader(name string) error {
	if !headerName().MatchString(name) {
		return fmt.Errorf("%q is no name of a header", name)
	}
	return nil
}

// headers are those of the profile with their variables replaced. They may name variables of the host's
// environment too, so that no secret is in a file or on a command line.
func (p *Profile) headers(values, host map[string]string) (map[string]string, error) {
	known := maps.Clone(host)
	maps.Copy(known, values)
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		for _, v := range reference().FindAllString(p.Headers[name], -1) {
			if _, ok := known[v[1:]]; !ok && v != "$$" && v != "$" {
				return nil, fmt.Errorf("the header %s of %s: %s is not set here", name, p.Shown(), v)
			}
		}
		out[name] = expand(p.Headers[name], known, false)
	}
	return out, nil
}

// proxyVariables name a proxy to programs, in the spellings they read. Which
// of the two wins differs between programs.
var proxyVariables = [][]string{{"HTTP_PROXY", "http_proxy"}, {"HTTPS_PROXY", "https_proxy"}}

// direct are the hosts that need no proxy.
const direct = "127.0.0.1,localhost,::1"

// throughProxy names the proxy in the environment where it names none. Node
// reads the variables only if it is told to.
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

// Fetches reports whether the command is a launcher that may have to fetch the
// agent from a registry before it can start it, as npx does.
func (p *Profile) Fetches() bool {
	return len(p.Command) > 0 && slices.Contains(launchers, base(p.Command[0]))
}

// cache is a directory of the host that lets a launcher do without a network.
type cache struct {
	names []string // the variable that names it, and other spellings that a host may use
	// places are where it is if no variable says so, below the host's HOME,
	// best first. Without any, only what the host sets is passed.
	places []string
	// mixed says that the folder also holds files of the user: sources, or credentials.
	mixed bool
}

// cacheTable has a line for each cache of a tool or toolchain: mixed, if it is, its names and its places. It names
// folders only, and no setting that may hold a password, such as the address of a registry.
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

// CacheDir is the folder for caches of the host's user, "" if the host has none. env is a list of
// K=V.
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

// caches gives the variables for the caches this host has.
func caches(host map[string]string) map[string]string {
	env := map[string]string{}
	home := cmp.Or(host["HOME"], host["USERPROFILE"])
	for _, c := range allCaches() {
		if dir := c.locate(host, home); dir != "" {
			env[c.names[0]] = dir
		}
	}
	if _, ok := env["npm_config_cache"]; ok {
		// What is in the cache is used without asking a registry, and npm
		// neither looks for its own updates nor talks about them.
		env["npm_config_prefer_offline"] = "true"
		env["npm_config_update_notifier"] = "false"
		env["npm_config_fund"] = "false"
		env["npm_config_audit"] = "false"
	}
	return env
}

// tools are the directories that these variables name and that hold nothing but tools.
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
