package invariants

import (
	"github.com/acp-test/acp-test/wire"
	"slices"
)

// clientCaps is what the editor said it can do. Absent, null and false all
// mean no.
type clientCaps struct {
	read, write, terminal, boolean, form, url, authTerminal, plan, compaction bool
}

func readClientCaps(v wire.Value) clientCaps {
	session, elicitation := v.Get("session"), v.Get("elicitation")
	return clientCaps{
		read:         isTrue(v.Get("fs").Get("readTextFile")),
		write:        isTrue(v.Get("fs").Get("writeTextFile")),
		terminal:     isTrue(v.Get("terminal")),
		boolean:      given(session.Get("configOptions").Get("boolean")),
		form:         given(elicitation.Get("form")),
		url:          given(elicitation.Get("url")),
		authTerminal: isTrue(v.Get("auth").Get("terminal")),
		plan:         given(v.Get("plan")),
		compaction:   given(session.Get("compaction")),
	}
}

// agentCaps is what the agent said it can do.
type agentCaps struct {
	load, image, audio, embedded, http, sse      bool
	list, remove, dirs, resume, close, fork, out bool
}

func readAgentCaps(v wire.Value) agentCaps {
	prompts, mcp, sessions := v.Get("promptCapabilities"), v.Get("mcpCapabilities"), v.Get("sessionCapabilities")
	return agentCaps{
		load:     isTrue(v.Get("loadSession")),
		image:    isTrue(prompts.Get("image")),
		audio:    isTrue(prompts.Get("audio")),
		embedded: isTrue(prompts.Get("embeddedContext")),
		http:     isTrue(mcp.Get("http")),
		sse:      isTrue(mcp.Get("sse")),
		list:     given(sessions.Get("list")),
		remove:   given(sessions.Get("delete")),
		dirs:     given(sessions.Get("additionalDirectories")),
		resume:   given(sessions.Get("resume")),
		close:    given(sessions.Get("close")),
		fork:     given(sessions.Get("fork")),
		out:      given(v.Get("auth").Get("logout")),
	}
}

// isTrue is for capabilities that are booleans, given for those that are
// marker objects.
func isTrue(v wire.Value) bool {
	b, ok := v.Bool()
	return ok && b
}

func given(v wire.Value) bool {
	if b, ok := v.Bool(); ok {
		return b // not the shape asked for, but the meaning is plain
	}
	return v.Exists() && !v.IsNull()
}

// readAuthMethods maps the ids of auth methods to whether they need a
// terminal.
func readAuthMethods(v wire.Value) map[string]bool {
	methods := map[string]bool{}
	for m := range v.Items() {
		if id := m.Get("id"); id.Kind() == wire.String {
			methods[id.Str()] = m.Get("type").Is("terminal")
		}
	}
	return methods
}

// readRoots joins the additional directories of a session request, and
// splitRoots takes them apart.
func readRoots(params wire.Value) (roots []string) {
	for dir := range params.Get("additionalDirectories").Items() {
		roots = append(roots, dir.Str())
	}
	return roots
}

// modeState is the modes of a session as last known.
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

// option is one config option of a session as last known.
type option struct {
	id, category, current string
	boolean, selects      bool
	values                []string // of a select, groups flattened
}

func (o option) has(value string) bool {
	return slices.Contains(o.values, value)
}

// readOptions reads the configOptions of a result or an update; ok is false if
// there is no list.
func readOptions(from wire.Value) (options []option, ok bool) {
	list := from.Get("configOptions")
	if list.Kind() != wire.Array {
		return nil, false
	}
	for item := range list.Items() {
		o := option{
			id:       item.Get("id").Str(),
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

// modeOption is the option that shows the mode, if there is exactly one.
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
