package grammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// writer writes a conversation. It tracks the state of each session, so that every new line is valid.
type writer struct {
	*Ability
	*sweep.Builder
	acts    *sweep.Acts[*writer]
	at      *turn    // turn to which the current act belongs
	links   []object // links of the prompts so far
	named   string   // latest name that the method name returned
	r       *rand.Rand
	out     map[string]bool // features that this conversation lacks
	left    []string        // parts that the key leaves out
	episode int
	length  int // number of episodes

	files    []script.ArchiveFile
	lanes    string // model scripts of subagents
	convos   []*convo
	open     []*turn // turns that run, the outermost first
	n        int     // counter for names and texts
	checks   int
	random   func(part int) *rand.Rand
	opened   int               // number of sessions chosen in this episode
	stops    int               // number of times the process has ended
	made     []call            // calls of the turn that is being written
	server   string            // name of the MCP server, or of the first one if there are two
	another  string            // http or twin: the server beside the one over stdio, with tools of the same names
	later    bool              // the editor gives no answer to questions that an agent knows
	booleans bool              // the editor takes boolean options
	hung     bool              // the server has ended or no longer answers, or a session does without it
	folder   string            // folder of the current turn's session with a slash behind it; "" for the workspace
	asked    map[string]string // by tool, the option kind of the answer for always that the user gave
	pairs    map[[2]string]bool
}

// convo is a session from the editor's point of view.
type convo struct {
	name string
	// gone says that the session is closed or that its process has ended. solid says that a turn of the session has
	// completed, so that the session can be loaded.
	gone, solid bool
	mode        string // mode of the session; "" is the initial one
	told        string // regular expression that finds the last prompt that the model has answered
	said        string // text of the last prompt
	// latest is the name of the session's last prompt, and before is the name of the prompt that preceded it. Each is ""
	// if the agent's current process got no such prompt.
	latest, before string
	number         int
	again          string // said, once the model has answered it, so that the user may repeat it; else ""
	servers        bool   // the session has the MCP server
	moved          bool   // the session was reopened in another folder
	shared         bool   // another process of the agent has the session open, and may keep it to itself
	dir, extra     string // folders of the session, relative to the workspace: its own and an additional one
}

// folder returns the session's folder with a slash at the end, or "" if the session works in the workspace itself.
func (c *convo) folder() string {
	if c.dir == "" {
		return ""
	}
	return c.dir + "/"
}

// in returns the option cwd= with the session's folder. It returns the zero Word for the workspace.
func (c *convo) in() (cwd script.Word) {
	if c.dir != "" {
		cwd = script.Option("cwd", c.dir)
	}
	return cwd
}

// beside returns the option add= with the session's additional folder. It returns the zero Word if there is none.
func (c *convo) beside() (add script.Word) {
	if c.extra != "" {
		add = script.Option("add", c.extra)
	}
	return add
}

func newWriter(a *Ability) *writer {
	return &writer{Ability: a, server: "canary", Builder: &sweep.Builder{}, acts: acts(), asked: map[string]string{},
		pairs: map[[2]string]bool{}}
}

func (w *writer) without(part string) bool { return slices.Contains(w.left, part) }

// has reports whether the conversation includes a feature.
func (w *writer) has(feature string) bool { return !w.out[feature] }

// off reports whether a part of the current episode is left out. Part a stands for acts, b for the content blocks and
// attachments of the prompt, and r for the shapes of replies.
func (w *writer) off(part string) bool { return w.without(strconv.Itoa(w.episode) + part) }

// plain reports whether texts must have only simple words.
func (w *writer) plain() bool { return w.without("w") }

// one draws true with probability 1/n.
func (w *writer) one(n int) bool { return w.r.IntN(n) == 0 }

// name returns a new name that begins with prefix.
func (w *writer) name(prefix string) string {
	w.n++
	w.named = prefix + strconv.Itoa(w.n)
	return w.named
}

// check writes a line with the command check. requirement is "" if the check tests no requirement.
func (w *writer) check(requirement, slug string) {
	if w.checks++; w.checks > 1 {
		slug += "-" + strconv.Itoa(w.checks)
	}
	w.Add("check %s %s", sweep.Optional(requirement), slug)
}

// covered records that the conversation covers a pair, such as a state and an act.
func (w *writer) covered(a, b string) { w.pairs[[2]string{a, b}] = true }

func (w *writer) covers() [][2]string {
	out := slices.Collect(maps.Keys(w.pairs))
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0]+"\n"+a[1], b[0]+"\n"+b[1]) })
	return out
}

// file adds a file to the workspace.
func (w *writer) file(name, content string) {
	w.files = append(w.files, script.ArchiveFile{File: txtar.File{Name: name, Data: []byte(content)}})
}

func (w *writer) archive() sweep.Archive {
	a := sweep.Archive{Lines: w.Lines, Files: w.files}
	if len(w.Turns) > 0 {
		d := &fakellm.Document{Turns: w.Turns}
		if w.lanes != "" {
			d.Rest = "lanes:\n" + w.lanes
		}
		a.Model = d.Format()
	}
	return a
}

