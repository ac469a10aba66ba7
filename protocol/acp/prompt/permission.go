package prompt

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/acp-test/acp-test/mockclient"
)

// permission answers a permission request as the flags say, or as the user does.
func (t *Client) permission(r *mockclient.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	call := t.screen.calls.get(r.Entry.Session, r.Params.Path("toolCall.toolCallId").Str())
	offers := offersOf(r.Params.Get("options"))
	if !t.options.Ask || t.cancelled || t.turning == nil {
		option, why := t.choose(call, offers)
		t.answer(r, option, why)
		return
	}
	if id := t.remembered(call, offers); id != "" {
		t.answer(r, id, "as before")
		return
	}
	if option, why := t.choose(call, offers); why == "" {
		t.answer(r, option, "")
		return
	}
	go t.ask(t.turning, r, call, offers)
}

// answer gives the answer to a permission request, unless the turn has been cancelled:
// then there is none. The caller holds mu.
func (t *Client) answer(r *mockclient.Request, option, why string) {
	if t.cancelled || option == "" {
		r.Reply(mockclient.CancelledOutcome())
		return
	}
	t.screen.because(r.Entry.Seq, why)
	r.Reply(mockclient.Selected(option))
}

// choose finds the id of the option to choose, "" if there is none, and why it
// is not to allow.
func (t *Client) choose(call toolCall, offers []offer) (option, why string) {
	why = t.refusal(call)
	if why == "" {
		if id := offered(offers, mockclient.AllowOnce); id != "" {
			return id, ""
		}
		why = "it can only be allowed for always"
	}
	return cmp.Or(offered(offers, mockclient.RejectOnce), offered(offers, mockclient.RejectAlways)), why
}

// refusal says why a tool call is not allowed, "" if it is.
func (t *Client) refusal(call toolCall) string {
	edits := call.kind == "edit"
	writes := edits || call.kind == "delete" || call.kind == "move" || len(call.diffs) > 0
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
