package recordings

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"golang.org/x/tools/txtar"
)

// Converted is a scenario made from a recording.
type Converted struct {
	// Text is the scenario file.
	Text []byte
	// Left lists, in sentences, the parts of the recording that the scenario leaves out.
	Left []string
	// NoGolden says that the scenario cannot have a golden, because its runs differ from the recording or from each
	// other.
	NoGolden bool

	work, home, temp string
	renamed          [][2]string        // pairs of a text that differs in each run and its replacement in the golden
	frames           []transcript.Entry // messages that a run of the scenario should log
}

// Golden returns the golden text of the scenario: everything that the recorded agent did, and what the editor does in
// the scenario. o lists what varies between runs of this agent; Golden adds the directories.
func (c *Converted) Golden(text golden.Renderer, o golden.Options) string {
	o.Work, o.Home, o.Temp = c.work, c.home, c.temp
	for _, r := range c.renamed {
		o.Replace = append(o.Replace, golden.Replacement{Pattern: regexp.MustCompile(regexp.QuoteMeta(r[0])), With: r[1]})
	}
	return text.Render(func(yield func(transcript.Entry) bool) {
		for _, e := range c.frames {
			if !yield(e) {
				return
			}
		}
	}, o)
}

// Convert makes a scenario from a recording. The scenario has the prompts, the answers to permission requests, the
// cancels, and the files that were read. Before each prompt, it awaits the messages that came before that prompt in
// the recording. The scenario's model script is model. If model is nil, Convert makes the script from the recording,
// with a gate wherever the editor acted in the middle of a reply. If the recording has several processes, one after
// another, the scenario restarts the agent. title becomes the first line. Convert returns an error if a scenario
// cannot express the recording.
func Convert(p *scenarios.Protocol, t *transcript.Transcript, title string, model []byte) (*Converted, error) {
	c := &converter{p: p, v2: p.Version == version2{}.Version(), t: t, ids: map[string]string{},
		names: map[string]string{}, refs: map[int]string{}, answers: map[int]transcript.Entry{},
		seen: map[string]*seen{}, late: map[string][]pattern{}, awaits: map[string]bool{}, cursors: map[int]string{},
		prompts: map[string]transcript.Entry{}, strange: map[string]bool{}}
	c.out.work, c.out.home = replay.Directories(V1(), t)
	c.places, c.noted = replay.PlacesOf(t)
	c.out.NoGolden = c.places.Chance
	if c.out.temp = c.places.Temp; c.out.temp != "" {
		c.out.renamed = append(c.out.renamed, [2]string{path.Dir(c.out.temp), "$$RUN"})
	}
	said := c.recordedModel(model)
	c.lookAhead()
	c.byHand()
	if err := c.acts(); err != nil {
		return nil, err
	}
	files, writes := c.files()
	head := []*script.Line{script.NewComment(printable.Line(title, 1000))}
	if c.v2 {
		head = append([]*script.Line{script.New("protocol %s", p.Name)}, head...)
	}
	for _, left := range c.out.Left {
		head = append(head, script.NewComment("Left out: "+printable.Line(left, 1000)))
	}
	if c.out.NoGolden {
		head = append(head, script.New("golden off"))
	}
	if c.turns == 0 { // without a turn, the recorded requests are the check
		c.lines = append([]*script.Line{{Kind: script.Blank}, script.New("check recorded")}, c.lines...)
	}
	made := &script.File{Lines: slices.Concat(head, c.conditions(), c.rulesOff(), c.setUp(), writes, c.lines),
		Files: files}
	if said != nil {
		made.Files = append(made.Files, script.ArchiveFile{File: txtar.File{Name: "llm.yaml", Data: said}})
	}
	if len(made.Files) > 0 {
		made.Lines = append(made.Lines, &script.Line{Kind: script.Blank})
	}
	c.out.Text = script.Format(made)
	if _, err := p.Parse("recorded", "recorded.txtar", c.out.Text); err != nil {
		return nil, fmt.Errorf("the scenario made from the recording is wrong: %w", err)
	}
	return &c.out, nil
}