// setUp writes the lines before the first episode.
func (w *writer) setUp() {
	w.Lines = append(w.Lines, script.NewComment("A conversation that was drawn."))
	w.Add("golden off")
	w.Add("tag cancel load") // keeps the run open for late frames
	w.Add("permit allow_once")
	shapes, client := w.has("writes") && w.one(4), w.one(6)
	shape := pick(w.r, []string{"split=7", "bytewise", "split=100"})
	lacks := pick(w.r, []string{"fs.readTextFile=false", "fs.writeTextFile=false", "terminal=false",
		"fs=none", "fs=none terminal=none", "fs.readTextFile=none", "fs.writeTextFile=none"})
	around, newer := w.one(8), w.one(12)
	children := w.works("delegate") && w.one(2)
	servers := w.servers()
	ids := pick(w.r, []string{"", "", "", "ids strings=req-", "ids strings=7", "ids theirs", oddIDs})
	name := pick(w.r, []string{"canary", "canary", "canary-bird", "canary_bird_2"})
	adds := pick(w.r, []string{"", "", "", "", "nulls", "metas", "escapes"})
	system := w.able("sessionCapabilities.systemPrompt") && w.has("settings") && w.one(2)
	if w.without("s") {
		return
	}
	if around {
		w.project()
	}
	if adds != "" && w.has("writes") {
		w.Add(adds)
	}
	if system {
		w.Add("system %s", script.Quote("Answer in the manner of "+w.name("mundart")+"x."))
	}
	if ids != "" {
		w.Add(ids)
	}
	if len(servers) == 2 {
		w.another = "http"
		if !overHTTP(servers[1]) {
			w.another = strings.TrimSpace(servers[1])
		}
	}
	w.gives(servers, name)
	if children {
		w.Add("client subagents={}")
	}
	if client {
		w.Add("client " + lacks)
		w.out["requests"] = true
	}
	w.takesQuestions()
	w.takesBooleans()
	if newer && w.Falls && !w.V2 {
		w.offersNewer()
	}
	if shapes {
		w.Add("write-shape %s", shape)
	}
}

// takesQuestions writes the lines with which the editor takes questions. Some editors show no pages.
func (w *writer) takesQuestions() {
	if w.one(5) {
		w.Add("client elicitation=none elicitation.form={}")
		w.out["pages"] = true
		w.covered("client", "shows no pages")
	}
	switch {
	case w.works("ask_user") && w.out["pages"]:
		w.Add("elicit hold mode=form")
	case w.works("ask_user"):
		w.Add("elicit hold")
	case w.one(4): // for agents that ask of their own accord
		w.Add("elicit later")
		w.later = true
		w.covered("client", "answers no question")
	}
}

// takesBooleans makes the editor take options that are on or off, which most editors do not.
func (w *writer) takesBooleans() {
	if w.booleans = w.one(6) && w.has("settings") && !w.V2; w.booleans {
		w.Add("client session.configOptions.boolean={}")
		w.covered("client", "takes boolean options")
	}
}

// newerVersion is a version of the protocol that no agent speaks.
const newerVersion = 7

// offersNewer writes an initialize with a newer version, to which the agent answers with version 1.
func (w *writer) offersNewer() {
	w.Add("initialize version=%s", strconv.Itoa(newerVersion))
	if w.has("process") && w.one(2) { // the next process is offered the agent's own version
		w.Add("restart")
		w.stops++
	}
	w.covered("initialize", "newer version")
}

// gives writes the lines that give the agent MCP servers, the first of them over stdio under the given name.
func (w *writer) gives(servers []string, name string) {
	for _, s := range servers {
		if name != "canary" && !overHTTP(s) && s != " " {
			w.server, s = name, s+" name="+name
		}
		if s != " sse" {
			s += " env=apart"
		}
		w.Add("mcp canary" + s)
	}
}

// oddIDs is a line with request ids that are easily confused or changed: UUIDs in upper case, and numbers that are also
// there as strings.
const oddIDs = `ids list='"5F0C1E2A-9B7D-4C3E-A1F0-0123456789AB","5F0C1E2A-9B7D-4C3E-A1F0-0123456789AC",` +
	`7,"7",8,"8","08",9,"9"'`

// project makes the workspace a project of JavaScript, under version control.
func (w *writer) project() {
	w.file("package.json", "{\"name\": \"project\", \"private\": true}\n")
	w.file(".git/HEAD", "ref: refs/heads/main\n")
	w.file(".git/config", "[core]\n\trepositoryformatversion = 0\n")
	w.file(".git/objects/info/packs", "\n")
	w.file(".git/refs/heads/.keep", "")
	w.covered("new", "project")
}

