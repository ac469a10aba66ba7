package canonical

import (
	"iter"
	"sort"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Render returns the text of the frames among entries, one line each, and of
// what happened to the process after its start (end of input, signals, exit).
// Other entries are not shown. A caller that shuts the agent down itself
// leaves the entries of that out.
//
// entries are gone through twice. What is kept of them is what has not settled: see settled.
func (v renderer) Render(entries iter.Seq[transcript.Entry], o golden.Options) string {
	return v.render(entries, o, (*reader).settled)
}

func (v renderer) render(entries iter.Seq[transcript.Entry], o golden.Options,
	settled func(*reader, transcript.Entry) bool) string {
	s := v.survey
	if s == nil {
		s = surveyOf(entries, v.second)
	}
	r := newReader(o, s)
	r.second = v.second
	t := text{r: r, several: len(s.sessions) > 1}
	for e := range entries {
		if shown(e) && r.add(e) && settled(r, e) {
			t.flush()
		}
	}
	t.flush()
	return t.b.String()
}

// flush shows the items that were read, and forgets them.
func (t *text) flush() {
	r := t.r
	if r.o.Exact {
		for i := range r.items {
			t.show(&r.items[i])
		}
	} else {
		r.renderFree()
		for _, run := range byConnection(r.items) {
			canonical(run, r.relation(), t.show)
		}
	}
	if t.last != nil {
		last := *t.last // it lies among what is forgotten
		t.last = &last
	}
	r.forget()
}

// byConnection splits the items by process, each part with indexes of its own.
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

// renderFree gives free items the text they are sorted by.
func (r *reader) renderFree() {
	for i := range r.items {
		if r.items[i].role == free {
			r.items[i].text = r.line(&r.items[i], r.mask.Blinded(), false)
		}
	}
}

// line is the text of an item.
func (r *reader) line(it *item, m *golden.Mask, shown bool) string {
	l := line{Line: golden.NewLine(m), mask: m, exact: r.o.Exact, prompt: it.prompt, merged: it.merged}
	if len(it.joined) > 1 {
		joined := strings.Join(it.joined, "")
		l.joined = &joined
	}
	e := it.entry
	switch {
	case e.Source == transcript.Process:
		return l.Process(e)
	case e.Method == "session/request_permission":
		labels := r.labels[e.Seq]
		if e.Kind == transcript.Response {
			labels, l.about = r.labels[e.Ref], it.call
		}
		l.options = func(id string) string { return labels[id] }
	case e.Method == "$/cancel_request":
		l.options = func(id string) string {
			asked, ok := r.called[link{e.Conn, e.Source, wire.ID(id)}]
			if !ok {
				return ""
			}
			return shortMethod(asked.method)
		}
	}
	return l.frame(e, shown)
}

// Text is the text as it grows.
type text struct {
	r       *reader
	b       strings.Builder
	several bool // more than one session: sections have headings
	lane    int
	conn    int
	last    *item
}

func (t *text) show(it *item) {
	if it.entry.Conn != t.conn {
		t.conn, t.lane, t.last = it.entry.Conn, 0, nil
		t.b.WriteString("== agent started again\n")
	}
	if t.several && it.lane != t.lane {
		t.lane = it.lane
		if it.lane == 0 {
			t.b.WriteString("== connection\n")
		} else {
			t.b.WriteString("== " + t.r.mask.ID(sessionID, it.entry.Session) + "\n")
		}
		t.last = nil
	}
	shown := t.last != nil && it.entry.Ref != 0 && t.last.entry.Seq == it.entry.Ref
	t.b.WriteString(t.r.line(it, t.r.mask, shown))
	t.b.WriteByte('\n')
	t.last = it
}