// converter turns the messages of a recording into lines, in one pass after lookAhead.
type converter struct {
	p     *scenarios.Protocol
	v2    bool // the recording is of version 2
	t     *transcript.Transcript
	out   Converted
	lines []*script.Line

	names   map[string]string           // names of the sessions in the scenario
	ids     map[string]string           // variables for tool calls and terminals, by key and id
	current string                      // session of lines that name no session
	cursors map[int]string              // by Seq of a request: name of the earlier request whose answer has its cursor
	refs    map[int]string              // by Seq: names of requests to which other lines refer
	answers map[int]transcript.Entry    // by Seq: first answer to each request
	ends    []ending                    // ends of the processes, in order
	seen    map[string]*seen            // content of the open turns, by session
	late    map[string][]pattern        // patterns of messages since the end of a turn or load, by session
	prompts map[string]transcript.Entry // last prompt with each text
	strange map[string]bool             // sessions from before the recording that have got no prompt yet
	needs   []string                    // capabilities of the agent
	tags    []string
	servers []string // MCP servers of a test, as set-up lines name them
	permit  string   // editor's answer to permission requests, as a permit line gives it
	failed  int      // number of sessions that could not be opened
	ready   bool     // the current agent process has got initialize
	begun   bool     // a line sends initialize by itself
	turns   int      // number of checks so far

	places workspace.Manifest
	noted  bool // places come from a session's manifest, which lists the files
	gates  []fakellm.RecordedGate
	awaits map[string]bool // gates that a line has awaited, and "release " + gates that a line has released
	at     int             // Seq of the current entry
	hand   map[int]string  // by Seq: names of requests that the script answers
	holds  []string        // methods of those requests
	tail   []pattern       // patterns of the messages since the last line
}

// pattern is a pattern for the message that an act waits for, as words of a script line.
type pattern []script.Word

func (p pattern) String() string { return fmt.Sprint([]script.Word(p)) }

// seen is the content that a turn has shown so far: the pattern of the latest message, and how many times each pattern
// came.
type seen struct {
	pattern pattern
	text    bool // the latest message is a chunk
	state   bool // the latest message is a state of the session
	counts  map[string]int
}

// ending is how a process in the recording ended.
type ending struct {
	at     int  // Seq at which the editor began to end the process, or of the exit
	alone  bool // the process exited by itself
	killed bool
	status string // status if the process exited by itself
}