// servers draws the MCP servers of the conversation: none, one or two. Each element is the end of a script line.
func (w *writer) servers() []string {
	how := pick(w.r, []string{" stdio", " stdio", " slow", " stubborn", " paged", " odd", " older", " chatty", " loud",
		" prompts", " ", " http", " odd-http"})
	some, second, twin := w.has("servers") && w.one(2) && w.works("mcp"), w.one(2), w.one(2)
	also, events := pick(w.r, []string{" http", " odd-http"}), w.one(3) && w.able("mcpCapabilities.sse")
	if events {
		also = " sse"
	}
	if events && overHTTP(how) {
		how = also
	}
	bare := how == " " || overHTTP(how)
	switch http := events || w.able("mcpCapabilities.http"); {
	case !some:
		return nil
	case !http && bare:
		return []string{" stdio"}
	case second && how == " stdio" && (twin || !http):
		return []string{how, " twin"}
	case http && second && !bare:
		return []string{how, also}
	}
	return []string{how}
}

// overHTTP reports whether the end of a script line with an MCP server names a server over HTTP.
func overHTTP(server string) bool {
	return strings.HasSuffix(server, "http") || strings.HasSuffix(server, "sse")
}

// setUpAll writes a set-up with everything that an episode may need.
func (w *writer) setUpAll() {
	if w.works("mcp") {
		w.Add("mcp canary stdio")
	}
}

// served reports whether new sessions get an MCP server.
func (w *writer) served() bool {
	return !w.hung && slices.ContainsFunc(w.Lines, func(l *script.Line) bool { return l.Is("mcp") })
}

// most is the maximum number of open sessions in a conversation.
const most = 3

// convo returns a session that can be prompted: an existing one in which no turn runs, or a new one.
func (w *writer) convo() *convo {
	// The choice of session uses its own random numbers, so that other choices do not depend on it.
	own := w.r
	w.opened++
	w.r = w.random(1000 + 16*w.episode + w.opened)
	defer func() { w.r = own }()
	free, lost := w.idlers(), w.returning()
	fresh := len(w.convos) == 0 || w.has("several") && len(w.convos) < most && w.one(4)
	switch {
	case len(lost) > 0 && !w.one(4):
		c := pick(w.r, lost)
		w.reopen(c)
		return c
	case len(free) > 0 && !fresh:
		return pick(w.r, free)
	}
	return w.newConvo()
}

func (w *writer) busy(c *convo) bool {
	return slices.ContainsFunc(w.open, func(t *turn) bool { return t.convo == c })
}

// newConvo opens a new session.
func (w *writer) newConvo() *convo {
	c := &convo{name: w.name("s"), servers: w.served()}
	var cwd script.Word
	if w.has("ways") && w.one(6) {
		dir := w.name(pick(w.r, []string{"dir", "ordner-ü."}))
		w.file(dir+"/readme.txt", "In "+dir+".\n")
		if w.one(4) {
			link := w.name("link")
			w.Add("exec ln -s %s %s", dir, link)
			dir = link
		}
		cwd, c.dir = script.Option("cwd", dir), dir
		w.covered("new", "cwd")
	}
	w.Add("session new %s %s", c.name, cwd)
	w.convos = append(w.convos, c)
	return c
}

// ways reports whether the agent can do at least one of the named things in waysIn.
func (w *writer) ways(names ...string) bool {
	return slices.ContainsFunc(waysIn, func(way way) bool {
		return slices.Contains(names, way.name) && w.able(way.needs)
	})
}

// reopen loads or resumes a session that is closed or whose process has ended. An agent may refuse a session that
// another of its processes has open.
func (w *writer) reopen(c *convo) {
	how := "load"
	if !w.ways("load") || w.ways("resume") && w.one(3) {
		how = "resume"
	}
	l := w.name("L")
	if !c.shared {
		w.check(map[string]string{"load": "LOAD-009", "resume": "RESUME-004"}[how], how+"s")
	}
	var bare script.Word
	if c.servers && w.served() && w.one(6) {
		bare, w.hung = script.Option("servers", "none"), true // so no later turn calls the server
		w.covered(how, withoutServers)
	}
	w.Add("session %s %s %s %s %s as %s", how, c.name, c.in(), c.beside(), bare, l)
	if c.shared {
		w.Add("await response %s", l)
		w.Add("needs saw response %s result?", l)
	} else {
		w.Add("await response %s result?", l)
		w.check("", "goes-on")
	}
	c.gone, c.servers = false, w.served() // the agent may or may not restore the mode
	w.covered(how, w.setting(c))
}

// withoutServers names the setting of a session that had MCP servers and is reopened without them.
const withoutServers = "without its servers"

// setting returns the setting of a session as a name for the pairs that covered records.
func (w *writer) setting(c *convo) string {
	switch {
	case c.servers:
		return "servers"
	case c.mode != "":
		return "mode"
	}
	return "plain"
}

// marshal returns JSON without HTML escapes.
func marshal(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprint("grammar: ", err)) // the value consists of maps, lists and texts
	}
	return strings.TrimSuffix(b.String(), "\n")
}
