package refagent

import (
	"encoding/json"
	"strconv"
)

// protocolVersion is the only version the agent speaks; any other offer is
// answered with it, as the negotiation asks.
const protocolVersion = 1

func (a *agent) initialize(r *request, params json.RawMessage) *rpcError {
	var p struct {
		ProtocolVersion    json.RawMessage
		ClientCapabilities json.RawMessage
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if _, err := strconv.ParseUint(string(p.ProtocolVersion), 10, 16); err != nil {
		return badParams("protocolVersion has to be an integer from 0 to 65535")
	}
	client := clientCapabilities(p.ClientCapabilities)
	if a.hooks.Client != nil {
		a.hooks.Client(&client)
	}
	a.mu.Lock()
	a.initialized = true
	a.client = client
	a.mu.Unlock()

	type flags map[string]any
	capabilities := flags{
		"loadSession":        true,
		"promptCapabilities": flags{"image": true, "audio": true, "embeddedContext": true},
		"mcpCapabilities":    flags{"http": true, "sse": false},
		"sessionCapabilities": flags{
			"list": flags{}, "delete": flags{}, "resume": flags{}, "close": flags{}, "additionalDirectories": flags{},
		},
	}
	methods := []any{}
	if a.authEnabled() {
		capabilities["auth"] = flags{"logout": flags{}}
		methods = append(methods, flags{"id": authMethod, "name": "Reference login", "description": "Succeeds at once"})
	}
	a.conn.respond(r, struct {
		ProtocolVersion   int   `json:"protocolVersion"`
		AgentCapabilities flags `json:"agentCapabilities"`
		AuthMethods       []any `json:"authMethods"`
		AgentInfo         any   `json:"agentInfo"`
	}{protocolVersion, capabilities, methods, struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}{"acp-test-refagent", "acp-test reference agent", Version}}, nil)
	return nil
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
	_, booleans := at("session", "configOptions", "boolean").(map[string]any)
	return ClientCapabilities{
		ReadTextFile:   at("fs", "readTextFile") == true,
		WriteTextFile:  at("fs", "writeTextFile") == true,
		Terminal:       at("terminal") == true,
		BooleanOptions: booleans,
		ElicitForm:     form,
		ElicitURL:      url,
	}
}

// authMethod is the id of the one method that EnvAuth enables.
const authMethod = "agent"

func (a *agent) authEnabled() bool { return a.options.Getenv(EnvAuth) == authMethod }

func (a *agent) authenticate(r *request, params json.RawMessage) *rpcError {
	var p struct{ MethodID string }
	err := decodeParams(params, &p)
	if err == nil && p.MethodID != authMethod {
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
