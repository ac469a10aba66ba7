package invariants

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// effects checks that a turn changes the workspace exactly as the model's calls demand. Only calls count that the
// agent reports as completed and that the user did not reject. The log must have the model's side and entries of kind
// transcript.Changed.
func effects(w *watch) {
	v := w.version
	x := &effectWatch{watch: w, turns: map[*turn]*wanted{}, over: map[int]*wanted{},
		files: map[string]content{}}
	w.On(func(*event) {
		for _, a := range x.turns {
			a.unclear = true // nobody can tell which turn made a change
		}
	}, asked(prompt))
	w.On(x.model, modelEvent)
	w.On(func(ev *event) {
		if a := x.turns[ev.turn]; a != nil {
			a.byEditor = append(a.byEditor, writing{ev.Seq, ev.params.Get("path").Str()})
		}
	}, asked(writeFile))
	w.On(func(ev *event) {
		part := ev.params.Get("line").Exists() || ev.params.Get("limit").Exists()
		if a := x.turns[ev.turn]; a != nil && !part {
			a.reads[ev.Seq] = path.Clean(ev.params.Get("path").Str())
		}
	}, asked(readFile))
	w.On(func(ev *event) {
		a := x.turns[ev.turn]
		if a == nil || a.reads[ev.Ref] == "" {
			return
		}
		name := a.reads[ev.Ref]
		if !ev.succeeded() {
			a.hidden[name] = true
			return
		}
		written := func(w writing) bool { return path.Clean(w.path) == name }
		if !slices.ContainsFunc(a.byEditor, written) { // else the text may be the agent's own
			a.open[name] = ev.result.Get("content").Str()
		}
	}, answered(readFile))
	w.On(func(ev *event) {
		if a := x.turns[ev.turn]; a != nil {
			a.shows(ev.Seq, ev.update)
		}
	}, toolCall, toolUpdate)
	w.On(func(ev *event) {
		if a := x.turns[ev.turn]; a != nil {
			a.shows(ev.Seq, ev.params.Path(v.call))
			id := ev.params.Path(v.call + ".toolCallId").Str()
			a.asked[id] = cmp.Or(a.asked[id], ev.Seq)
			a.pictured[id] = pictures(ev.Seq, ev.params.Path(v.call))
		}
	}, asked(permission))
	w.On(func(ev *event) {
		if a := x.turns[ev.turn]; a != nil && ev.result.Get("outcome").Get("_meta").Exists() {
			a.unclear = true // the user may have changed the call
		}
	}, answered(permission))
	w.onEnd(x.ends)
	w.On(x.found, workspaceEvent)
	droppedDiffs(w)
}

type effectWatch struct {
	*watch
	turns map[*turn]*wanted
	over  map[int]*wanted    // ended turns, by Seq of the prompt
	files map[string]content // last known content of each file, by path
}

// content is the known content of a file. The field is holds the size and the hash as text; it is "" if the file does
// not exist. text is set only if known is true.
type content struct {
	is, text string
	known    bool
}

// unknown is the value of content.is for a file that exists but whose size and hash are not known.
const unknown = "unknown"

// contentOf returns the content of a file from an entry. It leaves known false if the log hides a part of the text.
func contentOf(f wire.Value, is string) content {
	text := f.Get("text").Str()
	return content{is, text, workspace.Sum([]byte(text)) == is}
}

// wanted has the model's calls in a turn, and the agent's requests that belong to the turn.
type wanted struct {
	session  *session
	root     string // path of the workspace, ending in a slash
	calls    []wish
	asked    map[string]int        // Seq of the first permission request, by id of the tool call
	byEditor []writing             // the agent's requests to write files
	reads    map[int]string        // path of each file that the agent asked the editor to read, by Seq
	open     map[string]string     // text of each file in the editor before the agent wrote it, by path
	hidden   map[string]bool       // paths of files that the editor refused to read
	shown    map[string][]pictured // diffs, by id of the tool call
	pictured map[string][]pictured // diffs in permission requests, by id of the tool call
	tools    []*tool               // tool calls that the turn showed
	ended    string                // stop reason of the turn
	unclear  bool
	moved    bool // an earlier connection opened the session in another folder: relative paths are ambiguous
}

// wish is one call of a neutral tool in a model reply.
type wish struct {
	answer int // Seq of the model reply
	tool   string
	args   map[string]string
}

// writing is an agent's request to write a file.
type writing struct {
	seq  int
	path string
}

