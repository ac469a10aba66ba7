package replay

import (
	"fmt"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// Converted is a recording as a scenario.
type Converted struct {
	// Text is the file.
	Text []byte
	// Left are sentences about what of the recording is not in it.
	Left []string

	work, home string
	frames     []transcript.Entry // what a run of it should log
}

// Golden is what the scenario's golden should say: all that the recorded agent
// did, and the editor's part as a scenario has it. Options say what of this
// agent is volatile; directories are known.
func (c *Converted) Golden(text golden.Renderer, o golden.Options) string {
	o.Work, o.Home = c.work, c.home
	return text.Render(func(yield func(transcript.Entry) bool) {
		for _, e := range c.frames {
			if !yield(e) {
				return
			}
		}
	}, o)
}

// Convert makes a scenario of a recording: its prompts with what each waited
// for, its permission answers, its cancels, the files that were read, and the
// model's script, if there is one. A recording of several processes, one after
// the other, restarts the agent. Title is its first line. The error says what of
// the recording a scenario cannot say.
func Convert(p *scenarios.Protocol, t *transcript.Transcript, title string, model []byte) (*Converted, error) {
	c := &converter{t: t, names: map[string]string{}, refs: map[int]string{}, answers: map[int]transcript.Entry{}, seen: map[string]*seen{}, late: map[string][]string{}}
	c.out.work, c.out.home = directories(t)
	c.lookAhead()
	if err := c.acts(); err != nil {
		return nil, err
	}
	files, writes := c.files()
	head := []string{"# " + title}
	for _, left := range c.out.Left {
		head = append(head, "# Left out: "+left)
	}
	head = append(head, c.conditions()...)
	head = append(head, c.setUp()...)
	head = append(head, writes...)
	archive := &txtar.Archive{Comment: []byte(strings.Join(append(head, c.lines...), "\n") + "\n\n"), Files: files}
	if model != nil {
		archive.Files = append(archive.Files, txtar.File{Name: "llm.yaml", Data: c.model(model)})
	}
	c.out.Text = txtar.Format(archive)
	if _, err := p.Parse("recorded", "recorded.txtar", c.out.Text); err != nil {
		return nil, fmt.Errorf("the scenario made of the recording is wrong: %w", err)
	}
	return &c.out, nil
}

// converter turns frames into lines, in one pass with some knowledge of what
// comes.
type converter struct {
	t     *transcript.Transcript
	out   Converted
	lines []string

	names   map[string]string        // of sessions, in the scenario
	current string                   // the session that lines without a name mean
	refs    map[int]string           // names of requests that later lines speak of, by Seq
	answers map[int]transcript.Entry // the first answer to each request, by its Seq
	ends    []ending                 // of the processes, in order
	seen    map[string]*seen         // of the open turn, by session
	late    map[string][]string      // what came since the end of a turn or a load, by session
	prompts map[string]int           // Seq by text
	needs   []string                 // capabilities of the agent
	tags    []string
	permit  string // the standing answer to permissions
	failed  int    // sessions that were not opened
}

// seen is what a turn has shown so far: the newest kind of content, and how
// often it came.
type seen struct {
	pattern string
	counts  map[string]int
}

// ending is how a process of the recording ended.
type ending struct {
	at     int  // Seq where the editor began to end it, or it was gone
	alone  bool // it ended without being told to
	killed bool
	status string // of an exit by itself
}

func (c *converter) line(format string, a ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, a...))
}

func (c *converter) leave(format string, a ...any) {
	c.out.Left = append(c.out.Left, fmt.Sprintf(format, a...))
}

// word is a text as one word of a script, with what is different in each run as
// a variable.
func (c *converter) word(s string) string {
	return "'" + c.vary(strings.ReplaceAll(s, "'", "''"), func(name string) string { return "'" + name + "'" }) + "'"
}

// json is a JSON text as one word, in which variables stand as they are.
func (c *converter) json(s string) string {
	s = c.vary(strings.ReplaceAll(strings.ReplaceAll(s, "$", "$$"), "'", "''"), func(name string) string { return name })
	for id, name := range c.names {
		s = strings.ReplaceAll(s, serve.Quote(id), `"$SESSION(`+name+`)"`)
	}
	return "'" + s + "'"
}

// vary puts variables in the place of directories and line breaks.
func (c *converter) vary(s string, put func(name string) string) string {
	if w := c.out.work; w != "" {
		s = replacePath(s, w, put("$WORK"))
	}
	if h := c.out.home; h != "" {
		s = replacePath(s, h, put("$HOME"))
	}
	return strings.ReplaceAll(s, "\n", put("$NL"))
}

// name is what the scenario calls a session.
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
