package refagent

import (
	"cmp"
	"encoding/json"
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
	a.begun(version, client)
	capabilities := a.advertised()
	methods := []any{}
	for _, id := range a.logins() {
		capabilities["auth"] = object{"logout": object{}}
		methods = append(methods, object{"id": id, "name": "Reference login", "description": "Succeeds at once"})
	}
	if client.TerminalLogin && a.options.Getenv(EnvAuth) == terminalMethod {
		methods = append(methods, object{"type": "terminal", "id": terminalMethod, "name": "Reference login by a key",
			"args": []string{"--login"}})
	}
	a.conn.respond(r, object{"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": methods,
		"agentInfo": agentInfo()}, nil)
	return nil
}

// begun records the result of initialize: the protocol version and the editor's capabilities.
func (a *agent) begun(version int, client ClientCapabilities) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.initialized, a.version, a.client = true, version, client
}

// agentInfo returns the agent's name and version, in the form that both protocol versions use.
func agentInfo() object {
	return object{"name": "acp-test-refagent", "title": "acp-test reference agent", "version": Version}
}

// able returns an object that has a member {} for each of the capabilities that the agent has. A capability is
// written as its name in the protocol. If its name in Habits.Without differs, that name follows after a colon.
func (a *agent) able(capabilities ...string) object {
	all := object{}
	for _, c := range capabilities {
		name, habit, _ := strings.Cut(c, ":")
		if !a.habits.lacks(cmp.Or(habit, name)) {
			all[name] = object{}
		}
	}
	return all
}

// advertised returns the agent's capabilities for the initialize result.
func (a *agent) advertised() object {
	all := object{
		"loadSession": !a.habits.lacks("load"),
		"promptCapabilities": object{"image": !a.habits.lacks("image"), "audio": !a.habits.lacks("audio"),
			"embeddedContext": !a.habits.lacks("embedded")},
		"mcpCapabilities": object{"http": !a.habits.lacks("http"), "sse": !a.habits.lacks("sse")},
	}
	sessions := a.able("list", "delete", "resume", "close", "additionalDirectories:directories")
	all["sessionCapabilities"] = sessions
	a.extend(all, sessions)
	if a.habits.Unadvertised {
		prune(all)
	}
	return all
}

// extend adds the capabilities that both protocol versions have: those of the agent to all, those of sessions to
// sessions.
func (a *agent) extend(all, sessions object) {
	if a.forks() {
		sessions["fork"] = object{}
	}
	if a.provides() {
		all["providers"] = object{}
	}
	if !a.habits.lacks("systemPrompt") {
		sessions["systemPrompt"] = object{"mode": object{"override": object{}}}
	}
}

// prune removes capabilities that are false or empty objects.
func prune(o object) {
	for key, v := range o {
		inner, nested := v.(object)
		prune(inner)
		if v == false || nested && len(inner) == 0 && strings.HasSuffix(key, "Capabilities") {
			delete(o, key)
		}
	}
}

// clientCapabilities reads the editor's capabilities. A member that is missing, null or of another type counts as not
// supported.
func clientCapabilities(raw json.RawMessage) ClientCapabilities {
	var all object
	_ = json.Unmarshal(raw, &all) // invalid JSON means that nothing is supported
	at := func(path ...string) any {
		var v any = all
		for _, key := range path {
			m, _ := v.(object)
			v = m[key]
		}
		return v
	}
	has := func(path ...string) bool { _, ok := at(path...).(object); return ok }
	return ClientCapabilities{
		ReadTextFile:   at("fs", "readTextFile") == true,
		WriteTextFile:  at("fs", "writeTextFile") == true,
		Terminal:       at("terminal") == true,
		BooleanOptions: has("session", "configOptions", "boolean"),
		ElicitForm:     has("elicitation", "form"),
		ElicitURL:      has("elicitation", "url"),
		Subagents:      has("subagents"),
		Notices:        has("session", "notices"),
		Compaction:     has("session", "compaction"),
		TerminalLogin:  at("auth", "terminal") == true,
	}
}
