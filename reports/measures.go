package reports

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Protocol is what a matrix has to know of the protocol of its agents.
type Protocol struct {
	Rules *rules.Set
	// Greet, Open, Prompt and Cancel are the methods with which an editor begins
	// a connection, a session and a turn, and stops the turn; "" if it has none.
	Greet, Open, Prompt, Cancel string
	// Update is the kind of an update of the agent, "" for other entries; Call is
	// the id of the tool call that an entry tells of; Piece is the text of an
	// update that is a piece of a message, which has it in the field.
	Update, Call func(transcript.Entry) string
	Piece        func(transcript.Entry) (text, field string, ok bool)
	// End says how an entry of the agent ends a turn, and whether it ends one.
	End func(transcript.Entry) (End, bool)
}

// End is how a turn ended.
type End uint8

// The ends of turns.
const (
	Otherwise End = iota
	Finished
	Cancelled
)

// Measures are what an agent costs: they differ from run to run and machine to
// machine. Times are medians; 0 if nothing was measured.
type Measures struct {
	Start  time.Duration // from the start of the process to the answer to the greeting
	Open   time.Duration // from the request for a session to its answer
	Cancel time.Duration // from the cancel to the end of the turn
	// TextTurn and ToolTurn are the model requests of a turn without and with
	// one tool call, as "1" or "1–2"; "" if there was none.
	TextTurn, ToolTurn string
	// Side are the lanes of requests that are not the conversation.
	Side []string
}

// measure reads the transcripts of a run.
func (p Protocol) measure(run results.Run) Measures {
	var f figures
	for _, r := range run.Results {
		// A transcript that is not there or is broken has nothing to measure.
		if t, err := transcriptOf(run, r); err == nil {
			f.add(p, t)
		}
	}
	slices.Sort(f.side)
	return Measures{Start: median(f.start), Open: median(f.open), Cancel: median(f.cancel),
		TextTurn: span(f.text), ToolTurn: span(f.tool), Side: slices.Compact(f.side)}
}

func transcriptOf(run results.Run, r results.Result) (*transcript.Transcript, error) {
	file, err := confined.OpenBelow(orDot(run.Out), filepath.FromSlash(r.Artifacts["transcript"]))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return transcript.Load(file, nil)
}

// figures are what the transcripts of one agent show.
type figures struct {
	start, open, cancel []time.Duration
	text, tool          []int
	side                []string
}

// turn is a prompt that has not been answered.
type turn struct {
	requests    int
	calls       map[string]bool
	cancelled   bool
	cancelledAt time.Duration
}

// mainLanes are the lanes of requests that belong to the conversation.
var mainLanes = []string{"main", "after"}

func (f *figures) add(p Protocol, t *transcript.Transcript) {
	var started time.Duration
	asked := map[int]time.Duration{} // requests of the editor, by their number
	turns := map[string]*turn{}      // by session
	for e := range t.All() {
		open := turns[e.Session]
		switch {
		case e.Kind == transcript.Started && e.Source == transcript.Process:
			started = e.At
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			asked[e.Seq] = e.At
			if e.Method == p.Prompt {
				turns[e.Session] = &turn{calls: map[string]bool{}}
			}
		case e.Source == transcript.Editor && e.Method == p.Cancel && open != nil && !open.cancelled:
			open.cancelled, open.cancelledAt = true, e.At
		case open != nil && p.Call(e) != "":
			open.calls[p.Call(e)] = true
		case e.Kind == transcript.ModelRequest:
			f.modelAsked(e.JSON().Get("lane").Str(), open)
		case e.Source == transcript.Agent && e.Kind == transcript.Response:
			if since, ours := asked[e.Ref]; ours {
				f.answered(p, e, since, started)
			}
		}
		if end, ok := p.End(e); ok && open != nil {
			f.ended(*open, end, e.At)
			delete(turns, e.Session)
		}
	}
}

// modelAsked counts a request to the model, for a turn that may be nil.
func (f *figures) modelAsked(lane string, open *turn) {
	if !slices.Contains(mainLanes, lane) {
		f.side = append(f.side, lane)
	} else if open != nil {
		open.requests++
	}
}

