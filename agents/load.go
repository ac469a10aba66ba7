package agents

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

// Mistake is an error in a profile or a file that belongs to one.
type Mistake = mistake.Mistake

//go:embed profiles
var shipped embed.FS

// Names lists the shipped profiles, sorted.
func Names() []string {
	files, err := fs.Glob(shipped, "profiles/*.yaml")
	if err != nil {
		return nil
	}
	names := lists.Map(files, func(f string) string { return strings.TrimSuffix(path.Base(f), ".yaml") })
	names = lists.Where(names, func(name string) bool { return !strings.HasSuffix(name, ".known") })
	slices.Sort(names)
	return names
}

// Shipped returns the shipped profile of that name, or an error that suggests a similar name.
func Shipped(name string) (*Profile, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no profile is named %q (%s)", name, mistake.Suggest(name, Names()))
	}
	dir, err := fs.Sub(shipped, "profiles")
	if err != nil {
		return nil, err
	}
	p, err := load(dir, name+".yaml", name+".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the shipped profile %s: %w", name, err)
	}
	p.Source = "shipped"
	return p, nil
}

// ShippedText returns the YAML text of a shipped profile, or "" if no profile has this name. It leaves out the keys
// that are specific to the profile's name and the agent's version, with the comments above them: name, title,
// command, install, agent-info and known failures.
func ShippedText(name string) string {
	src, err := shipped.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		return ""
	}
	var kept, block []string
	leave := true
	for line := range strings.Lines(string(src)) {
		if key, _, ok := strings.Cut(line, ":"); ok && key != "" && !strings.ContainsAny(key[:1], " #") {
			leave = slices.Contains([]string{"name", "title", "command", "install", "agent-info", "known-failures"}, key)
		}
		switch {
		case strings.HasPrefix(line, "#"): // the comment belongs to the next key
			block = append(block, line)
			continue
		case !leave:
			kept = append(append(kept, block...), line)
		}
		block = nil
	}
	return strings.Join(kept, "")
}

// Load reads a profile from disk. An error in its content is a *Mistake.
func Load(file string) (*Profile, error) {
	dir, name := filepath.Split(file)
	dir = cmp.Or(dir, ".")
	p, err := load(os.DirFS(dir), name, file)
	if err != nil {
		return nil, err
	}
	p.Source = file
	p.base = filepath.Clean(dir)
	return p, nil
}

// Find returns the profile for the value of --agent. If name looks like a path, Find reads that file; otherwise name
// is a shipped profile.
func Find(name string) (*Profile, error) {
	if strings.ContainsAny(name, `/\ `) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return Load(name)
	}
	return Shipped(name)
}

// profileFile is a profile plus the keys that exist only in the YAML file.
type profileFile struct {
	Profile
	Caches string `yaml:"caches"`
	Known  string `yaml:"known-failures"`
}

// load reads the profile name in dir; shown is its name in messages.
func load(dir fs.FS, name, shown string) (p *Profile, err error) {
	defer mistake.Catch(&err)
	src, err := fs.ReadFile(dir, name)
	switch {
	case errors.Is(err, fs.ErrInvalid) || err != nil && strings.HasSuffix(err.Error(), "is a directory"):
		return nil, fmt.Errorf("%s is a folder: name the profile's file in it, NAME.yaml", shown)
	case err != nil && strings.ContainsAny(shown, " \t"):
		return nil, fmt.Errorf("there is no profile %q: if this is the agent's command, write it after --, "+
			"instead of --agent: -- %s", shown, shown)
	case err != nil:
		return nil, fmt.Errorf("reading profile %s: %w", shown, cause(err))
	}
	root, err := yamlfile.Parse(shown, src)
	if err != nil {
		return nil, err
	}
	if root.Kind == yamlfile.Null {
		root.Fail("it needs at least name and command", "the profile is empty")
	}
	var file profileFile
	root.Decode(&file, "a profile", "")
	file.check(root)
	if file.Known != "" {
		src, err := fs.ReadFile(dir, path.Clean(file.Known))
		if err != nil {
			root.Field("known-failures").Fail("", "reading %s: %v", file.Known, cause(err))
		}
		shownAs := filepath.Join(filepath.Dir(shown), file.Known)
		if file.KnownFailures, err = ParseKnownFailures(shownAs, src); err != nil {
			return nil, err
		}
	}
	return &file.Profile, nil
}

