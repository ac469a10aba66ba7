package invariants

import (
	"path"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// shownCall is what updates show of one tool call, apart from its status. White space does not count.
type shownCall struct {
	title, kind, place string // place is the path of the first location
	content            string // texts and diffs; terminals end with their process, so a replay need not have them
	unclear            bool   // the log hides a part of some update, or there was too much to remember
}

// shows applies an update to c.
func (c *shownCall) shows(update wire.Value) {
	if title := bare(update.Get("title").Str()); title != "" {
		c.title = title
	}
	if kind := update.Get("kind").Str(); kind != "" {
		c.kind = kind
	}
	for at := range update.Get("locations").Items() {
		c.place = path.Clean(at.Get("path").Str())
		break
	}
	if list := update.Get("content"); list.Kind() == wire.Array {
		c.content = ""
		for item := range list.Items() {
			c.content += bare(item.Path("content.text").Str() + item.Get("path").Str() + item.Get("newText").Str())
		}
	}
}

// callIn returns the entry of a tool call in calls. The result is nil if there are too many calls.
func callIn(calls map[string]*shownCall, id string) *shownCall {
	if calls[id] == nil && len(calls) < rememberedTools {
		calls[id] = &shownCall{}
	}
	return calls[id]
}

// shows adds a live update of a tool call.
func (k *talk) shows(ev *event) {
	if s := ev.session; k == nil || s == nil || s.window != nil {
		return
	}
	k.shownBytes += len(ev.Raw)
	if c := callIn(k.shown, ev.update.Get("toolCallId").Str()); c != nil {
		if c.unclear = c.unclear || len(ev.Redacted) > 0 || k.shownBytes > rememberedText; !c.unclear {
			c.shows(ev.update)
		}
	}
}

// shows adds a replayed update of a tool call.
func (r *replayed) shows(ev *event) {
	if r.shown == nil {
		r.shown = map[string]*shownCall{}
	}
	if c := callIn(r.shown, ev.update.Get("toolCallId").Str()); c != nil {
		c.unclear = c.unclear || len(ev.Redacted) > 0
		c.shows(ev.update)
	}
}

// compareShown checks the title, kind, location and content of a replayed tool call against those of the live call.
func (w *watch) compareShown(live, again *shownCall, t *tool, ev *event) {
	if live == nil || again == nil || live.unclear || again.unclear {
		return
	}
	w.judge("content", live.content != "" && again.content == "", ev, t.id, []int{t.seq},
		"Tool call %q had the content %q, but %s replays it without content.", t.id, clip(live.content), ev.Method)
	what := ""
	switch {
	case again.kind != live.kind:
		what = "the kind " + live.kind
	case again.place == "" && live.place != "":
		what = "the location " + live.place
	case again.content != "" && !strings.Contains(again.content, live.content):
		what = "the content " + clip(live.content)
	}
	other := !strings.Contains(live.title, again.title) && !strings.Contains(again.title, live.title)
	w.judge("title", other && what == "", ev, t.id, []int{t.seq},
		"Tool call %q had the title %q, but %s replays it as %q (without white space).", t.id, clip(live.title), ev.Method,
		clip(again.title))
	w.judge("details", what != "", ev, t.id, []int{t.seq},
		"Tool call %q had %s (without white space), but %s replays it without that.", t.id, what, ev.Method)
}
