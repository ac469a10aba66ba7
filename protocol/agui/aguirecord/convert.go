package aguirecord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Convert makes a scenario from a recording. The scenario has the posts of the front ends, a wait before each post,
// the hang-ups and the files. The scenario's model script is model. If model is nil, Convert makes the script from the
// recording, with a gate wherever a front end acted during a stream. title becomes the first comment. left has one
// sentence for each part of the recording that the scenario omits.
func Convert(p *scenarios.Protocol, t *transcript.Transcript, title string, model []byte) (text []byte, left []string,
	err error) {
	c := &converter{t: t, threads: map[string]*thread{}, posts: map[int]*post{}}
	c.places, _ = replay.PlacesOf(t)
	c.read()
	said := c.said(model)
	for e := range t.All() {
		c.entry(e)
	}
	f := &script.File{Lines: []*script.Line{script.New("protocol ag-ui"), script.NewComment(title)}}
	for _, l := range c.left {
		f.Lines = append(f.Lines, script.NewComment("Left out: "+l))
	}
	files := c.files()
	f.Lines = append(append(f.Lines, script.New("golden off")), c.lines...)
	if said != nil {
		files = append(files, script.ArchiveFile{File: txtar.File{Name: "llm.yaml", Data: said}})
	}
	if f.Files = files; len(files) > 0 {
		f.Lines = append(f.Lines, &script.Line{Kind: script.Blank})
	}
	text = script.Format(f)
	if _, err := p.Parse("recorded", "recorded.txtar", text); err != nil {
		return nil, nil, fmt.Errorf("the scenario made from the recording is wrong: %w", err)
	}
	return text, c.left, nil
}

// Relaxed changes a converted scenario so that its runs may end in any way, because a fault may change how they end.
func Relaxed(text []byte) []byte {
	f, _ := script.Parse("", text) // cannot fail: Convert made the text
	for i, l := range f.Lines {
		if l.Says("await", "turn") {
			f.Lines[i] = script.New("await turn any|error %s", l.Words[min(2, len(l.Words)):])
		}
	}
	return script.Format(f)
}

// HasModel reports whether a recording has entries of the model's side.
func HasModel(t *transcript.Transcript) bool {
	return lists.Any(t.All(), func(e transcript.Entry) bool {
		return e.Source == transcript.Model && e.Kind == transcript.ModelAnswer
	})
}

// converter turns the entries of a recording into lines of a scenario.
type converter struct {
	t       *transcript.Transcript
	places  workspace.Manifest
	threads map[string]*thread
	posts   map[int]*post // by Seq
	order   []*post
	gates   []fakellm.RecordedGate
	awaited map[string]bool
	lines   []*script.Line
	left    []string
}

func (c *converter) leave(format string, args ...any) {
	c.left = lists.With(c.left, fmt.Sprintf(format, args...))
}

func (c *converter) line(template string, args ...any) *script.Line {
	l := script.New(template, args...)
	c.lines = append(c.lines, l)
	return l
}

// read finds the threads, and the script lines that express each post. It applies the events to the threads in the
// order of the recording, as a front end does.
func (c *converter) read() {
	for e := range c.t.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind != transcript.Written:
			p := c.post(e)
			c.posts[e.Seq] = p
			c.order = append(c.order, p)
		case e.Ref > 0 && c.posts[e.Ref] != nil && c.posts[e.Ref].thread != nil && aguiframe.Event(e) != "":
			c.posts[e.Ref].thread.heard(e.JSON())
		}
	}
	for i, p := range c.order {
		p.name = fmt.Sprintf("P%d", i+1)
	}
}

// said returns the model script. It is given or, if that is nil, a script made from the recording; nil if the
// recording lacks the model's replies.
func (c *converter) said(given []byte) []byte {
	if given != nil {
		return replay.Relocate(given, [2]string{c.places.Work, "$WORK"})
	}
	var prompts []fakellm.RecordedPrompt
	var acts []int
	for e := range c.t.All() {
		p := c.posts[e.Seq]
		switch {
		case p != nil:
			acts = append(acts, e.Seq)
			if p.text != "" {
				prompts = append(prompts, fakellm.RecordedPrompt{Seq: e.Seq,
					Prompt: fakellm.Prompt{Session: e.Session, Index: len(prompts) + 1, Text: p.text}})
			}
		case hangsUp(e):
			acts = append(acts, e.Seq)
		}
	}
	m := fakellm.ReadRecorded(c.t, prompts, acts)
	if m == nil {
		if len(prompts) > 0 && !c.places.Model {
			c.leave("the model's replies, which the recording lacks: give a model script with convert --llm FILE")
		}
		return nil
	}
	c.gates, c.awaited = m.Gates, map[string]bool{}
	m.Script.Unprompted()
	text := []byte(strings.ReplaceAll(m.Script.Format(), "$", "$$"))
	return replay.Relocate(text, [2]string{c.places.Work, "$WORK"}, [2]string{c.places.Home, "$HOME"})
}

// hangsUp reports whether the front end closes a connection at an entry. Such an entry is a scenario's note about a
// hang-up, or the end of an answer.
func hangsUp(e transcript.Entry) bool {
	return e.Source == transcript.Note && strings.HasPrefix(e.JSON().Get("text").Str(), "hang-up") ||
		e.Kind == transcript.Ended && e.JSON().Get("end").Is(endpoint.HungUp)
}

