package invariants

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
)

// effects judges that the workspace changes by the calls that the model made, that the user let
// pass and that are said to be completed. Only a log with the model's side and with entries of
// kind transcript.Changed shows it.
func effects(v *version) *rule {
	r := v.ofAgent("EFFECTS", "The workspace changes as the calls say that the user let pass, and by no other.")
	points := effectPoints{
		rejected: r.Fail("rejected", "a file was changed as a call wanted that the user had rejected", "PERM-007"),
		unmade:   r.Fail("unmade", "a call is said to be completed, and the file is not as it says", "TOOL-011"),
		altered:  r.Warn("altered", "a file was written with another content than the call says", "TOOL-011"),
		made:     r.Warn("made", "a call is said to have failed, and its change was made", "TOOL-011"),
	}
	return r.Watching(func(w *watch) {
		x := &effectWatch{watch: w, effectPoints: points, turns: map[*turn]*wanted{}, over: map[int]*wanted{},
			holds: map[string]string{}}
		w.On(func(*event) {
			for _, a := range x.turns {
				a.unclear = true // whose change is whose
			}
		}, asked(prompt))
		w.On(x.model, modelEvent)
		w.On(func(ev *event) {
			if a := x.turns[ev.turn]; a != nil {
				a.byEditor = append(a.byEditor, ev.params.Get("path").Str())
			}
		}, asked(writeFile))
		w.On(x.ends, answered(prompt))
		w.On(x.found, workspaceEvent)
	})
}

type effectPoints struct{ rejected, unmade, altered, made int }

type effectWatch struct {
	*watch
	effectPoints
	turns map[*turn]*wanted
	over  map[int]*wanted   // those that have ended, by Seq of the prompt
	holds map[string]string // what is known of the files, by path: size and hash
}

// wanted are the calls of the model in a turn.
type wanted struct {
	session *session
	calls   []wish
	tools   []*tool // what the turn showed
	ended   string  // the stop reason
	unclear bool
	// byEditor are the files that the agent asked the editor to write, which PERM-GUARD judges.
	byEditor []string
}

// wish is a call of a neutral tool.
type wish struct {
	answer int // Seq of the reply
	tool   string
	args   map[string]string
}

// model takes in what the model calls.
func (x *effectWatch) model(ev *event) {
	t := x.state.onlyTurn()
	if t == nil {
		return
	}
	a := x.turns[t]
	switch ev.Kind {
	case transcript.ModelAnswer:
		calls := wishes(ev)
		if a == nil && len(calls) > 0 {
			a = &wanted{session: t.session}
			x.turns[t] = a
		}
		if a != nil {
			a.calls = append(a.calls, calls...)
			a.unclear = a.unclear || len(ev.Redacted) > 0 || ev.Session != t.session.id // such as a child of it
		}
	case transcript.ModelFault, transcript.ModelAborted:
		if a != nil {
			a.unclear = true
		}
	}
}

// wishes are the calls of visible neutral tools among the steps of a reply.
func wishes(ev *event) (all []wish) {
	for s := range ev.body.Get("steps").Items() {
		head, args, _ := strings.Cut(s.Str(), "\nargs: ")
		name := strings.Trim(strings.TrimPrefix(head, "tool: "), `"`)
		if !slices.Contains(visible, name) {
			continue
		}
		w := wish{answer: ev.Seq, tool: name, args: map[string]string{}}
		var given map[string]any
		_ = json.Unmarshal([]byte(args), &given) // what is no JSON has no arguments
		for k, v := range given {
			if text, ok := v.(string); ok {
				w.args[k] = text
			}
		}
		all = append(all, w)
	}
	return all
}

// ends keeps what is to be compared with what the turn changed.
func (x *effectWatch) ends(ev *event) {
	t := ev.turn
	a := x.turns[t]
	delete(x.turns, t)
	if a == nil || a.unclear || !t.alone() || t.mixed || t.joined > 0 {
		return
	}
	a.tools, a.ended = t.tools, ev.stop
	x.over[t.started] = a
}

// found judges what a turn changed.
func (x *effectWatch) found(ev *event) {
	if ev.Kind == transcript.Places {
		for f := range ev.body.Get("files").Items() {
			size, _ := f.Get("size").Int()
			x.holds[f.Get("path").Str()] = fmt.Sprintf("%d bytes, sha256 %s", size, f.Get("sha256").Str())
		}
		return
	}
	seq, _ := ev.body.Get("turn").Int()
	a := x.over[int(seq)]
	delete(x.over, int(seq))
	changed := map[string]bool{}
	for f := range ev.body.Get("files").Items() {
		name := f.Get("path").Str()
		x.holds[name] = f.Get("is").Str()
		changed[name] = true
	}
	if a != nil && !ev.body.Get("cut").Exists() {
		root := ev.body.Get("root").Str()
		for i, c := range a.calls {
			if name, ok := c.file(root, a.session.cwd); ok && !a.again(root, name, i) {
				x.effect(ev, a, i, name, changed)
			}
		}
	}
}

