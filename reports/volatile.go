package reports

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

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
