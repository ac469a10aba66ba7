package agents

import (
	"cmp"
	"os"
	"path/filepath"
)

// cache is a directory of the host that lets a launcher do without a network.
type cache struct {
	name string   // the variable that names it
	also []string // other spellings a host may use
	// places are where it is if no variable says so, below the host's HOME,
	// best first. Without any, only what the host sets is passed.
	places []string
	// mixed says that it also holds what is the user's: sources, or credentials.
	mixed bool
}

// Locations only: what they hold belongs to tools and toolchains. Settings of
// these tools that may carry a password in an address, such as a registry, are
// not among them.
var cacheTable = []cache{
	{name: "npm_config_cache", also: []string{"NPM_CONFIG_CACHE"}, places: []string{".npm"}},
	{name: "NVM_DIR", places: []string{".nvm"}},
	{name: "VOLTA_HOME", places: []string{".volta"}},
	{name: "ASDF_DATA_DIR", places: []string{".asdf"}},
	{name: "MISE_DATA_DIR", places: []string{".local/share/mise"}},
	{name: "BUN_INSTALL_CACHE_DIR", places: []string{".bun/install/cache"}},
	{name: "DENO_DIR", places: []string{".cache/deno", "Library/Caches/deno"}},
	{name: "UV_CACHE_DIR", places: []string{".cache/uv"}},
	{name: "UV_PYTHON_INSTALL_DIR", places: []string{".local/share/uv/python"}},
	{name: "UV_TOOL_DIR", places: []string{".local/share/uv/tools"}},
	{name: "PIP_CACHE_DIR", places: []string{".cache/pip", "Library/Caches/pip"}},
	{name: "PYENV_ROOT", places: []string{".pyenv"}},
	{name: "PYENV_VERSION"},
	{name: "VIRTUAL_ENV"},
	{name: "CONDA_PREFIX"},
	{name: "CARGO_HOME", places: []string{".cargo"}, mixed: true},
	{name: "RUSTUP_HOME", places: []string{".rustup"}},
	{name: "RUSTUP_TOOLCHAIN"},
	{name: "GOPATH", places: []string{"go"}, mixed: true},
	{name: "GOMODCACHE", places: []string{"go/pkg/mod"}},
	{name: "GOCACHE", places: []string{".cache/go-build", "Library/Caches/go-build"}},
	{name: "GOROOT"},
	{name: "JAVA_HOME"},
	{name: "DOTNET_ROOT"},
}

// CacheDir is the folder for caches of the host's user, "" if the host has none. env is a list of
// K=V.
func CacheDir(env []string) string {
	host := environment(env)
	for _, name := range []string{"XDG_CACHE_HOME", "LOCALAPPDATA"} {
		if filepath.IsAbs(host[name]) {
			return host[name]
		}
	}
	home := host["HOME"]
	if home == "" {
		return ""
	}
	mac := filepath.Join(home, "Library", "Caches")
	if info, err := os.Stat(mac); err == nil && info.IsDir() {
		return mac
	}
	return filepath.Join(home, ".cache")
}

// caches gives the variables for the caches this host has.
func caches(host map[string]string) map[string]string {
	env := map[string]string{}
	home := cmp.Or(host["HOME"], host["USERPROFILE"])
	for _, c := range cacheTable {
		if dir := c.locate(host, home); dir != "" {
			env[c.name] = dir
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
	var all []string
	for _, c := range cacheTable {
		if dir := env[c.name]; filepath.IsAbs(dir) && !c.mixed {
			all = append(all, dir)
		}
	}
	return all
}

func (c cache) locate(host map[string]string, home string) string {
	for _, name := range append([]string{c.name}, c.also...) {
		if v := host[name]; v != "" {
			return v
		}
	}
	if home == "" {
		return ""
	}
	for _, place := range c.places {
		dir := filepath.Join(home, filepath.FromSlash(place))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}
