package invariants

import (
	"slices"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// isSet reports whether a value exists and is not null.
func isSet(v wire.Value) bool { return v.Exists() && !v.IsNull() }

// readAuthMethods returns the login methods by id. The value is true for a method that needs a terminal.
func readAuthMethods(v wire.Value, idMember string) map[string]bool {
	methods := map[string]bool{}
	for m := range v.Items() {
		if id := m.Get(idMember); id.Kind() == wire.String {
			methods[id.Str()] = m.Get("type").Is("terminal")
		}
	}
	return methods
}

// readRoots returns the additional directories of a session request.
func readRoots(params wire.Value) (roots []string) {
	return lists.Collect(params.Get("additionalDirectories").Items(), wire.Value.Str)
}

// modeState has a session's available modes and its current mode, as last reported.
type modeState struct {
	current   string
	available []string
}

func (m *modeState) has(id string) bool {
	return slices.Contains(m.available, id)
}

func readModes(v wire.Value) *modeState {
	if v.Kind() != wire.Object {
		return nil
	}
	m := &modeState{current: v.Get("currentModeId").Str()}
	for mode := range v.Get("availableModes").Items() {
		m.available = append(m.available, mode.Get("id").Str())
	}
	return m
}

// option is a config option of a session with its last known value.
type option struct {
	id, category, current string
	boolean, selects      bool
	values                []string // values of a select, with groups flattened
}

func (o option) has(value string) bool {
	return slices.Contains(o.values, value)
}

// readOptions returns the configOptions of a result or an update; ok is false if there is no such list. idMember
// names the member with an option's id.
func readOptions(from wire.Value, idMember string) (options []option, ok bool) {
	list := from.Get("configOptions")
	if list.Kind() != wire.Array {
		return nil, false
	}
	for item := range list.Items() {
		o := option{
			id:       item.Get(idMember).Str(),
			category: item.Get("category").Str(),
			current:  item.Get("currentValue").Text(),
			boolean:  item.Get("type").Is("boolean"),
			selects:  item.Get("type").Is("select"),
		}
		for v := range item.Get("options").Items() {
			if inner := v.Get("options"); inner.Kind() == wire.Array {
				for g := range inner.Items() {
					o.values = append(o.values, g.Get("value").Str())
				}
				continue
			}
			o.values = append(o.values, v.Get("value").Str())
		}
		options = append(options, o)
	}
	return options, true
}

func findOption(options []option, id string) *option {
	for i := range options {
		if options[i].id == id {
			return &options[i]
		}
	}
	return nil
}

// modeOption returns the config option of category mode. It returns nil if there is no such option or more than one.
func modeOption(options []option) *option {
	var found *option
	for i := range options {
		if options[i].category == "mode" && options[i].selects {
			if found != nil {
				return nil
			}
			found = &options[i]
		}
	}
	return found
}
