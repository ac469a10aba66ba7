package golden

import (
	"iter"
	"sort"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Options of Render. The zero value gives the canonical form and masks what
// every agent makes anew: ids, times, versions of the software.
type Options struct {
	// Exact keeps every chunk and the order of arrival.
	Exact bool
	// Work, Home and Temp are directories shown as $WORK, $HOME and $TMP.
	Work, Home, Temp string
	// Replace masks what one agent prints differently in each run. It sees
	// text in which directories and session ids are replaced already.
	Replace []Replacement
	// Unordered are kinds of updates ("session_info_update") or methods of
	// other notifications, with * and ?, that a profile declares free: they
	// stand at the end, sorted.
	Unordered []string
	// Omit are those that are not shown, in the same form.
	Omit []string
	// Values are members whose value one agent makes differently in each run;
	// they show as <any>.
	Values []string
	// Without are members that are not shown, wherever they are.
	Without []string
	// MergeCalls shows each tool call as one line, where it is first told of,
	// with all that its updates said.
	MergeCalls bool
}

// Render returns the text of the frames among entries, one line each, and of
// what happened to the process after its start (end of input, signals, exit).
// Other entries are not shown. A caller that shuts the agent down itself
// leaves the entries of that out.
func Render(entries iter.Seq[transcript.Entry], o Options) string {
	r := newReader(o)
	items := r.read(entries)
	t := text{r: r, several: len(r.lanes) > 1}
	if o.Exact {
		for i := range items {
			t.show(&items[i])
		}
		return t.b.String()
	}
	r.renderFree()
	for _, run := range byConnection(items) {
		canonical(run, r.relation(), t.show)
	}
	return t.b.String()
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
			if it.role == answer {
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
			r.items[i].text = r.line(&r.items[i], r.m.blinded(), false)
		}
	}
}

// line is the text of an item.
func (r *reader) line(it *item, m *mask, shown bool) string {
	l := line{m: m, exact: r.o.Exact, prompt: it.prompt, merged: it.merged}
	if len(it.joined) > 1 {
		joined := strings.Join(it.joined, "")
		l.joined = &joined
	}
	e := it.entry
	switch {
	case e.Source == transcript.Process:
		return l.process(e)
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
			return shortMethod(asked.Method)
		}
	}
	return l.frame(e, shown)
}

// text is the text as it grows.
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
			t.b.WriteString("== " + t.r.m.id(sessionID, it.entry.Session) + "\n")
		}
		t.last = nil
	}
	shown := t.last != nil && it.entry.Ref != 0 && t.last.entry.Seq == it.entry.Ref
	t.b.WriteString(t.r.line(it, t.r.m, shown))
	t.b.WriteByte('\n')
	t.last = it
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}
