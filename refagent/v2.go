package refagent

import (
	"encoding/json"
	"slices"
	"strconv"
)

// The agent uses version 2 of the protocol on a connection whose initialize requests it. This file converts messages
// to the form of version 2. The differences in behaviour are in v2turn.go and v2work.go.

// The states of a session in version 2.
const (
	stateIdle    = "idle"
	stateRunning = "running"
	stateWaiting = "requires_action"
	stopError    = "error"
	planID       = "plan"
	codeBadOffer = -32022 // no supported version at or below the requested one
	version2     = 2
)

// v2 reports whether the connection uses version 2.
func (a *agent) v2() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version == version2
}

// choose returns the protocol version for the initialize result: the highest supported version that is not above the
// requested one. It returns an error if there is none.
func (a *agent) choose(asked int, raw json.RawMessage) (int, *rpcError) {
	lowest, highest := 1, 2
	if only := a.habits.Version; only != 0 {
		lowest, highest = only, only
	}
	a.mu.Lock()
	before, used := a.version, a.used
	a.mu.Unlock()
	switch chosen := min(asked, highest); {
	case chosen < lowest:
		var supported []int
		for v := lowest; v <= highest; v++ {
			supported = append(supported, v)
		}
		err := fault(codeBadOffer, "this agent supports no version at or below %s", raw)
		err.Data = object{"requested": asked, "supported": supported}
		return 0, err
	case before == version2 && used:
		return 0, fault(codeInvalidRequest, "initialize must come before any other request")
	case before == version2 && chosen < before:
		return 0, fault(codeInvalidRequest, "the connection speaks version 2 and cannot go back to an older one")
	default:
		return chosen, nil
	}
}

// greetV2 handles initialize in version 2.
func (a *agent) greetV2(r *request, asked int, params json.RawMessage) *rpcError {
	var p struct {
		Info         *struct{ Name, Version *string }
		Capabilities json.RawMessage
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if asked == version2 && (p.Info == nil || p.Info.Name == nil || p.Info.Version == nil) {
		return badParams("info with name and version is missing")
	}
	client := clientCapabilities(p.Capabilities)
	client = ClientCapabilities{ElicitForm: client.ElicitForm, ElicitURL: client.ElicitURL, BooleanOptions: true}
	a.begun(version2, client)
	session := a.able("delete", "additionalDirectories:directories")
	session["prompt"], session["mcp"] = a.able("image", "audio", "embeddedContext:embedded"), a.able("stdio", "http")
	capabilities := object{"session": session}
	a.extend(capabilities, session)
	methods := []any{}
	for _, id := range a.logins() {
		methods = append(methods, object{"type": "agent", "methodId": id, "name": "Reference login",
			"description": "Succeeds at once"})
	}
	a.conn.respond(r, object{"protocolVersion": version2, "capabilities": capabilities,
		"authMethods": methods, "info": agentInfo()}, nil)
	return nil
}

func commandsInV2() (list []any) {
	for _, c := range commands {
		list = append(list, object{"type": "command", "name": c.Name, "description": c.Description})
	}
	return list
}

// shownOptions returns the session's options in the form of the connection's protocol version.
func (s *session) shownOptions() any {
	list := s.options()
	if !s.a.v2() {
		return list
	}
	all := []object{}
	for _, o := range list {
		m := asObject(o)
		rename(m, "id", "configId")
		if o.Description == "" {
			delete(m, "description")
		}
		if _, grouped := o.Options.([]configGroup); grouped {
			for _, group := range m["options"].([]any) {
				rename(group.(object), "group", "groupId")
			}
		}
		all = append(all, m)
	}
	return all
}

func rename(o object, from, to string) {
	o[to] = o[from]
	delete(o, from)
}

// shown returns an update in the form of version 2, or nil if version 2 has no such update.
func (s *session) shown(u update) object {
	m := asObject(u)
	switch u.Tag {
	case "current_mode_update":
		return nil
	case "config_option_update":
		m["configOptions"] = s.shownOptions()
	case "available_commands_update":
		m["availableCommands"] = commandsInV2()
	case "plan":
		return object{"sessionUpdate": "plan_update",
			"plan": object{"type": "items", "planId": planID, "entries": u.Entries}}
	case "tool_call", "tool_call_update":
		m["sessionUpdate"] = "tool_call_update"
		s.callInV2(m)
	}
	return m
}

// callInV2 converts a tool call from version 1 to version 2. Diffs become lists of changes, and a call that can be
// cancelled gets a capability.
func (s *session) callInV2(m object) {
	if list, ok := m["content"].([]any); ok {
		for i, item := range list {
			d, _ := item.(object)
			if d["type"] != "diff" {
				continue
			}
			operation := "modify"
			if d["oldText"] == nil {
				operation = "add"
			}
			list[i] = object{"type": "diff", "changes": []any{
				object{"operation": operation, "path": d["path"], "fileType": "text"}}}
		}
	}
	switch m["status"] {
	case statusInProgress:
		m["capabilities"] = object{"cancel": object{}}
	case statusCompleted, statusFailed, statusCancelled:
		m["capabilities"] = nil
	}
}

// asObject returns a value as a decoded JSON object.
func asObject(v any) object {
	var m object
	if err := json.Unmarshal(encode(v), &m); err != nil {
		panic("refagent: decoding an own message: " + err.Error())
	}
	return m
}

// knownServers returns an error for MCP servers that version 2 or the agent does not allow.
func (a *agent) knownServers(servers []json.RawMessage) *rpcError {
	var names []string
	for i, raw := range servers {
		var e mcpServer
		if err := json.Unmarshal(raw, &e); err != nil {
			return badParams("mcpServers[%d] is malformed: %s", i, plain(err))
		}
		if e.Type != "stdio" && e.Type != "http" || a.habits.lacks(e.Type) {
			return badParams("mcpServers[%d]: transport %q is not supported", i, e.Type)
		}
		if slices.Contains(names, e.Name) {
			return badParams("mcpServers[%d]: two servers have the name %q", i, e.Name)
		}
		names = append(names, e.Name)
	}
	return nil
}

// offeredVersion returns the protocol version in an initialize request.
func offeredVersion(raw json.RawMessage) (int, *rpcError) {
	n, err := strconv.ParseUint(string(raw), 10, 16)
	if err != nil {
		return 0, badParams("protocolVersion has to be an integer from 0 to 65535")
	}
	return int(n), nil
}