// check rejects mistakes that decoding accepts, and computes the fields that depend on other fields.
func (p *profileFile) check(root *yamlfile.Node) {
	at := root.Field
	switch {
	case p.Name == "":
		root.Fail("", "the profile has no name")
	case p.Name != clean(p.Name):
		at("name").Fail("such as "+clean(p.Name),
			"a name consists of small letters, digits, dots, dashes and underscores, not %q", p.Name)
	case p.URL == "" && (len(p.Command) == 0 || p.Command[0] == ""):
		root.Fail("", "the profile has no command")
	case !slices.Contains([]string{"", "host", "none"}, p.Caches):
		at("caches").Fail("", "caches is host (the default) or none, not %q", p.Caches)
	case p.Model.Wire != "" && !slices.Contains(fakellm.Wires(), p.Model.Wire):
		at("model").Field("wire").Fail(mistake.Suggest(p.Model.Wire, fakellm.Wires()), "unknown wire format %q", p.Model.Wire)
	}
	p.checkPolicy(at("policy"))
	p.NoCaches = p.Caches == "none"
	if p.checkSetup(at("setup")); p.Timeouts.Setup < 0 {
		at("timeouts").Field("setup").Fail("", "timeouts.setup cannot be negative")
	}
	p.checkURL(at("url"))
	for name := range p.Headers {
		if err := CheckHeader(name); err != nil {
			at("headers").Fail("", "%v", err)
		}
	}
	p.checkVariables(at)
	if lanes := at("lanes"); lanes != nil {
		lanes.Map("lanes")
	}
	if tools := at("tools"); tools != nil {
		p.checkTools(tools)
	}
	for i, r := range p.Normalize.Replace {
		if r.Pattern == nil {
			at("normalize").Field("replace").Items[i].Fail("", "a replacement needs a pattern")
		}
	}
}

// checkVariables rejects unknown variables, and files that are not below HOME.
func (p *profileFile) checkVariables(at func(string) *yamlfile.Node) {
	variables(at("command"), p.Command...)
	variables(at("listen"), p.Listen...)
	variables(at("dir"), p.Dir)
	for key, value := range p.Env {
		variables(at("env").Field(key), value)
	}
	home := at("home")
	if home == nil {
		return
	}
	for _, f := range home.Fields {
		if !fs.ValidPath(f.Key) || f.Key == "." {
			f.At.Fail("", "%q is not a path below HOME: use slashes, no leading slash and no ..", f.Key)
		}
		variables(f.Node, p.Home[f.Key])
	}
}

// checkPolicy rejects unknown values in the agent's policy.
func (p *profileFile) checkPolicy(at *yamlfile.Node) {
	if at == nil {
		return
	}
	if p.Protocol != "" && !strings.HasPrefix(p.Protocol, "acp") {
		at.Fail("", "policy applies only to ACP: no rule of %s judges a promise", p.Protocol)
	}
	if busy := p.Policy.ConcurrentPrompts; busy != "" && !slices.Contains(Busy, busy) {
		at.Field("concurrent-prompts").Fail(mistake.Suggest(busy, Busy), "unknown promise %q", busy)
	}
	for i, tool := range p.Policy.Asks {
		if _, ok := neutral[tool]; !ok {
			at.Field("asks").Items[i].Fail(mistake.Suggest(tool, slices.Sorted(maps.Keys(neutral))),
				"there is no neutral tool %q", tool)
		}
	}
}

// checkSetup rejects a set-up step without a program, and a set-up step for an
// agent that this program does not start.
func (p *profileFile) checkSetup(at *yamlfile.Node) {
	if at == nil {
		return
	}
	variables(at, p.Setup...)
	switch {
	case len(p.Setup) == 0 || p.Setup[0] == "":
		at.Fail("such as [my-agent, login, --key, $KEY]", "setup names no program")
	case p.Remote():
		at.Fail("", "setup prepares the HOME of an agent that acp-test starts; this agent runs already, at its url")
	}
}

// checkURL rejects a URL that CheckURL refuses, and unknown variables.
func (p *profileFile) checkURL(at *yamlfile.Node) {
	if variables(at, p.URL); p.URL != "" && CheckURL(p.URL) != nil {
		at.Fail("such as http://127.0.0.1:8000/agent", "%v", CheckURL(p.URL))
	}
}

// CheckURL checks that text is a URL with a host and the scheme http, https, ws or wss. It also accepts text that
// begins with $PRINTED, because the server prints that URL later. It returns an error for any other text.
func CheckURL(text string) error {
	u, err := url.Parse(strings.ReplaceAll(text, "$PORT", "1"))
	if strings.HasPrefix(text, "$PRINTED") || err == nil &&
		slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) && (u.Host != "" || strings.Contains(text, "$")) {
		return nil
	}
	return fmt.Errorf("%q is not the URL of an agent: expected http, https, ws or wss, and a host", text)
}

