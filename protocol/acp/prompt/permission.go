package prompt

import (
	"os"
	"path/filepath"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/wire"
)

// permission answers a permission request as the flags say.
func (t *Turn) permission(r *mockclient.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancelled {
		r.Reply(mockclient.CancelledOutcome())
		return
	}
	call := t.screen.calls.get(r.Entry.Session, r.Params.Path("toolCall.toolCallId").Str())
	option, why := t.choose(call, r.Params.Get("options"))
	t.screen.because(r.Entry.Seq, why)
	if option == "" {
		r.Reply(mockclient.CancelledOutcome())
		return
	}
	r.Reply(mockclient.Selected(option))
}

// choose finds the id of the option to choose, "" if there is none, and why it
// is not to allow.
func (t *Turn) choose(call toolCall, options wire.Value) (option, why string) {
	first := func(kinds ...string) string {
		for _, kind := range kinds {
			for o := range options.Items() {
				if o.Get("kind").Is(kind) && o.Get("optionId").Kind() == wire.String {
					return o.Get("optionId").Str()
				}
			}
		}
		return ""
	}
	why = t.refusal(call)
	if why == "" {
		if id := first(mockclient.AllowOnce); id != "" {
			return id, ""
		}
		why = "it can only be allowed for always"
	}
	return first(mockclient.RejectOnce, mockclient.RejectAlways), why
}

// refusal says why a tool call is not allowed, "" if it is.
func (t *Turn) refusal(call toolCall) string {
	edits := call.kind == "edit"
	writes := edits || call.kind == "delete" || call.kind == "move" || call.diff
	switch {
	case !t.options.Yolo && !t.options.Write && edits:
		return "--write allows it"
	case !t.options.Yolo && !edits:
		return "--yolo allows it"
	case writes && len(call.paths) == 0:
		return "it does not say which file it is about"
	case writes:
		for _, path := range call.paths {
			if !inside(t.options.Work, path) {
				return path + " is outside the workspace"
			}
		}
	}
	return ""
}

// inside reports whether a path stays in a folder, whatever links are on it. A
// relative one begins there.
func inside(dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	// What is not there yet is where its folder is. A link to nowhere is there.
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err != nil && at != filepath.Dir(at) {
			rest = filepath.Join(filepath.Base(at), rest)
			continue
		}
		if at, err = filepath.EvalSymlinks(at); err != nil {
			return false
		}
		rel, err := filepath.Rel(real, filepath.Join(at, rest))
		return err == nil && filepath.IsLocal(rel)
	}
}
