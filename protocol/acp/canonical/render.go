// Package canonical converts transcripts of ACP to text, with each message on one line and every field shown or
// hashed. Two runs give the same order of lines if they differ only in an interleaving that the protocol allows.
package canonical

import (
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Render returns the text of the frames among entries, one line each, and of the events of the process after its start
// (end of input, signals, exit). It omits other entries. A caller that shuts the agent down itself must leave out the
// entries of the shutdown.
//
// Render reads entries twice. It keeps only those items in memory that have not settled; see settled.
func (v renderer) Render(entries iter.Seq[transcript.Entry], o golden.Options) string {
	return v.render(entries, o, (*reader).settled)
}

func (v renderer) render(entries iter.Seq[transcript.Entry], o golden.Options,
	settled func(*reader, transcript.Entry) bool) string {
	s := v.survey
	if s == nil {
		s = surveyOf(entries, v.v2)
	}
	r := newReader(o, s)
	r.v2 = v.v2
	// A goroutine writes the lines of one part while the next part is read.
	parts, done := make(chan part, 8), make(chan struct{})
	t := text{mask: r.mask, exact: o.Exact, several: len(s.sessions) > 1}
	go func() {
		defer close(done)
		for p := range parts {
			t.part(p)
		}
	}()
	for e := range entries {
		if shown(e) && r.add(e) && settled(r, e) {
			parts <- r.part()
		}
	}
	parts <- r.part()
	close(parts)
	<-done
	return t.b.String()
}

// part has items that have settled, and the data that their lines need.
type part struct {
	runs    []run
	learned []learned
	labels  map[int]map[string]string // as in reader
}

// run has the settled items of one connection.
type run struct {
	items []*item // in the order in which they are shown
	loose []*item // shown after items, sorted by text
}

// learned is an id that the mask does not have yet.
type learned struct {
	class golden.IDClass
	id    string
}

// part returns the items read so far, in canonical order, and forgets them.
func (r *reader) part() part {
	p := part{learned: r.learned, labels: r.labels}
	if r.o.Exact {
		var all run
		for i := range r.items {
			all.items = append(all.items, &r.items[i])
		}
		p.runs = []run{all}
	} else {
		for _, items := range byConnection(r.items) {
			p.runs = append(p.runs, canonical(items, r.relation()))
		}
	}
	r.forget()
	return p
}

// byConnection splits the items by connection. Indexes in each result count from 0.
func byConnection(items []item) [][]item {
	var runs [][]item
	var at []int
	moved := make([]int, len(items))
	for i, it := range items {
		run := sort.SearchInts(at, it.entry.Conn)
		if run == len(at) || at[run] != it.entry.Conn {
			at = append(at[:run], append([]int{it.entry.Conn}, at[run:]...)...)
			runs = append(runs[:run], append([][]item{nil}, runs[run:]...)...)
		}
		moved[i] = len(runs[run])
		if it.request >= 0 {
			it.request = moved[it.request]
			if it.below() {
				it.order = it.request
			}
		}
		runs[run] = append(runs[run], it)
	}
	return runs
}

// line returns the line of an item of part p. shown says that the line above is the request that the item answers.
func (t *text) line(p part, it *item, m *golden.Mask, shown bool) string {
	l := line{Line: golden.NewLine(m), mask: m, exact: t.exact, prompt: it.prompt, merged: it.merged}
	if len(it.joined) > 1 {
		joined := strings.Join(it.joined, "")
		l.joined = &joined
	}
	e := it.entry
	switch {
	case e.Source == transcript.Process:
		return l.Process(e)
	case e.Method == "session/request_permission":
		labels := p.labels[e.Seq]
		if e.Kind == transcript.Response {
			labels, l.about = p.labels[e.Ref], it.call
		}
		l.options = func(id string) string { return labels[id] }
	case it.cancels != "":
		l.options = func(string) string { return it.cancels }
	}
	return l.frame(e, e.JSONIn(&t.doc), shown)
}

// text builds the golden text.
type text struct {
	mask    *golden.Mask
	exact   bool
	several bool // there is more than one session, so sections have headings
	doc     wire.Doc
	b       strings.Builder
	lane    int
	conn    int
	last    int // Seq of the entry in the line above, or 0
}

// part writes the lines of a part.
func (t *text) part(p part) {
	for _, l := range p.learned {
		t.mask.Learn(l.class, l.id)
	}
	for _, run := range p.runs {
		for _, it := range run.items {
			t.show(p, it)
		}
		for _, it := range run.loose {
			if it.role == free {
				it.text = t.line(p, it, t.mask.Blinded(), false)
			}
		}
		slices.SortStableFunc(run.loose, inOrder)
		for _, it := range run.loose {
			t.show(p, it)
		}
	}
}

func (t *text) show(p part, it *item) {
	if it.entry.Conn != t.conn {
		t.conn, t.lane, t.last = it.entry.Conn, 0, 0
		t.b.WriteString("== agent started again\n")
	}
	if t.several && it.lane != t.lane {
		t.lane = it.lane
		if it.lane == 0 {
			t.b.WriteString("== connection\n")
		} else {
			t.b.WriteString("== " + t.mask.ID(sessionID, it.entry.Session) + "\n")
		}
		t.last = 0
	}
	shown := t.last != 0 && it.entry.Ref == t.last
	t.b.WriteString(t.line(p, it, t.mask, shown))
	t.b.WriteByte('\n')
	t.last = it.entry.Seq
}

// V1 returns the renderer of version 1.
func V1() golden.Renderer { return renderer{} }

// V2 returns the renderer of version 2. Items that show that the agent has accepted a prompt come directly below the
// prompt, because the editor may have sent other messages in between. State updates are separated by the idle state
// instead of the answer to a prompt.
func V2() golden.Renderer { return renderer{v2: true} }

type renderer struct {
	v2     bool
	survey *survey // nil if Render must make the survey itself
}

// Survey implements golden.Surveyor. The caller passes each entry to see, and then uses surveyed.
func (v renderer) Survey() (see func(transcript.Entry), surveyed golden.Renderer) {
	v.survey = newSurvey()
	return func(e transcript.Entry) { v.survey.see(e, v.v2) }, v
}

// These are the classes of opaque ids in the protocol.
const (
	sessionID  golden.IDClass = "sess"
	callID     golden.IDClass = "call"
	terminalID golden.IDClass = "term"
	messageID  golden.IDClass = "msg"
	cursor     golden.IDClass = "cursor"
)

// Line returns any single entry as one readable line.
func (renderer) Line(e transcript.Entry) string {
	if !e.Frame() {
		return golden.Event(e)
	}
	mask := golden.PlainMask()
	l := line{Line: golden.NewLine(mask), mask: mask, exact: true}
	return l.frame(e, e.JSON(), false)
}