func (p *profileFile) checkTools(n *yamlfile.Node) {
	n.Keys("tools", slices.Sorted(maps.Keys(neutral))...)
	for _, f := range n.Fields {
		t := p.Tools[f.Key]
		if t.Name == "" {
			f.At.Fail("", "tools.%s has no name", f.Key)
		}
		for i, able := range t.Cannot {
			if can := slices.Sorted(maps.Keys(abilities[f.Key])); !slices.Contains(can, able) {
				f.Field("cannot").Items[i].Fail(mistake.Suggest(able, can), "%s has no ability %q", f.Key, able)
			}
		}
		if name := f.Field("name"); name != nil {
			arguments(name, f.Key, t.Name)
		}
		if args := f.Field("args"); args != nil {
			arguments(args, f.Key, t.Args)
		}
	}
}

// DecodeYAML reads a tool. A plain string is the tool's name.
func (t *Tool) DecodeYAML(n *yamlfile.Node, what string) {
	if _, short := n.Value.(string); short {
		t.Name = n.Text
		return
	}
	type fields Tool
	n.Decode((*fields)(t), what, what+".")
}

// cause removes the path from a file error, because the caller's message already contains the path.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// neutral maps each tool name that scenarios use to the names of its arguments.
var neutral = map[string][]string{
	"write_file":  {"path", "content"},
	"edit_file":   {"path", "old", "new"},
	"read_file":   {"path"},
	"list_folder": {"path"},
	"run_shell":   {"command"},
	"search":      {"pattern"},
	"fetch":       {"url"},
	"delete_file": {"path"},
	"move_file":   {"path", "to"},
	"switch_mode": {"mode"},
	"plan":        {"steps", "step", "status"},
	"ask_user":    {"question", "options", "url"},
	"delegate":    {"task", "child"},
	"mcp":         {"server", "tool", "args"},
}

// abilities maps each neutral tool to the keywords with which a scenario may require more of the tool than its
// arguments. Each keyword has a description.
var abilities = map[string]map[string]string{
	"write_file": {"overwrite": "overwrite an existing file", "folders": "create the folders of a new file",
		"create": "create a file that the editor fails to read"},
	"read_file": {"large": "read a file of 110 KB"},
	"delegate": {"again": "give a subagent another task, knowing only its title",
		"nested": "be given to a subagent, too", "two": "start two subagents in one reply"},
}

// NeutralTool is a tool under the name that scenarios use. Agents may have other names for it.
type NeutralTool struct {
	Name string
	Args []string
	// Can are the keywords of the abilities that an agent's tool may lack,
	// sorted.
	Can []string
}

// NeutralTools lists the neutral tools, sorted by name.
func NeutralTools() (list []NeutralTool) {
	for _, name := range slices.Sorted(maps.Keys(neutral)) {
		list = append(list, NeutralTool{name, neutral[name], slices.Sorted(maps.Keys(abilities[name]))})
	}
	return list
}

var argument = lazy.Regexp(`\$\$|\$([a-z_]+)|\$\{([a-z_]*)([^}]*)\}?`)

// arguments checks v, a tool's arguments in a profile. It rejects a $name that is not an argument of the neutral
// tool.
func arguments(at *yamlfile.Node, tool string, v any) {
	known := neutral[tool]
	switch v := v.(type) {
	case string:
		for _, m := range argument().FindAllStringSubmatch(v, -1) {
			// The argument's name may be followed directly by other letters, as in mcp_$server_$tool.
			fits := func(k string) bool { return strings.HasPrefix(m[1], k) }
			if m[1] != "" && !slices.ContainsFunc(known, fits) {
				at.Fail(mistake.Suggest(m[1], known), "%s has no argument %q", tool, m[1])
			}
			if strings.HasPrefix(m[0], "${") {
				transformed(at, tool, m[2], m[3])
			}
		}
	case map[string]any:
		for _, x := range v {
			arguments(at, tool, x)
		}
	case []any:
		for _, x := range v {
			arguments(at, tool, x)
		}
	}
}

// transformed rejects a ${name|transform} with an unknown argument or
// transformation.
func transformed(at *yamlfile.Node, tool, name, steps string) {
	if !slices.Contains(neutral[tool], name) {
		at.Fail(mistake.Suggest(name, neutral[tool]), "%s has no argument %q", tool, name)
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(steps, "|"), "|") {
		if step, _, _ := strings.Cut(step, ":"); steps != "" && !slices.Contains(fakellm.Transforms(), step) {
			at.Fail(mistake.Suggest(step, fakellm.Transforms()), "unknown transformation %q in ${%s%s}", step, name, steps)
		}
	}
}

var notClean = lazy.Regexp(`[^a-z0-9._-]+`)

// clean converts a name to one that can name a folder of goldens.
func clean(name string) string {
	s := strings.Trim(notClean().ReplaceAllString(strings.ToLower(name), "-"), "-.")
	return cmp.Or(s, "agent")
}
