package prompt

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/wire"
)

// permission answers a permission request according to the flags, or asks the user.
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

// answer answers a permission request with an option. After a cancel, or without an option, it answers cancelled. The
// caller holds mu.
func (t *Client) answer(r *mockclient.Request, option, why string) {
	if t.cancelled || option == "" {
		r.Reply(mockclient.CancelledOutcome())
		return
	}
	t.screen.because(r.Entry.Seq, why)
	r.Reply(mockclient.Selected(option))
}

// choose returns the id of the option to select, or "" if no option fits. why says why the call is not allowed; it is
// "" if the option allows the call.
func (t *Client) choose(call toolCall, offers []offer) (option, why string) {
	why = t.refusal(call)
	if why == "" {
		if id := offered(offers, mockclient.AllowOnce); id != "" {
			return id, ""
		}
		why = "the agent offers no option to allow it once"
	}
	return cmp.Or(offered(offers, mockclient.RejectOnce), offered(offers, mockclient.RejectAlways)), why
}

// refusal returns the reason why the flags do not allow a tool call, or "".
func (t *Client) refusal(call toolCall) string {
	edits := call.kind == "edit"
	writes := edits || call.kind == "delete" || call.kind == "move" || len(call.diffs) > 0
	switch {
	case !t.options.Yolo && !t.options.Write && edits:
		return "use --write to allow it"
	case !t.options.Yolo && !edits:
		return "use --yolo to allow it"
	case writes && len(call.paths) == 0:
		return "the call names no file"
	case writes:
		for _, path := range call.paths {
			if !inside(t.options.Work, path) {
				return path + " is outside the workspace"
			}
		}
	}
	return ""
}

// inside reports whether a path lies in the folder dir after all symbolic links are resolved. A relative path starts
// in dir.
func inside(dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	// If the path does not exist yet, resolve the nearest folder that does. A link to a missing file counts as
	// existing.
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

// permit identifies the calls to which an answer for always applies: calls of one kind and title. The agent may apply
// the answer to more calls.
type permit struct{ kind, title string }

// offer is an option of a permission request.
type offer struct{ id, name, kind string }

func offersOf(options wire.Value) []offer {
	var list []offer
	for o := range options.Items() {
		if id := o.Get("optionId"); id.Kind() == wire.String {
			list = append(list, offer{id.Str(), o.Get("name").Str(), o.Get("kind").Str()})
		}
	}
	return list
}

// remembered returns the id of the option that the user has chosen for always for such a call, or "".
func (t *Client) remembered(call toolCall, offers []offer) string {
	if kind := t.always[permit{call.kind, call.title}]; kind != "" {
		return offered(offers, kind)
	}
	return ""
}

// offered returns the id of the first option of a kind, or "".
func offered(offers []offer, kind string) string {
	return lists.First(offers, func(o offer) bool { return o.kind == kind }).id
}

// ask asks the user about a permission request and answers it.
func (t *Client) ask(ctx context.Context, r *mockclient.Request, call toolCall, offers []offer) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.screen.await(ctx, r.Entry.Seq)
	t.mu.Lock()
	id := t.remembered(call, offers) // the user may have answered an earlier question for always
	t.mu.Unlock()
	why := "as before"
	if id == "" {
		why = ""
		if chosen, ok := t.question(ctx, call, offers); ok {
			id = chosen.id
			if strings.HasSuffix(chosen.kind, "_always") {
				t.mu.Lock()
				t.always[permit{call.kind, call.title}] = chosen.kind
				t.mu.Unlock()
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer(r, id, why)
}

// question asks the user until he chooses an option. ok is false if there are no options, or if the input or ctx ends.
func (t *Client) question(ctx context.Context, call toolCall, offers []offer) (offer, bool) {
	if len(offers) == 0 {
		return offer{}, false
	}
	t.screen.tell("permission", fmt.Sprintf("%s (%s)?", OneLine(call.title), OneLine(call.kind)))
	list := lists.Map(call.paths, func(path string) string { return "about " + OneLine(under(t.options.Work, path)) })
	list = slices.Compact(slices.Sorted(slices.Values(list))) // one path may have two forms
	for i, o := range offers {
		list = append(list, fmt.Sprintf("%d  %s (%s)", i+1, OneLine(o.name), OneLine(o.kind)))
	}
	for _, d := range call.diffs {
		t.screen.diff(d)
	}
	t.screen.block(list)
	for {
		line, err := t.options.Console.answer(ctx, fmt.Sprintf("1-%d: ", len(offers)))
		if err != nil {
			return offer{}, false
		}
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= len(offers) {
			return offers[n-1], true
		}
	}
}
