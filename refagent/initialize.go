package refagent

import (
	"encoding/json"
	"slices"
	"strings"
)

func (a *agent) initialize(r *request, params json.RawMessage) *rpcError {
	var p struct {
		ProtocolVersion    json.RawMessage
		ClientCapabilities json.RawMessage
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	asked, err := offeredVersion(p.ProtocolVersion)
	if err != nil {
		return err
	}
	version, err := a.choose(asked, p.ProtocolVersion)
	if err != nil {
		return err
	}
	if version == version2 {
		return a.greetV2(r, asked, params)
	}
	client := clientCapabilities(p.ClientCapabilities)
	a.mu.Lock()
	a.initialized, a.version, a.client = true, version, client
	a.mu.Unlock()

	capabilities := a.advertised()
	methods := []any{}
	for _, id := range a.logins() {
		capabilities["auth"] = flags{"logout": flags{}}
		methods = append(methods, flags{"id": id, "name": "Reference login", "description": "Succeeds at once"})
	}
	a.conn.respond(r, struct {
		ProtocolVersion   int   `json:"protocolVersion"`
		AgentCapabilities flags `json:"agentCapabilities"`
		AuthMethods       []any `json:"authMethods"`
		AgentInfo         any   `json:"agentInfo"`
	}{version, capabilities, methods, struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}{"acp-test-refagent", "acp-test reference agent", Version}}, nil)
	return nil
}

type flags map[string]any

// advertised is what the agent says of itself.
func (a *agent) advertised() flags {
	all := flags{
		"loadSession": !a.habits.lacks("load"),
		"promptCapabilities": flags{"image": !a.habits.lacks("image"), "audio": !a.habits.lacks("audio"),
			"embeddedContext": !a.habits.lacks("embedded")},
		"mcpCapabilities": flags{"http": !a.habits.lacks("http"), "sse": false},
	}
	sessions := flags{}
	for name, capability := range map[string]string{
		"list": "list", "delete": "delete", "resume": "resume", "close": "close", "additionalDirectories": "directories",
	} {
		if !a.habits.lacks(capability) {
			sessions[name] = flags{}
		}
	}
	if a.forks() {
		sessions["fork"] = flags{}
	}
	all["sessionCapabilities"] = sessions
	if a.habits.Unadvertised {
		all.prune()
	}
	return all
}

// prune leaves out what says no.
func (f flags) prune() {
	for key, v := range f {
		inner, nested := v.(flags)
		if nested {
			inner.prune()
		}
		if v == false || nested && len(inner) == 0 && strings.HasSuffix(key, "Capabilities") {
			delete(f, key)
		}
	}
}

// clientCapabilities reads what the agent needs to know. Anything absent, null
// or of another type counts as not supported.
func clientCapabilities(raw json.RawMessage) ClientCapabilities {
	var all map[string]any
	_ = json.Unmarshal(raw, &all) // malformed means nothing is supported
	at := func(path ...string) any {
		var v any = all
		for _, key := range path {
			m, _ := v.(map[string]any)
			v = m[key]
		}
		return v
	}
	_, form := at("elicitation", "form").(map[string]any)
	_, url := at("elicitation", "url").(map[string]any)
	_, subagents := at("subagents").(map[string]any)
	_, booleans := at("session", "configOptions", "boolean").(map[string]any)
	return ClientCapabilities{
		ReadTextFile:   at("fs", "readTextFile") == true,
		WriteTextFile:  at("fs", "writeTextFile") == true,
		Terminal:       at("terminal") == true,
		BooleanOptions: booleans,
		ElicitForm:     form,
		ElicitURL:      url,
		Subagents:      subagents,
	}
}

// authMethod is the id of the one method that EnvAuth enables.
const authMethod = "agent"

// loginFirst reports whether sessions wait for a login.
func (a *agent) loginFirst() bool {
	return a.options.Getenv(EnvAuth) == authMethod || a.habits.LoginFirst
}

// logins are the ids of the authentication methods.
func (a *agent) logins() []string {
	if len(a.habits.Logins) == 0 && a.options.Getenv(EnvAuth) == authMethod {
		return []string{authMethod}
	}
	return a.habits.Logins
}

func (a *agent) authenticate(r *request, params json.RawMessage) *rpcError {
	var p struct{ MethodID string }
	err := decodeParams(params, &p)
	if err == nil && !slices.Contains(a.logins(), p.MethodID) {
		err = badParams("unknown authentication method %q", p.MethodID)
	}
	if err == nil {
		a.setAuthenticated(true)
	}
	a.conn.respond(r, nil, err)
	return nil
}

func (a *agent) logout(r *request, _ json.RawMessage) *rpcError {
	a.setAuthenticated(false)
	a.conn.respond(r, nil, nil)
	return nil
}

func (a *agent) setAuthenticated(ok bool) {
	a.mu.Lock()
	a.authenticated = ok
	a.mu.Unlock()
}
