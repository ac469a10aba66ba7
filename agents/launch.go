package agents

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	values = map[string]string{
		"LLM": s.LLM, "KEY": dummyKey, "WORK": s.Work, "HOME": s.Home, "TMP": s.Temp,
		"AGENT_DIR": found.AgentDir, "SELF": s.Self, "CWD": s.Cwd,
	}
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
	for _, w := range p.Command[1:] {
		l.Args = append(l.Args, expand(w, values, p.literal))
	}
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
	base := p.base
	if p.literal {
		base = ""
	}
	if !filepath.IsAbs(base) {
		base = filepath.Join(cwd, base)
	}
	return filepath.Join(base, path)
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
var passed = regexp.MustCompile(`^(PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|USER|LOGNAME|SHELL|` +
	`SYSTEMROOT|SystemRoot|SYSTEMDRIVE|SystemDrive|WINDIR|windir|COMSPEC|ComSpec|PATHEXT|OS|NUMBER_OF_PROCESSORS|` +
	`PROCESSOR_ARCHITECTURE)$`)

func basic(host map[string]string, s Sandbox) map[string]string {
	env := map[string]string{}
	for k, v := range host {
		if passed.MatchString(k) {
			env[k] = v
		}
	}
	env["HOME"] = s.Home
	env["TMPDIR"] = s.Temp
	env["TERM"] = "dumb"
	env["NO_COLOR"] = "1"
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
