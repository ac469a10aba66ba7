package agents

import "slices"

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
