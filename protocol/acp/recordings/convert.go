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
	renamed          [][2]string        // other texts that each run has its own of
	frames           []transcript.Entry // what a run of it should log
}

// Golden returns the golden text for the scenario: everything that the recorded agent did, and the editor's part as the
// scenario plays it. o lists what varies between runs of this agent; Golden itself masks the directories.
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

// Convert makes a scenario from a recording. The scenario contains the prompts, each after an await of what came before
// it, the permission answers, the cancels, and the files that were read. Its model script is model or, if that is nil,
// made from the recording, with a gate wherever the editor acted in the middle of a stream. If the recording has
// several processes, one after the other, the scenario restarts the agent. title becomes the first line. Convert
// returns an error if a scenario cannot express the recording.
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
	if c.turns == 0 { // what it asks of the agent is a check all the same
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

// converter turns messages into lines in one pass, after looking ahead in the recording.
type converter struct {
	p     *scenarios.Protocol
	v2    bool // the recording is of version 2
	t     *transcript.Transcript
	out   Converted
	lines []*script.Line

	names   map[string]string           // of sessions, in the scenario
	ids     map[string]string           // variables for tool calls and terminals, by key and id
	current string                      // the session that lines without a name mean
	cursors map[int]string              // names of the requests whose answer has the cursor, by Seq
	refs    map[int]string              // names of requests that later lines speak of, by Seq
	answers map[int]transcript.Entry    // the first answer to each request, by its Seq
	ends    []ending                    // of the processes, in order
	seen    map[string]*seen            // of the open turn, by session
	late    map[string][]pattern        // what came since the end of a turn or a load, by session
	prompts map[string]transcript.Entry // the last of each text
	strange map[string]bool             // sessions of other recordings, until they are prompted
	needs   []string                    // capabilities of the agent
	tags    []string
	servers []string // MCP servers of a test, as set-up lines name them
	permit  string   // as it is spelled: the standing answer to permissions
	failed  int      // sessions that were not opened
	ready   bool     // the agent at hand was greeted
	begun   bool     // a line greets one that was not
	turns   int      // checks so far

	places workspace.Manifest
	noted  bool // the places are those of a session, with its files
	gates  []fakellm.RecordedGate
	awaits map[string]bool // gates that a line has awaited, or released
	at     int             // Seq of the entry at hand
	hand   map[int]string  // names of requests that the script answers, by Seq
	holds  []string        // their methods
	tail   []pattern       // what has come since the last line
}

// pattern is a pattern for the message that an act waits for, as words of a script.
type pattern []script.Word

func (p pattern) String() string { return fmt.Sprint([]script.Word(p)) }

// seen is the content that a turn has shown so far: the latest kind, and how many times each kind came.
type seen struct {
	pattern pattern
	text    bool // that is a piece of a message
	state   bool // that is a state of the session
	counts  map[string]int
}

// ending is how a process in the recording ended.
type ending struct {
	at     int  // Seq where the editor began to end it, or it was gone
	alone  bool // it ended without being told to
	killed bool
	status string // of an exit by itself
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

// named adds a line for a request, with a name if another line refers to the request.
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

// word returns a text as one word of a script, with variables for the parts that differ in each run.
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

// json returns a JSON text as one word, with variables for the parts that differ in each run.
func (c *converter) json(s string) script.Word {
	s = c.vary(strings.ReplaceAll(s, "$", "$$"), func(name string) string { return "$" + name })
	for id, name := range c.names {
		s = strings.ReplaceAll(s, serve.Quote(id), `"$SESSION(`+name+`)"`)
	}
	return script.Quote(s)
}

// vary replaces directories and line breaks by variables.
func (c *converter) vary(s string, put func(name string) string) string {
	if w := c.out.work; w != "" {
		s = replay.ReplacePath(s, w, put("WORK"))
	}
	if h := c.out.home; h != "" {
		s = replay.ReplacePath(s, h, put("HOME"))
	}
	return strings.ReplaceAll(s, "\n", put("NL"))
}

// placed replaces directories by variables.
func (c *converter) placed(s string) string {
	for _, d := range [][2]string{{c.out.work, "$WORK"}, {c.out.home, "$HOME"}, {c.places.Temp, "$TMP"}} {
		if d[0] != "" {
			s = replay.ReplacePath(s, d[0], d[1])
		}
	}
	return s
}

// name returns the scenario's name for a session.
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

// dollar matches a dollar sign, or the variable that begins with it.
var dollar = lazy.Regexp(`\$(?:WORK\b|HOME\b|TMP\b|\$)?`)

// recordedModel returns the model script for the scenario, or nil.
func (c *converter) recordedModel(given []byte) []byte {
	if given != nil {
		return c.model(given)
	}
	opened := map[string]bool{}
	for e := range replay.Frames(c.t) {
		opened[e.Session] = opened[e.Session] || e.Kind == transcript.Response && waits(e.Method) &&
			e.JSON().Get("result").Exists()
	}
	m := model(c.t, func(prompt transcript.Entry) bool { return opened[prompt.Session] }) // others are sent as they are
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

// release adds lines for the gates that were opened before an entry.
func (c *converter) release(e transcript.Entry) {
	for _, g := range c.gates {
		if key := "release " + g.Name; g.Released > 0 && g.Released < e.Seq && !c.awaits[key] {
			c.awaits[key] = true
			c.at = g.Released
			if s := c.seen[g.Session]; s != nil && (s.text || s.state) { // which was on its way before
				s.pattern = nil
			}
			c.awaitSeen(g.Session)
			c.line("release %s", g.Name)
		}
	}
	c.at = e.Seq
}

// held returns lines that wait for the gates which now hold the model.
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
		return s // a variable already, in a script that somebody wrote
	})
	return replay.Relocate(src, [2]string{c.out.work, "$WORK"}, [2]string{c.out.home, "$HOME"})
}

// Relaxed returns a converted scenario that does not check how turns and requests end. Use it for a scenario that
// should show an agent's mistakes.
func Relaxed(text []byte) []byte {
	f, _ := script.Parse("", text) // it was made here
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

// Awaited returns a converted scenario that also awaits the end of each turn which the recording left open. Use it if
// the only mistake is a turn that never ended.
func Awaited(text []byte) []byte {
	f, _ := script.Parse("", text) // it was made here
	var open []string
	end := 0 // behind the last line that does something
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
