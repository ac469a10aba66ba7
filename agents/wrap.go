package agents

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/wire"
)

// Wrapper edits an editor's settings so that a program runs between the editor and its agents, and undoes these
// edits. Only the command and the arguments of an entry change.
type Wrapper struct {
	// Words are the command line of the wrapping program. The agent's command follows it.
	Words []string
	// Ours returns the number of leading words of a command line that belong to a
	// wrapper.
	Ours func(argv []string) int
	// Agent names the only entry to change; "" means all entries.
	Agent string
}

// entry is a member of agent_servers that names a command.
type entry struct {
	name          string
	command, args wire.Value
	argv          []string
	ours          int
}

// edit replaces the bytes of a text from offset from up to, but not including, offset to.
type edit struct {
	from, to int
	text     string
}

// Wrap returns the settings with the wrapper inserted before the command of each selected entry. changed names the
// entries that it changed. already names the entries that had the wrapper before. name is the file name that messages
// show. Wrap also returns an error if Unwrap would not restore src byte for byte.
func (w Wrapper) Wrap(name string, src []byte) (out []byte, changed, already []string, err error) {
	defer mistake.Catch(&err)
	list := w.entries(name, src)
	var edits []edit
	for _, e := range list {
		if e.ours > 0 {
			already = append(already, e.name)
			continue
		}
		changed, edits = append(changed, e.name), append(edits, w.wrap(e)...)
	}
	if len(changed) == 0 {
		return src, nil, already, nil
	}
	out = edited(src, edits)
	undone, _, err := Wrapper{Ours: w.Ours}.unwrap(name, out, changed)
	if err == nil && !bytes.Equal(undone, src) {
		err = fmt.Errorf("%s: acp-test could not undo the change byte for byte, so it changes nothing", name)
	}
	return out, changed, already, err
}

// Unwrap returns the settings without the wrapper, and the names of the entries from which it was removed. Bytes that
// Wrap did not write stay as they are.
func (w Wrapper) Unwrap(name string, src []byte) (out []byte, changed []string, err error) {
	return w.unwrap(name, src, nil)
}

// unwrap does the work of Unwrap, but only for the named entries; nil means all entries.
func (w Wrapper) unwrap(name string, src []byte, only []string) (out []byte, changed []string, err error) {
	defer mistake.Catch(&err)
	list := w.entries(name, src)
	var edits []edit
	for _, e := range list {
		if e.ours == 0 || only != nil && !slices.Contains(only, e.name) {
			continue
		}
		changed, edits = append(changed, e.name), append(edits, e.unwrap(src)...)
	}
	out = edited(src, edits)
	readSettings(name, out) // panics if out cannot be parsed
	return out, changed, nil
}

// entries returns the entries of agent_servers that Agent selects and that have a
// command.
func (w Wrapper) entries(name string, src []byte) (list []entry) {
	s, doc := readSettings(name, src)
	if s.before > 0 {
		s.fail(doc, "this is only a part of the settings: name the file with agent_servers")
	}
	for key, v := range s.object(doc.Get("agent_servers"), "agent_servers") {
		if w.Agent != "" && w.Agent != key {
			continue
		}
		argv, _ := s.program(v, "agent_servers."+key)
		if argv[0] == "" {
			continue
		}
		holder := v
		if inner := v.Get("command"); inner.Kind() == wire.Object {
			holder = inner
		}
		e := entry{name: key, argv: argv, args: holder.Get("args"), command: holder.Get("command")}
		if e.command.Str() == "" {
			e.command = holder.Get("path")
		}
		if e.args.IsNull() {
			s.fail(v, "agent_servers.%s: args must be a list, not null", key)
		}
		if e.ours = w.Ours(argv); e.ours > e.args.Len() {
			e.ours = 0
		}
		list = append(list, e)
	}
	return list
}

// wrap puts the words before a command. An entry without args gets the member args right after its command. In an
// empty args list, a space follows the inserted words, so that unwrap can tell this list from an inserted member.
func (w Wrapper) wrap(e entry) []edit {
	words := lists.Map(w.Words, wire.Quote)
	front := strings.Join(append(words[1:len(words):len(words)], string(e.command.Raw())), ", ")
	end := e.command.Offset() + len(e.command.Raw())
	edits := []edit{{e.command.Offset(), end, words[0]}}
	switch first := e.args.Path("0"); {
	case !e.args.Exists():
		return append(edits, edit{end, end, `, "args": [` + front + `]`})
	case !first.Exists():
		return append(edits, edit{e.args.Offset() + 1, e.args.Offset() + 1, front + " "})
	default:
		return append(edits, edit{first.Offset(), first.Offset(), front + ", "})
	}
}

// blank matches space and comments between JSON values.
var blank = lazy.Regexp(`^(?:\s|//[^\n]*\n|/\*(?s:.*?)\*/)*`)

var argsOurs = lazy.Regexp(`^\s*,\s*"args"\s*:\s*$`)

// unwrap removes the bytes that wrap wrote.
func (e entry) unwrap(src []byte) []edit {
	command := e.args.Path(fmt.Sprint(e.ours - 1))
	first, end := e.args.Path("0").Offset(), command.Offset()+len(command.Raw())
	before, list := e.command.Offset()+len(e.command.Raw()), e.args.Offset()
	edits := []edit{{e.command.Offset(), before, string(command.Raw())}}
	if e.args.Len() == e.ours && src[end] == ']' && before < list && argsOurs().Match(src[before:list]) {
		return append(edits, edit{before, end + 1, ""})
	}
	edits = append(edits, edit{first, end, ""})
	next := end + len(blank().Find(src[end:]))
	switch {
	case src[next] == ',' && src[next+1] == ' ':
		return append(edits, edit{next, next + 2, ""})
	case src[next] == ',':
		return append(edits, edit{next, next + 1, ""})
	case src[end] == ' ':
		return append(edits, edit{end, end + 1, ""})
	}
	return edits
}

// edited applies edits, which must not overlap.
func edited(src []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, src[at:]...)
}
