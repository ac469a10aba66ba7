package invariants

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/agui/fold"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// wellFormed returns an error if a JSON Patch is malformed. It does not look at the document to patch.
func wellFormed(patch wire.Value) error {
	if patch.Kind() != wire.Array {
		return errors.New("it is not a list of operations")
	}
	for op := range patch.Items() {
		path := op.Get("path")
		switch name := op.Get("op").Str(); {
		case path.Kind() != wire.String || name == "":
			return errors.New("an operation lacks op or path")
		case path.Str() != "" && !strings.HasPrefix(path.Str(), "/"):
			return errors.New("the path " + path.Str() + " is not a JSON pointer, which begins with /")
		case badEscapes().MatchString(path.Str()):
			return errors.New("the path " + path.Str() + " has a ~ that is neither ~0 nor ~1")
		case (name == "add" || name == "replace" || name == "test") && !op.Get("value").Exists():
			return errors.New(name + " lacks a value")
		case (name == "move" || name == "copy") && op.Get("from").Kind() != wire.String:
			return errors.New(name + " lacks from")
		}
	}
	return nil
}

// badEscapes matches a ~ in a JSON pointer that is neither ~0 nor ~1.
var badEscapes = lazy.Regexp(`~([^01]|$)`)

// statePatch checks the events that change the state.
func statePatch(w *watch) {
	w.On(func(ev *event) {
		w.Saw("form", "applies", "missing")
		delta := ev.v.Get("delta")
		if err := wellFormed(delta); err != nil {
			w.find("form", ev, "", nil, "The delta is not a JSON Patch: %v.", err)
			return
		}
		if _, err := fold.Patched(ev.state, delta.Raw()); errors.Is(err, jsonpatch.ErrMissing) {
			w.find("missing", ev, "", nil, "The delta names a path that the state lacks, so the client's state "+
				"silently differs: %v.", err)
		} else if err != nil {
			w.find("applies", ev, "", nil, "The delta does not apply to the state: %v.", err)
		}
	}, "STATE_DELTA")
}

// activityPatch checks the events of activities.
func activityPatch(w *watch) {
	w.On(func(ev *event) {
		w.Saw("no-snapshot", "applies", "object")
		content, patch := ev.widgets[ev.id], ev.v.Get("patch")
		if content == nil {
			if !ev.inputMessage(ev.id).Exists() {
				w.find("no-snapshot", ev, ev.id, nil,
					"ACTIVITY_DELTA is for %q, which had no ACTIVITY_SNAPSHOT.", ev.id)
			}
			return
		}
		err := wellFormed(patch)
		var next []byte
		if err == nil {
			next, err = fold.Patched(content, patch.Raw())
		}
		switch {
		case err != nil:
			w.find("applies", ev, ev.id, nil, "The patch of activity %q does not apply: %v.", ev.id, err)
		case !isObject(next):
			w.find("object", ev, ev.id, nil,
				"The patch makes the content of activity %q something other than an object.", ev.id)
		}
	}, "ACTIVITY_DELTA")
}

// sameArguments checks a tool call in a snapshot: its arguments must be those that the stream had.
func (w *watch) sameArguments(ev *event, call wire.Value) {
	id, args := call.Get("id").Str(), call.Path("function.arguments").Str()
	if i := ev.items[key{tool, id}]; i != nil && !i.open && !sameJSON(args, i.text.String()) {
		w.find("differs", ev, id, i.begun(),
			"The snapshot has the arguments %q of tool call %q, but the stream had %q.", args, id, i.text.String())
	}
}