// entry adds the lines for one entry.
func (c *converter) entry(e transcript.Entry) {
	c.release(e)
	p, of := c.posts[e.Seq], c.posts[e.Ref]
	switch {
	case p != nil:
		c.reached(e)
		for _, o := range c.order {
			if o.open && o.thread == p.thread {
				o.beside, p.beside = true, true
			}
		}
		p.write(c)
		p.open = true
	case hangsUp(e):
		if e.Kind != transcript.Ended {
			of = c.goes(e)
		}
		if of == nil || of.gone > 0 {
			break
		}
		c.reached(e)
		of.gone = e.Seq
		if of.thread == nil {
			c.leave("the front end's hang-up in the response to a post that was not an input")
			return
		}
		c.line("hang-up %s", of.thread.word(c))
	case of != nil && aguiframe.Event(e) != "":
		of.unseen = append(of.unseen, e.Method)
	}
	if of = c.posts[e.Ref]; of != nil && e.Kind == transcript.Ended {
		of.open = false
		c.ends(of, endpoint.EndOf(e))
	}
}

// goes returns the post whose connection the front end closes at or after an entry, or nil.
func (c *converter) goes(e transcript.Entry) *post {
	for e := range c.t.From(e.Seq) {
		if p := c.posts[e.Ref]; p != nil && e.Kind == transcript.Ended && e.JSON().Get("end").Is(endpoint.HungUp) &&
			p.gone == 0 {
			return p
		}
	}
	return nil
}

// ends adds a line that waits for the end of the answer to a post.
func (c *converter) ends(p *post, how string) {
	p.unseen = nil
	if p.thread == nil || p.beside {
		c.line("await end %s", p.name)
		return
	}
	end := script.New("await turn %s %s", how, p.thread.option(c))
	if how == "hung-up" && c.aborts(p) { // the agent has noticed the hang-up
		c.line("group {").With(end, script.New("await model aborted %s", p.thread.option(c)))
		return
	}
	c.lines = append(c.lines, end)
}

// aborts reports whether the agent closed its model stream between the front end's hang-up and the next post.
func (c *converter) aborts(p *post) bool {
	for e := range c.t.From(p.gone) {
		switch {
		case e.Source == transcript.Model && e.Kind == transcript.ModelAborted && e.Session == c.t.At(p.seq).Session:
			return true
		case c.posts[e.Seq] != nil:
			return false
		}
	}
	return false
}

// release adds lines that release the gates which were opened before the entry e.
func (c *converter) release(e transcript.Entry) {
	for _, g := range c.gates {
		if key := "release " + g.Name; g.Released > 0 && g.Released < e.Seq && !c.awaited[key] {
			c.awaited[key] = true
			c.line("release %s", g.Name)
		}
	}
}

// mostAwaited is the maximum number of events of one stream that a scenario awaits before an act.
const mostAwaited = 12

// reached adds lines that wait for what came before an act of the front end: the gates that hold the model, and the
// last event of each open stream.
func (c *converter) reached(e transcript.Entry) {
	var all []*script.Line
	for _, g := range c.gates {
		if g.Holds(e.Seq) && !c.awaited[g.Name] {
			c.awaited[g.Name] = true
			all = append(all, script.New("await gate %s", g.Name))
		}
	}
	for _, p := range c.order {
		if p.open && p.thread != nil && len(p.unseen) > 0 {
			last := p.unseen[len(p.unseen)-1]
			n := lists.Count(p.unseen, func(kind string) bool { return kind == last })
			for range min(n, mostAwaited) {
				all = append(all, script.New("await event %s %s", last, p.thread.option(c)))
			}
			p.unseen = nil
		}
	}
	if len(all) < 2 {
		c.lines = append(c.lines, all...)
		return
	}
	c.line("group {").With(all...)
}

// files returns the files of the scenario: the files of the workspace, and the bodies of large posts.
func (c *converter) files() (files []script.ArchiveFile) {
	for _, f := range c.places.Files {
		switch {
		case f.Profile:
		case f.Text != nil && f.Path != "llm.yaml":
			text := strings.ReplaceAll(*f.Text, "$", "$$")
			if c.places.Work != "" {
				text = strings.ReplaceAll(text, c.places.Work, "$WORK")
			}
			files = append(files, script.ArchiveFile{File: txtar.File{Name: f.Path, Data: []byte(text)}})
		default:
			c.leave("the file %s", f.Path)
		}
	}
	for _, p := range c.order {
		if p.file != "" {
			files = append(files, script.ArchiveFile{File: txtar.File{Name: p.file, Data: append(bytes.Clone(p.raw), '\n')}})
		}
	}
	return files
}

// quoted returns a value in JSON, as a word of a script line.
func quoted(v any) script.Word {
	raw, _ := json.Marshal(v) // cannot fail: the value was read from JSON
	return script.Quote(string(raw))
}

// object returns a JSON object as a map, or nil if the value is not an object.
func object(v wire.Value) (m map[string]any) {
	_ = json.Unmarshal(v.Raw(), &m)
	return m
}