// model remembers the calls in a model reply.
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
			a = &wanted{session: t.session, asked: map[string]int{}, reads: map[int]string{},
				open: map[string]string{}, shown: map[string][]pictured{}, pictured: map[string][]pictured{},
				hidden: map[string]bool{}, moved: x.state.moved(t.session)}
			x.turns[t] = a
		}
		if a != nil {
			a.calls = append(a.calls, calls...)
			a.unclear = a.unclear || len(ev.Redacted) > 0 || ev.Session != t.session.id // a child session, for example
		}
	case transcript.ModelFault, transcript.ModelAborted:
		if a != nil {
			a.unclear = true
		}
	}
}

// wishes returns the calls of visible tools among the steps of a model reply.
func wishes(ev *event) (all []wish) {
	for s := range ev.body.Get("steps").Items() {
		head, args, _ := strings.Cut(s.Str(), "\nargs: ")
		args, _, _ = strings.Cut(args, "\n") // other keys of the step may follow
		name := strings.Trim(strings.TrimPrefix(head, "tool: "), `"`)
		if !slices.Contains(visible, name) {
			continue
		}
		var given map[string]any
		_ = json.Unmarshal([]byte(args), &given) // invalid JSON counts as no arguments
		list, _ := given["edits"].([]any)
		if list == nil {
			list = []any{given}
		}
		for _, one := range list {
			w := wish{answer: ev.Seq, tool: name, args: map[string]string{}}
			given, _ := one.(map[string]any)
			for k, v := range given {
				if text, ok := v.(string); ok {
					w.args[k] = text
				}
			}
			all = append(all, w)
		}
	}
	return all
}

// ends keeps the calls of a turn for the comparison with the changes of the workspace.
func (x *effectWatch) ends(ev *event) {
	t := ev.turn
	a := x.turns[t]
	delete(x.turns, t)
	if a == nil || a.unclear || !t.alone() || t.mixed || t.joined > 0 || len(t.tools) != len(a.calls) {
		return
	}
	a.tools, a.ended = t.tools, ev.stop
	x.over[t.started] = a
}

// found compares the changes of a turn with the model's calls.
func (x *effectWatch) found(ev *event) {
	if ev.Kind == transcript.Places {
		for f := range ev.body.Get("files").Items() {
			size, _ := f.Get("size").Int()
			x.files[f.Get("path").Str()] = contentOf(f, fmt.Sprintf("%d bytes, sha256 %s", size, f.Get("sha256").Str()))
		}
		return
	}
	seq, _ := ev.body.Get("turn").Int()
	a := x.over[int(seq)]
	delete(x.over, int(seq))
	now := map[string]content{}
	for f := range ev.body.Get("files").Items() {
		now[f.Get("path").Str()] = contentOf(f, f.Get("is").Str())
	}
	if a != nil && !ev.body.Get("cut").Exists() && !slices.ContainsFunc(a.calls, wish.anything) {
		a.root = strings.TrimRight(ev.body.Get("root").Str(), "/") + "/"
		of := a.files()
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !workspace.Git(name) && !x.linked(name) {
				x.file(ev, a, name, of[name], now)
				x.mode(ev, a, name, of[name])
			}
		}
	}
	maps.Copy(x.files, now)
}

// anything reports whether a call, such as a shell command, may change files other than the one in its path argument.
func (c wish) anything() bool {
	return !c.reads() && !slices.Contains([]string{"write_file", "edit_file", "delete_file"}, c.tool)
}

// reads reports whether a call changes no file.
func (c wish) reads() bool {
	return slices.Contains([]string{"read_file", "list_folder", "search"}, c.tool)
}

// linked reports whether the path of a file leads through a symbolic link. Files behind links are not judged.
func (x *effectWatch) linked(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, known := x.files[dir]; known {
			return true
		}
	}
	return false
}

// files returns, for each path relative to the workspace, the indexes in a.calls of the calls that change this file.
func (a *wanted) files() map[string][]int {
	of := map[string][]int{}
	for i, c := range a.calls {
		if c.reads() {
			continue
		}
		name := c.args["path"]
		if !path.IsAbs(name) && !a.moved {
			name = path.Join(a.session.cwd, name)
		}
		if rel, ok := strings.CutPrefix(path.Clean(name), a.root); ok {
			of[rel] = append(of[rel], i)
		}
	}
	return of
}

// file judges the calls that write one file. now has the content of the files that the turn changed.
func (x *effectWatch) file(ev *event, a *wanted, name string, calls []int, now map[string]content) {
	is, changed := now[name]
	if !changed {
		is = x.files[name]
	}
	first := a.calls[calls[0]].answer
	written, asked := a.touched(name, calls)
	x.Saw("early")
	switch refused := a.refused(calls); {
	case written.seq > 0 && asked > written.seq:
		x.find("early", ev, name, []int{first, written.seq, asked},
			"The agent wrote %s at #%d, before it asked for permission at #%d.", name, written.seq, asked)
	case refused > 0 && written.seq == 0: // if the editor wrote the file, PERM-GUARD judges it
		x.judge("rejected", changed, ev, name, []int{first, refused},
			"The user rejected the calls that write %s, but the file was changed and is now: %s.", name, orGone(is.is))
	case refused == 0 && a.ended == "end_turn":
		x.outcome(ev, a, name, calls, is, changed)
	}
}