// file is the path below root of the file that a call writes.
func (c wish) file(root, cwd string) (name string, ok bool) {
	if !slices.Contains([]string{"write_file", "edit_file", "delete_file"}, c.tool) {
		return "", false
	}
	name = c.args["path"]
	if !path.IsAbs(name) {
		name = path.Join(cwd, name)
	}
	return strings.CutPrefix(path.Clean(name), strings.TrimRight(root, "/")+"/")
}

// again reports whether another call of the turn may change a file as well, whatever becomes
// of the call i.
func (a *wanted) again(root, name string, i int) bool {
	for j, c := range a.calls {
		other, writes := c.file(root, a.session.cwd)
		if j != i && (writes && other == name || !writes && c.tool != "read_file" && c.tool != "search") {
			return true
		}
	}
	return false
}

// shown is the tool call that the editor saw for the call i; nil if nobody can tell.
func (a *wanted) shown(i int) *tool {
	if len(a.tools) == len(a.calls) {
		return a.tools[i]
	}
	if len(a.tools) == 1 && len(a.calls) == 1 {
		return a.tools[0]
	}
	return nil
}

// effect judges what became of one call.
func (x *effectWatch) effect(ev *event, a *wanted, i int, name string, changed map[string]bool) {
	k, c := a.shown(i), a.calls[i]
	if k == nil {
		return
	}
	is, because := x.holds[name], []int{c.answer, k.seq}
	switch {
	case k.denied > 0 && k.allowed == 0 && k.denial != failedAnswer:
		shown := slices.ContainsFunc(a.byEditor, func(p string) bool { return strings.HasSuffix(p, name) })
		x.judge(x.rejected, changed[name] && !shown, ev, name, append(because, k.denied),
			"The user did not allow tool call %q, and %s is now: %s.", k.id, name, orGone(is))
	case k.denied > 0:
	case k.status == completed && a.ended == "end_turn":
		x.completed(ev, c, k, name, is, changed[name])
	case k.status == failed && changed[name]:
		x.judge(x.made, c.tool != "edit_file" && c.makes(is), ev, name, because,
			"Tool call %q is said to have failed, and %s is as it wanted: %s.", k.id, name, is)
	}
}

// completed judges a call that is said to be completed.
func (x *effectWatch) completed(ev *event, c wish, k *tool, name, is string, changed bool) {
	because := []int{c.answer, k.seq}
	x.Saw(x.unmade, x.altered)
	switch {
	case c.tool == "edit_file" && (changed || c.args["old"] == c.args["new"]):
	case c.tool == "edit_file":
		x.find(x.unmade, ev, name, because, "Tool call %q is said to be completed, and %s, which it edits, did not change.",
			k.id, name)
	case c.makes(is):
	case c.tool == "delete_file":
		x.find(x.unmade, ev, name, because, "Tool call %q, which deletes %s, is said to be completed; the file is there: %s.",
			k.id, name, is)
	case changed:
		x.find(x.altered, ev, name, because, "The model wrote %d bytes to %s by tool call %q, and the file has: %s.",
			len(c.args["content"]), name, k.id, orGone(is))
	default:
		x.find(x.unmade, ev, name, because,
			"The model wrote %d bytes to %s by tool call %q, which is said to be completed; the file is: %s.%s",
			len(c.args["content"]), name, k.id, orGone(is), x.elsewhere(c, name))
	}
}

// makes reports whether a file is as a call writes it. Tools that write by patches end each
// line.
func (c wish) makes(is string) bool {
	if c.tool == "delete_file" {
		return is == ""
	}
	text := c.args["content"]
	return slices.ContainsFunc([]string{text, text + "\n", strings.TrimSuffix(text, "\n")}, func(s string) bool {
		return workspace.Sum([]byte(s)) == is
	})
}

// elsewhere tells of another file that is as a call wants its own to be.
func (x *effectWatch) elsewhere(c wish, name string) string {
	for _, other := range slices.Sorted(maps.Keys(x.holds)) {
		if other != name && c.args["content"] != "" && c.makes(x.holds[other]) {
			return fmt.Sprintf(" What it wanted is in %s.", other)
		}
	}
	return ""
}

func orGone(is string) string { return pick(is == "", "not there", is) }
