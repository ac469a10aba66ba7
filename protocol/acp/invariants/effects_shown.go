package invariants

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// pictured is the diff of one file that a tool call shows.
type pictured struct {
	seq      int
	path     string
	old, new string
	fresh    bool // the diff has no old text, so it shows a new file
}

// shows stores the diffs in an update of a tool call. They replace the call's earlier diffs; an update without a diff
// changes nothing.
func (a *wanted) shows(seq int, call wire.Value) {
	if all := pictures(seq, call); all != nil {
		a.shown[call.Get("toolCallId").Str()] = all
	}
}

// pictures returns the diffs in the content of a tool call.
func pictures(seq int, call wire.Value) (all []pictured) {
	for c := range call.Get("content").Items() {
		if old := c.Get("oldText"); c.Get("type").Is("diff") && c.Get("newText").Exists() {
			all = append(all, pictured{seq, path.Clean(c.Get("path").Str()), old.Str(), c.Get("newText").Str(),
				old.Kind() != wire.String})
		}
	}
	return all
}

// told compares the diffs that a completed call shows for a file with the file's content before and after the call.
func (x *effectWatch) told(ev *event, a *wanted, name string, call int, before, after content) {
	c, made := a.calls[call], ev.body.Get("files").Find("path", name).Get("what").Is("new file")
	if a.otherwise(x, ev, name, call, after) {
		return
	}
	for _, d := range a.shown[a.tools[call].id] {
		if d.path != a.root+name || a.hidden[d.path] {
			continue
		}
		refs := []int{c.answer, d.seq}
		switch {
		case before.is != "" && before.is != unknown && d.fresh:
			x.find("shown", ev, name, refs, "Tool call %q shows %s as a new file, but the file existed: %s.",
				a.tools[call].id, name, before.is)
		case made && before.is == "" && d.old != "":
			x.find("shown", ev, name, refs, "Tool call %q shows %q as the former text of %s, but the call created that file.",
				a.tools[call].id, clip(d.old), name)
		case before.known && before.is != "" && !strings.Contains(bare(before.text), bare(d.old)):
			x.find("shown", ev, name, refs, "Tool call %q shows %q as the former text of %s, which held %q.",
				a.tools[call].id, clip(d.old), name, clip(before.text))
		case after.known && !strings.Contains(bare(after.text), bare(d.new)):
			x.find("shown", ev, name, refs, "Tool call %q shows %q as the new text of %s, which became %q.",
				a.tools[call].id, clip(d.new), name, clip(after.text))
		default:
			x.Saw("shown")
		}
	}
}

// otherwise reports a file that a call changed otherwise than the permission request showed. It returns true if it has
// reported one.
func (a *wanted) otherwise(x *effectWatch, ev *event, name string, call int, after content) bool {
	t := a.tools[call]
	for _, d := range a.pictured[t.id] {
		if d.path == a.root+name && !a.hidden[d.path] && after.known && t.allowed > 0 {
			return x.judge("otherwise", !strings.Contains(bare(after.text), bare(d.new)), ev, name,
				[]int{a.calls[call].answer, d.seq}, "The user allowed tool call %q, whose permission request shows %q as the "+
					"new text of %s, but the file became %q.", t.id, clip(d.new), name, clip(after.text)) != nil
		}
	}
	return false
}

// droppedDiffs checks that the last content of a tool call has the diffs of all files that the call changed. An update
// replaces the whole content, so it may drop the diff of an earlier update.
func droppedDiffs(w *watch) {
	type diffs struct{ before, now map[string]int } // Seq of the update that showed a path's diff, by path
	turns := map[int]map[string]*diffs{}            // by Seq of the prompt, then by id of the tool call
	w.inTurn(func(ev *event, t *turn) {
		var paths map[string]int
		for c := range ev.update.Get("content").Items() {
			if c.Get("type").Is("diff") {
				if paths == nil {
					paths = map[string]int{}
				}
				paths[path.Clean(c.Get("path").Str())] = ev.Seq
			}
		}
		if len(paths) == 0 {
			return
		}
		if turns[t.started] == nil {
			rules.Remember(turns, rememberedRequests, t.started, map[string]*diffs{})
		}
		if turns[t.started] == nil || len(turns[t.started]) >= rememberedTools {
			return
		}
		d := rules.Entry(turns[t.started], ev.update.Get("toolCallId").Str())
		if d.before == nil {
			d.before = map[string]int{}
		}
		maps.Copy(d.before, d.now)
		d.now = paths
	}, toolCall, toolUpdate)
	w.On(func(ev *event) {
		seq, _ := ev.body.Get("turn").Int()
		for _, id := range slices.Sorted(maps.Keys(turns[int(seq)])) {
			d := turns[int(seq)][id]
			for _, file := range slices.Sorted(maps.Keys(d.before)) {
				name, inside := strings.CutPrefix(file, ev.body.Get("root").Str()+"/")
				if inside && ev.body.Get("files").Find("path", name).Exists() {
					w.judge("dropped", d.now[file] == 0, ev, name, []int{d.before[file]}, "The agent replaced the content of "+
						"tool call %q by one without the diff of %s, which changed.", id, name)
				}
			}
		}
		delete(turns, int(seq))
	}, workspaceEvent)
}