// mode checks that an executable file stays executable when the agent edits the file without the editor's help.
func (x *effectWatch) mode(ev *event, a *wanted, name string, calls []int) {
	edits := !slices.ContainsFunc(calls, func(i int) bool { return a.calls[i].tool == "delete_file" })
	if written, _ := a.touched(name, calls); edits && written.seq == 0 {
		f := ev.body.Get("files").Find("path", name)
		x.judge("mode", f.Get("mode").Is("cannot be executed"), ev, name, []int{a.calls[calls[0]].answer},
			"The agent's edit made the executable file %s not executable.", name)
	}
}

// touched returns the agent's first request to write a file, and the Seq of the first permission request about the
// calls that write this file. asked is 0 if one of the calls had no permission request.
func (a *wanted) touched(name string, calls []int) (written writing, asked int) {
	for _, w := range a.byEditor {
		if written.seq == 0 && path.Clean(w.path) == a.root+name {
			written = w
		}
	}
	for _, i := range calls {
		seq := a.asked[a.tools[i].id]
		if seq == 0 {
			return written, 0
		}
		if asked == 0 || seq < asked {
			asked = seq
		}
	}
	return written, asked
}

// refused returns the Seq of the user's last refusal if the user has rejected all the calls, else 0.
func (a *wanted) refused(calls []int) (seq int) {
	for _, i := range calls {
		k := a.tools[i]
		if k.denied == 0 || k.allowed > 0 || k.denial == failedAnswer {
			return 0
		}
		seq = k.denied
	}
	return seq
}

// outcome checks that a file has the content that the completed calls should give it.
func (x *effectWatch) outcome(ev *event, a *wanted, name string, calls []int, is content, changed bool) {
	want, because := x.files[name], []int{}
	if text, ok := a.open[a.root+name]; ok && text != want.text {
		want = content{is: unknown} // the agent may start from the editor's text
	}
	for _, i := range calls {
		c, k := a.calls[i], a.tools[i]
		switch {
		case k.denied > 0: // a denied call changes nothing
		case k.status == failed:
			x.judge("made", len(calls) == 1 && c.tool == "write_file" && changed && same(is, want.after(c)), ev, name,
				[]int{c.answer, k.seq},
				"Tool call %q was reported as failed, but its change to %s was made: %s.", k.id, name,
				orGone(is.is))
		case k.status != completed:
			return
		default:
			before := want
			want, because = want.after(c), append(because, c.answer, k.seq)
			if i == calls[0] { // an agent may make the diffs of all calls before it runs the first
				x.told(ev, a, name, i, before, want)
			}
		}
	}
	if len(because) == 0 || !want.known && (changed || want.is != "") {
		return
	}
	x.judge("unmade", !same(is, want), ev, name, because,
		"The calls that write %s were reported as completed; the file should be %s, but is: %s.%s", name,
		orGone(want.is), orGone(is.is), x.elsewhere(want, name))
}

// after returns the content that a file with content c should have after the call.
func (c content) after(call wish) content {
	text, isText := call.args["content"]
	switch call.tool {
	case "delete_file":
		return content{known: true}
	case "write_file":
		if !isText {
			return content{is: unknown}
		}
	case "edit_file":
		old := call.args["old"]
		if !c.known || old == "" || strings.Count(c.text, old) != 1 {
			return content{is: unknown}
		}
		text = strings.Replace(c.text, old, call.args["new"], 1)
	}
	return content{workspace.Sum([]byte(text)), text, true}
}

// same reports whether a file has the wanted content. It ignores white space: patch tools end each line with a newline,
// and other tools treat white space in their own way.
func same(is, want content) bool {
	return is.is == want.is || is.known && is.is != "" && want.is != "" && bare(is.text) == bare(want.text) ||
		workspace.Sum([]byte(want.text+"\n")) == is.is
}

// elsewhere returns a sentence that names another file with the wanted content. It returns "" if there is no such file.
func (x *effectWatch) elsewhere(want content, name string) string {
	for _, other := range slices.Sorted(maps.Keys(x.files)) {
		if other != name && want.text != "" && x.files[other].is == want.is {
			return fmt.Sprintf(" The expected content is in %s.", other)
		}
	}
	return ""
}

func orGone(is string) string { return pick(is == "", "not there", is) }