// rulesOff returns lines that turn off the rules that the recorded editor itself breaks.
func (c *converter) rulesOff() (lines []*script.Line) {
	checker := c.p.Rules.NewChecker(rules.Config{})
	for e := range c.t.Shown() {
		checker.Observe(e)
	}
	var ids []script.Word
	for _, f := range checker.Finish(rules.End{}) {
		if id := script.Text(f.Rule); f.Side == rules.OfClient && f.Class == rules.Fail &&
			!slices.ContainsFunc(ids, func(w script.Word) bool { return w.Is(f.Rule) }) {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return nil
	}
	return []*script.Line{script.New("rules off %s 'the recorded editor breaks them'", ids)}
}

// version returns the version of the protocol that the scenario's editor asks for.
func (c *converter) version() int {
	if c.v2 {
		return 2
	}
	return 1
}

// line adds a line; see script.New.
func (c *converter) line(template string, args ...any) {
	c.lines = append(c.lines, script.New(template, args...))
}

// named adds the line for a request. The line gets a name if another line refers to the request.
func (c *converter) named(e transcript.Entry, template string, args ...any) {
	l := script.New(template, args...)
	if ref := c.as(e); ref != "" {
		l.As = script.Text(ref)
	}
	c.lines = append(c.lines, l)
}

func (c *converter) leave(format string, a ...any) {
	c.out.Left = append(c.out.Left, fmt.Sprintf(format, a...))
}

// word returns a text as one word of a script. Variables replace the parts that differ in each run.
func (c *converter) word(s string) script.Word {
	const mark = "\x00"
	var words []script.Word
	for i, part := range strings.Split(c.vary(s, func(name string) string { return mark + name + mark }), mark) {
		if i%2 == 1 {
			words = append(words, script.Variable(part))
		} else {
			words = append(words, script.Quote(part))
		}
	}
	return script.Join(words...)
}

// json returns a JSON text as one word of a script. Variables replace the parts that differ in each run.
func (c *converter) json(s string) script.Word {
	s = c.vary(strings.ReplaceAll(s, "$", "$$"), func(name string) string { return "$" + name })
	for id, name := range c.names {
		s = strings.ReplaceAll(s, serve.Quote(id), `"$SESSION(`+name+`)"`)
	}
	return script.Quote(s)
}

// vary replaces directories and line breaks in s. put returns the replacement for a variable with the given name.
func (c *converter) vary(s string, put func(name string) string) string {
	if w := c.out.work; w != "" {
		s = replay.ReplacePath(s, w, put("WORK"))
	}
	if h := c.out.home; h != "" {
		s = replay.ReplacePath(s, h, put("HOME"))
	}
	return strings.ReplaceAll(s, "\n", put("NL"))
}

// placed replaces directories in s with variables.
func (c *converter) placed(s string) string {
	for _, d := range [][2]string{{c.out.work, "$WORK"}, {c.out.home, "$HOME"}, {c.places.Temp, "$TMP"}} {
		if d[0] != "" {
			s = replay.ReplacePath(s, d[0], d[1])
		}
	}
	return s
}

// name returns the name of a session in the scenario. It chooses a name for a new session.
func (c *converter) name(session string) string {
	n, ok := c.names[session]
	if !ok {
		n = "main"
		if len(c.names) > 0 {
			n = fmt.Sprintf("s%d", len(c.names)+1)
		}
		c.names[session] = n
	}
	return n
}

// dollar matches a dollar sign, together with the variable that begins with the sign.
var dollar = lazy.Regexp(`\$(?:WORK\b|HOME\b|TMP\b|\$)?`)

// recordedModel returns the model script of the scenario. It is given or, if that is nil, a script made from the
// recording; nil if the recording lacks the model's replies.
func (c *converter) recordedModel(given []byte) []byte {
	if given != nil {
		return c.model(given)
	}
	opened := map[string]bool{}
	for e := range replay.Frames(c.t) {
		opened[e.Session] = opened[e.Session] || e.Kind == transcript.Response && waits(e.Method) &&
			e.JSON().Get("result").Exists()
	}
	m := model(c.t, func(prompt transcript.Entry) bool { return opened[prompt.Session] }) // else raw requests
	if m == nil {
		if len(Prompts(c.t)) > 0 && !c.places.Model {
			c.leave("the model's replies, which the recording lacks: record them with record --llm, or give a " +
				"model script with convert --llm FILE")
		}
		return nil
	}
	c.gates = m.Gates
	m.Script.Unprompted()
	src := []byte(strings.ReplaceAll(m.Script.Format(), "$", "$$"))
	return replay.Relocate(src, [2]string{c.out.work, "$WORK"}, [2]string{c.out.home, "$HOME"},
		[2]string{c.places.Temp, "$TMP"})
}

// release adds lines that release the gates that were opened before the entry e.
func (c *converter) release(e transcript.Entry) {
	for _, g := range c.gates {
		if key := "release " + g.Name; g.Released > 0 && g.Released < e.Seq && !c.awaits[key] {
			c.awaits[key] = true
			c.at = g.Released
			if s := c.seen[g.Session]; s != nil && (s.text || s.state) { // it had been sent before the gate was opened
				s.pattern = nil
			}
			c.awaitSeen(g.Session)
			c.line("release %s", g.Name)
		}
	}
	c.at = e.Seq
}

// held returns lines that await the gates that hold the model now.
func (c *converter) held() (lines []*script.Line) {
	for _, g := range c.gates {
		if g.Holds(c.at) && !c.awaits[g.Name] {
			c.awaits[g.Name] = true
			lines = append(lines, script.New("await gate %s", g.Name))
		}
	}
	return lines
}

// model adapts a model script to the scenario's workspace.
func (c *converter) model(src []byte) []byte {
	src = dollar().ReplaceAllFunc(src, func(s []byte) []byte {
		if len(s) == 1 {
			return []byte("$$")
		}
		return s // already a variable, in a script that a user wrote
	})
	return replay.Relocate(src, [2]string{c.out.work, "$WORK"}, [2]string{c.out.home, "$HOME"})
}

// Relaxed changes a converted scenario so that it does not check how turns and requests end. Use it for a scenario
// that demonstrates mistakes of an agent.
func Relaxed(text []byte) []byte {
	f, _ := script.Parse("", text) // cannot fail: Convert made the text
	for i, l := range f.Lines {
		if !l.Says("await", "turn") && !l.Says("await", "response") {
			continue
		}
		keep := slices.DeleteFunc(slices.Clone(l.Words), func(w script.Word) bool {
			key, _, _, option := w.Cut("=")
			stop := l.Says("await", "turn") && !option && !w.Is("turn")
			return stop || option && key == "code"
		})
		relaxed := script.New("await %s", keep)
		relaxed.As = l.As
		f.Lines[i] = relaxed
	}
	return script.Format(f)
}

// Awaited changes a converted scenario so that it also awaits the ends of the turns that the recording left open. Use
// it if the agent's only mistake is that a turn never ended.
func Awaited(text []byte) []byte {
	f, _ := script.Parse("", text) // cannot fail: Convert made the text
	var open []string
	end := 0 // index after the last command
	for i, l := range f.Lines {
		if l.Kind != script.Command {
			continue
		}
		end = i + 1
		switch {
		case l.Says("prompt") && len(l.Words) > 1:
			open = append(open, l.Words[0].String())
		case l.Says("await", "turn"):
			name := ""
			for _, w := range l.Words {
				if key, _, of, ok := w.Cut("="); ok && key == "session" {
					name = of.String()
				}
			}
			if i := slices.IndexFunc(open, func(s string) bool { return s == name || name == "" }); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	for _, name := range open {
		f.Lines = slices.Insert(f.Lines, end, script.New("await turn session=%s", script.Text(name)))
		end++
	}
	return script.Format(f)
}
