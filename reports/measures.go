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

// Protocol has the facts about the agents' protocol that a matrix needs.
type Protocol struct {
	Rules *rules.Set
	// Greet, Open, Prompt and Cancel are the methods with which an editor opens a connection and a session, starts a
	// turn and cancels it; "" if the protocol has none.
	Greet, Open, Prompt, Cancel string
	// Update returns the kind of an agent's update, or "" for any other entry. Call returns the id of the tool call
	// that an entry is about. Piece returns the text of an update that is a piece of a message, and the field that
	// contains it.
	Update, Call func(transcript.Entry) string
	Piece        func(transcript.Entry) (text, field string, ok bool)
	// End returns how an entry of the agent ends a turn, and whether it ends one.
	End func(transcript.Entry) (End, bool)
}

// End is the way in which a turn ended.
type End uint8

// The ends of turns.
const (
	Otherwise End = iota
	Finished
	Cancelled
)

// Measures are an agent's times and numbers of requests, which differ from run to run and machine to machine. Times
// are medians; 0 if nothing was measured.
type Measures struct {
	Start  time.Duration // from the start of the process to the answer to the greeting
	Open   time.Duration // from the request for a session to its answer
	Cancel time.Duration // from the cancel to the end of the turn
	// TextTurn and ToolTurn are the numbers of model requests in a turn without and with one tool call, such as "1" or
	// "1–2"; "" if there was no such turn.
	TextTurn, ToolTurn string
	// Side are the lanes of model requests outside of the conversation.
	Side []string
}

// measure returns the measures of a run, from its transcripts.
func (p Protocol) measure(run results.Run) Measures {
	var f figures
	for _, r := range run.Results {
		// A missing or broken transcript is not measured.
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

// figures are the measurements from the transcripts of one agent.
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

// modelAsked counts a request to the model in a turn, which may be nil.
func (f *figures) modelAsked(lane string, open *turn) {
	if !slices.Contains(mainLanes, lane) {
		f.side = append(f.side, lane)
	} else if open != nil {
		open.requests++
	}
}

// answered records how long the agent took to start or to open a session. since is the time of the request, started the
// time when the process started.
func (f *figures) answered(p Protocol, e transcript.Entry, since, started time.Duration) {
	switch {
	case e.Method == p.Open:
		f.open = append(f.open, e.At-since)
	case e.Method == p.Greet && since >= started: // else scenarios share the process, which was greeted before
		f.start = append(f.start, e.At-started)
	}
}

// ended records the figures of a turn that has ended.
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

// span returns the common value of all, or if they differ, the least and the greatest.
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

// about returns a time in steps that are coarse enough to be the same on each run on one machine.
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

// volatileFields returns the fields of an agent's messages whose values differ when the same scenario runs again. The
// folders of the runs count as equal. Updates and methods in omit are left out.
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

// valuesOf returns the values of each field in the agent's messages. A text in pieces is one value, wherever the agent
// cuts it.
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
		values[field] = slices.Compact(v) // the number of repetitions depends on the pieces
	}
	return values
}

// flatten calls put for each value in a frame. Paths leave out the members that all frames share, and list indexes.
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
