package refagent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxMatches  = 100
	maxSearched = 1 << 20 // maximum size in bytes of a searched file
	maxFetched  = 1 << 20 // maximum bytes of a fetched page
)

// search searches the text files below the session's directory for a regular expression, in the order of their names.
// If the expression is invalid, it searches for the text itself.
func search(ctx context.Context, w *work) error {
	pattern := w.args.str("pattern")
	re, err := regexp.Compile(pattern)
	if err != nil {
		re = regexp.MustCompile(regexp.QuoteMeta(pattern))
	}
	dir := w.s.cwd
	if p := w.args.str("path"); p != "" {
		dir = w.s.absolute(p)
	}
	var found []string
	err = w.s.onDisk(dir, func(root *os.Root, rel string) error {
		return fs.WalkDir(root.FS(), filepath.ToSlash(rel), func(name string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return errCancelled
			case err != nil:
				return nil // skip what cannot be read
			case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			if info, err := d.Info(); err != nil || info.Size() > maxSearched {
				return nil
			}
			data, err := fs.ReadFile(root.FS(), name)
			if err != nil || !utf8.Valid(data) {
				return nil
			}
			for i, line := range strings.Split(string(data), "\n") {
				if !re.MatchString(line) {
					continue
				}
				found = append(found, fmt.Sprintf("%s:%d: %s", name, i+1, line))
				path := filepath.Join(root.Name(), filepath.FromSlash(name))
				w.locations = append(w.locations, location{Path: path, Line: i + 1})
				if len(found) == maxMatches {
					return fs.SkipAll
				}
			}
			return nil
		})
	})
	w.say(cmp.Or(strings.Join(found, "\n"), "Nothing found."))
	return err
}

// fetch gets a web page and returns its text.
func fetch(ctx context.Context, w *work) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.args.str("url"), nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: w.a.model.transport}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxFetched))
	if err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("the server answered with HTTP status %d", res.StatusCode)
	}
	w.say(strings.ToValidUTF8(string(body), "\uFFFD"))
	return nil
}

// think gives the model a place to write its reasoning. It has no other effect.
func think(_ context.Context, w *work) error {
	w.content, w.result = textContent(w.args.str("thought")), "Noted."
	return nil
}

// planSchema returns the schema of the arguments of the plan tool: a list of steps, each with a status.
func planSchema() object {
	step := schema("step", "status")
	step["properties"].(object)["status"] = object{"type": "string",
		"enum": []string{statusPending, statusInProgress, statusCompleted}}
	s := schema()
	s["properties"].(object)["steps"] = object{"type": "array", "items": step}
	return s
}

// updatePlan sends the model's plan to the editor.
func updatePlan(_ context.Context, w *work) error {
	list, _ := w.args["steps"].([]any)
	entries := []planEntry{}
	for _, x := range list {
		step, _ := x.(map[string]any)
		args := arguments(step)
		if s := args.str("status"); !slices.Contains([]string{statusPending, statusInProgress, statusCompleted}, s) {
			return fmt.Errorf("a step cannot be %q", s)
		}
		entries = append(entries, planEntry{Content: args.str("step"), Priority: "medium", Status: args.str("status")})
	}
	w.a.record(w.s, update{Tag: "plan", Entries: entries})
	w.result = "Noted."
	return nil
}

// switchMode lets the model change the session's mode. The user must have agreed.
func switchMode(_ context.Context, w *work) error {
	id := w.args.str("mode")
	if !w.a.knownMode(id) {
		return fmt.Errorf("there is no mode %q", id)
	}
	w.a.switchMode(w.s, id)
	w.result = "The session is now in " + id + " mode."
	return nil
}