// answered counts how long the agent took to start or to open a session. since is when it was
// asked, started when its process was.
func (f *figures) answered(p Protocol, e transcript.Entry, since, started time.Duration) {
	switch {
	case e.Method == p.Open:
		f.open = append(f.open, e.At-since)
	case e.Method == p.Greet && since >= started: // else scenarios share the process, which was greeted before
		f.start = append(f.start, e.At-started)
	}
}

// ended counts a turn whose end has come.
func (f *figures) ended(t turn, end End, at time.Duration) {
	switch {
	case t.cancelled && end == Cancelled:
		f.cancel = append(f.cancel, at-t.cancelledAt)
	case t.cancelled || end != Finished || t.requests == 0:
	case len(t.calls) == 0:
		f.text = append(f.text, t.requests)
	case len(t.calls) == 1:
		f.tool = append(f.tool, t.requests)
	}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// span is what most of them are, and what all of them are if they differ: one
// number, or the least and the greatest.
func span(all []int) string {
	if len(all) == 0 {
		return ""
	}
	least, most := slices.Min(all), slices.Max(all)
	if least == most {
		return strconv.Itoa(least)
	}
	return strconv.Itoa(least) + "–" + strconv.Itoa(most)
}

// about is a time in steps so wide that a machine gives the same one again.
func about(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	steps := []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
		500 * time.Millisecond,
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second}
	if above := lists.First(steps, func(s time.Duration) bool { return d < s }); above > 0 {
		return "< " + above.String()
	}
	return "≥ " + steps[len(steps)-1].String()
}

// volatileFields names the fields of an agent's messages whose values are
// others when the same scenario runs again. The folders of the runs count as
// the same; updates and methods in omit count for nothing.
func (p Protocol) volatileFields(first, again results.Run, omit []string) []string {
	found := map[string]bool{}
	for _, b := range again.Results {
		for _, a := range first.Results {
			if a.ID != b.ID {
				continue
			}
			one, err1 := transcriptOf(first, a)
			two, err2 := transcriptOf(again, b)
			if err1 != nil || err2 != nil {
				continue
			}
			x, y := p.valuesOf(one, omit), p.valuesOf(two, omit)
			fields := maps.Clone(x)
			maps.Copy(fields, y)
			for field := range fields {
				if !slices.Equal(x[field], y[field]) {
					found[field] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// valuesOf are the values of each field of the agent's messages. The pieces of
// a text are one value, wherever the agent cuts it.
func (p Protocol) valuesOf(t *transcript.Transcript, omit []string) map[string][]string {
	values := map[string][]string{}
	root := "\x00"               // the folder of the run; nothing says so before the agent runs
	texts := map[string]string{} // by update and field
	for e := range t.All() {
		if dir := e.JSON().Get("dir").Str(); e.Kind == transcript.Started && e.Source == transcript.Process && dir != "" {
			root = filepath.Dir(dir)
		}
		if e.Source != transcript.Agent || !e.Frame() {
			continue
		}
		var frame any
		if json.Unmarshal(e.Raw, &frame) != nil {
			continue
		}
		name, u := e.Method, p.Update(e)
		if u != "" {
			name = u
		}
		if slices.ContainsFunc(omit, func(omitted string) bool { return glob.Path(omitted, name) }) {
			continue
		}
		if text, field, ok := p.Piece(e); ok {
			texts[u+" "+field] += text
		}
		flatten(frame, name, func(field, value string) {
			values[field] = append(values[field], strings.ReplaceAll(value, root, "$RUN"))
		})
	}
	for field, text := range texts {
		values[field] = []string{strings.ReplaceAll(text, root, "$RUN")}
	}
	for field, v := range values {
		slices.Sort(v)
		values[field] = slices.Compact(v) // how often is a matter of pieces
	}
	return values
}

// flatten calls put for each value in a frame. Paths leave out what all frames
// share, and the places of lists.
func flatten(v any, path string, put func(path, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			switch k {
			case "jsonrpc", "method":
				continue
			case "sessionId":
				put("sessionId", fmt.Sprint(member)) // the same everywhere
				continue
			case "params", "result", "update":
				flatten(member, path, put)
				continue
			}
			separator := "."
			if !strings.Contains(path, " ") {
				separator = " "
			}
			flatten(member, path+separator+k, put)
		}
	case []any:
		for _, item := range v {
			flatten(item, path, put)
		}
	default:
		put(path, fmt.Sprint(v))
	}
}
