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

// Protocol contains the facts about the agents' protocol that a matrix needs.
type Protocol struct {
	Rules *rules.Set
	// Greet, Open, Prompt and Cancel are the methods by which an editor initializes a connection, opens a session,
	// starts a turn and cancels a turn. "" means that the protocol has no such method.
	Greet, Open, Prompt, Cancel string
	// Update returns the kind of update in an agent's entry, or "" for any other entry. Call returns the id of the
	// tool call in an entry, or "". Piece returns the text of an update that is a piece of a message, and the field
	// with the text; ok is false for any other entry.
	Update, Call func(transcript.Entry) string
	Piece        func(transcript.Entry) (text, field string, ok bool)
	// End reports whether an entry from the agent ends a turn, and how.
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

// Measures contains an agent's times and numbers of requests. They differ from run to run and from machine to
// machine. Times are medians; 0 means that nothing was measured.
type Measures struct {
	Start  time.Duration // from the process's start to the response to Greet
	Open   time.Duration // from the request for a session to its response
	Cancel time.Duration // from the cancel to the turn's end
	// TextTurn and ToolTurn are the numbers of model requests in a turn without and with one tool call, such as "1" or
	// "1–2"; "" if there was no such turn.
	TextTurn, ToolTurn string
	// Side lists the lanes of the model requests that are outside of the conversation.
	Side []string
}

// measure returns the measures of a run. It reads the run's transcripts.
func (p Protocol) measure(run results.Run) Measures {
	var f figures
	for _, r := range run.Results {
		// Skip a missing or invalid transcript.
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

// figures contains the measurements from the transcripts of one agent.
type figures struct {
	start, open, cancel []time.Duration
	text, tool          []int
	side                []string
}

// turn is a prompt whose turn has not ended.
type turn struct {
	requests    int
	calls       map[string]bool
	cancelled   bool
	cancelledAt time.Duration
}

// mainLanes lists the lanes of model requests that belong to the conversation.
var mainLanes = []string{"main", "after"}

func (f *figures) add(p Protocol, t *transcript.Transcript) {
	var started time.Duration
	asked := map[int]time.Duration{} // times of the editor's requests, by Seq
	turns := map[string]*turn{}      // open turns, by session
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

// modelAsked counts a model request. open is the turn in which it was sent, or nil.
func (f *figures) modelAsked(lane string, open *turn) {
	if !slices.Contains(mainLanes, lane) {
		f.side = append(f.side, lane)
	} else if open != nil {
		open.requests++
	}
}

// answered records, for the response e, how long the agent took to start or to open a session. since is the time of
// the request, and started the time at which the process started.
func (f *figures) answered(p Protocol, e transcript.Entry, since, started time.Duration) {
	switch {
	case e.Method == p.Open:
		f.open = append(f.open, e.At-since)
	case e.Method == p.Greet && since >= started: // otherwise the process was started for an earlier scenario
		f.start = append(f.start, e.At-started)
	}
}

// ended records the measurements of a turn that has ended.
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

// span returns the value that all numbers have. If they differ, it returns the smallest and the largest, such as
// "1–2".
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

// about returns a duration as a coarse range, such as "< 250ms". The ranges are so coarse that runs on the same
// machine rarely differ.
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
// paths of the two runs' folders count as equal. Updates and methods in omit are ignored.
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

// valuesOf returns the values of each field in the agent's messages. A text that is sent in pieces is one value, so
// it does not matter where the agent splits it.
func (p Protocol) valuesOf(t *transcript.Transcript, omit []string) map[string][]string {
	values := map[string][]string{}
	root := "\x00"               // folder of the run; unknown before the agent starts
	texts := map[string]string{} // texts of pieces, by update and field
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
		values[field] = slices.Compact(v) // the number of repeats depends on the pieces
	}
	return values
}

// flatten calls put for each value in a frame. The paths contain neither list indexes nor the members that all frames
// have in common.
func flatten(v any, path string, put func(path, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			switch k {
			case "jsonrpc", "method":
				continue
			case "sessionId":
				put("sessionId", fmt.Sprint(member)) // the path is the same wherever it occurs
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