// sameJSON reports whether two texts are equal, or equal as JSON except for white space.
func sameJSON(a, b string) bool {
	x, y := new(bytes.Buffer), new(bytes.Buffer)
	if json.Compact(x, []byte(a)) != nil || json.Compact(y, []byte(b)) != nil {
		return a == b
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

func isObject(raw []byte) bool {
	v, err := wire.Parse(raw)
	return err == nil && v.Kind() == wire.Object
}

// shot has facts about one snapshot of the messages.
type shot struct {
	ids             rules.Seen
	calls, answered map[string]bool // ids of the tool calls; ids of the tool calls that have a result
	said            []string        // texts of assistant messages that the stream did not have under the same id
}

// messagesWhole checks the messages in snapshots.
func messagesWhole(w *watch) {
	w.On(func(ev *event) {
		w.Saw("lost", "differs", "hollow", "orphan", "twice", "renamed")
		x := &shot{ids: rules.Seen{}, calls: map[string]bool{}, answered: map[string]bool{}}
		for m := range ev.v.Get("messages").Items() {
			w.message(ev, x, m)
		}
		w.keepsMessages(ev, x)
	}, "MESSAGES_SNAPSHOT")
}

// message checks one message of a snapshot. A message whose id the client has posted is accepted.
func (w *watch) message(ev *event, x *shot, m wire.Value) {
	id, role, content, of := m.Get("id").Str(), m.Get("role").Str(), m.Get("content"), m.Get("toolCallId").Str()
	if x.ids.Again(id) {
		w.find("twice", ev, id, nil, "Two messages of the snapshot have the id %q.", id)
	}
	for c := range m.Get("toolCalls").Items() {
		x.calls[c.Get("id").Str()] = true
		w.sameArguments(ev, c)
	}
	x.answered[of] = true
	i := ev.items[key{text, id}]
	if i != nil && !i.open && content.Kind() == wire.String && content.Str() != i.text.String() {
		w.find("differs", ev, id, i.begun(),
			"The snapshot has the text %q as message %q, but the stream had %q.", content.Str(), id, i.text.String())
	}
	if ev.inputMessage(id).Exists() {
		return
	}
	switch role {
	case "tool":
		if !x.calls[of] {
			w.find("orphan", ev, id, nil, "The tool message %q answers call %q, which no earlier message has.", id, of)
		}
	case "assistant":
		if i == nil || i.text.String() != content.Str() {
			x.said = append(x.said, content.Str())
		}
		if m.Get("toolCalls").Len() == 0 && content.Str() == "" && i == nil {
			w.find("hollow", ev, id, nil, "The message %q of the snapshot is empty and was not streamed.", id)
		}
	case "user", "system", "developer":
		w.judge("invented", i == nil, ev, id, nil, "The snapshot's message %q of role %s was neither posted nor "+
			"streamed.", id, role)
	}
}

// keepsMessages checks that a snapshot has the user's posted messages, and everything that the run has streamed so
// far.
func (w *watch) keepsMessages(ev *event, x *shot) {
	for m := range ev.input.Get("messages").Items() {
		if id := m.Get("id").Str(); m.Get("role").Is("user") && !x.ids[id] {
			w.find("lost", ev, id, []int{ev.ref},
				"The snapshot lacks the user's message %q, so the client drops that message.", id)
		}
	}
	for id, at := range ev.results {
		call := ev.items[key{tool, id}]
		w.judge("lost", call != nil && !ev.hasFrontTool(call.name) && !x.answered[id], ev, id, []int{at},
			"The snapshot lacks the streamed result of tool call %q: the client drops the result.", id)
	}
	for k, i := range ev.items {
		words := i.text.String()
		if k.family != text || i.open || i.owner != "" || words == "" || x.ids[k.id] {
			continue
		}
		if slices.ContainsFunc(x.said, func(text string) bool { return strings.Contains(text, words) }) {
			w.find("renamed", ev, k.id, i.begun(),
				"The text of the streamed message %q has another id in the snapshot.", k.id)
		} else {
			w.find("lost", ev, k.id, i.begun(),
				"The snapshot lacks the streamed message %q: the client drops its text %q.",
				k.id, wire.Clip(words, 120))
		}
	}
}
