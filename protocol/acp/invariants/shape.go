package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// The points of shape, one for each subject that has requirements of its own.
const (
	shapeMessage = iota
	shapeStop
	shapeUpdate
	shapeContent
	shapeMessageID
	shapeTool
	shapeToolKind
	shapeToolStatus
	shapeToolContent
	shapePlan
	shapeUsage
	shapeCost
	shapeCommands
	shapeMode
	shapeOption
	shapeOptionList
	shapeInit
	shapeAgentInfo
	shapeCapability
	shapeAuth
	shapeSetup
	shapeList
	shapeInfo
	shapePermission
	shapeFile
	shapeTerminal
	shapeElicit
	shapeEmpty
	shapeStyle
)

// shapeSubject is one point of shape: what it says, its requirements, and the
// types of the schema it is about.
type shapeSubject struct{ id, says, requirements, types string }

func shapeSubjects() []shapeSubject {
	return []shapeSubject{
		shapeMessage: {"message", "a message does not have the shape of its method", "RPC-014", ""},
		shapeStop: {"stop-reason", "the response to a prompt has no stop reason of the five",
			"PROMPT-004 RPC-014", "PromptResponse StopReason"},
		shapeUpdate: {"update", "a session/update has no update of the right shape",
			"SESSION-025 RPC-014", "SessionNotification SessionUpdate SessionId"},
		shapeContent: {"content", "content is no content block",
			"CONTENT-001 CONTENT-003 MSG-001 RPC-014",
			"ContentChunk ContentBlock TextContent ImageContent AudioContent ResourceLink EmbeddedResource " +
				"EmbeddedResourceResource TextResourceContents BlobResourceContents Annotations Role"},
		shapeMessageID: {"message-id", "a messageId is no string", "MSG-003 RPC-014", ""},
		shapeTool: {"tool-call", "a tool call does not have its shape",
			"TOOL-002 TOOL-007 RPC-014", "ToolCall ToolCallUpdate ToolCallLocation ToolCallId"},
		shapeToolKind: {"tool-kind", "the kind of a tool call is none of the ten", "TOOL-004 RPC-014", "ToolKind"},
		shapeToolStatus: {"tool-status", "the status of a tool call is none of the four",
			"TOOL-005 CANCEL-012 RPC-014", "ToolCallStatus"},
		shapeToolContent: {"tool-content", "the content of a tool call is neither content nor diff nor terminal",
			"TOOL-013 RPC-014", "ToolCallContent Content Diff Terminal"},
		shapePlan: {"plan", "a plan does not have its shape",
			"PLAN-002 PLAN-003 RPC-014", "Plan PlanEntry PlanEntryPriority PlanEntryStatus"},
		shapeUsage: {"usage", "a usage update does not have its shape", "USAGE-001 RPC-014", "UsageUpdate"},
		shapeCost:  {"cost", "a cost lacks its amount or currency", "USAGE-002 RPC-014", "Cost"},
		shapeCommands: {"commands", "an available command does not have its shape",
			"CMD-001 RPC-014", "AvailableCommandsUpdate AvailableCommand AvailableCommandInput UnstructuredCommandInput"},
		shapeMode: {"mode", "a mode or mode update does not have its shape",
			"MODE-001 MODE-006 RPC-014", "CurrentModeUpdate SessionModeState SessionMode"},
		shapeOption: {"option", "a config option does not have its shape",
			"CONFIG-001 CONFIG-002 CONFIG-005 RPC-014",
			"SessionConfigOption SelectConfigOption BooleanConfigOption SessionConfigSelectOption " +
				"SessionConfigSelectOptions SessionConfigSelectGroup SessionConfigOptionCategory"},
		shapeOptionList: {"option-list", "the list of config options is missing",
			"CONFIG-007 CONFIG-009 RPC-014", "ConfigOptionUpdate SetSessionConfigOptionResponse"},
		shapeInit: {"initialize", "the result of initialize does not have its shape",
			"INIT-006 INIT-003 RPC-014", "InitializeResponse"},
		shapeAgentInfo: {"agent-info", "agentInfo does not have its shape", "INIT-014 RPC-014", "Implementation"},
		shapeCapability: {"capability", "a capability has the wrong JSON type",
			"INIT-017 RPC-014",
			"AgentCapabilities PromptCapabilities McpCapabilities SessionCapabilities AgentAuthCapabilities " +
				"SessionListCapabilities SessionDeleteCapabilities SessionAdditionalDirectoriesCapabilities " +
				"SessionResumeCapabilities SessionCloseCapabilities LogoutCapabilities"},
		shapeAuth: {"auth-method", "an auth method does not have its shape",
			"AUTH-001 AUTH-018 RPC-014", "AuthMethod AuthMethodAgent AuthMethodTerminal"},
		shapeSetup: {"session-result", "the result of a session request does not have its shape",
			"SESSION-003 RESUME-005 RPC-014", "NewSessionResponse LoadSessionResponse ResumeSessionResponse"},
		shapeList: {"list", "the result of session/list does not have its shape",
			"LIST-002 LIST-003 LIST-006 RPC-014", "ListSessionsResponse SessionInfo"},
		shapeInfo: {"session-info", "a session_info_update does not have its shape",
			"RPC-014 INFO-003", "SessionInfoUpdate"},
		shapePermission: {"permission", "a permission request does not have its shape",
			"PERM-002 PERM-003 RPC-014", "RequestPermissionRequest PermissionOption PermissionOptionKind"},
		shapeFile: {"file", "a file request does not have its shape",
			"FS-005 RPC-014", "ReadTextFileRequest WriteTextFileRequest"},
		shapeTerminal: {"terminal", "a terminal request does not have its shape",
			"TERM-002 RPC-014",
			"CreateTerminalRequest EnvVariable TerminalOutputRequest WaitForTerminalExitRequest " +
				"KillTerminalRequest ReleaseTerminalRequest"},
		shapeElicit: {"elicitation", "an elicitation does not have its shape",
			"ELICIT-005 ELICIT-004 ELICIT-007 ELICIT-003 ELICIT-006 RPC-014",
			"CreateElicitationRequest CompleteElicitationNotification ElicitationSchema ElicitationPropertySchema " +
				"ElicitationForm ElicitationFormInSession ElicitationFormInRequest ElicitationUrl " +
				"ElicitationUrlInSession ElicitationUrlInRequest ElicitationOther ElicitationOtherInSession " +
				"ElicitationOtherInRequest ElicitationId StringPropertySchema NumberPropertySchema " +
				"IntegerPropertySchema BooleanPropertySchema MultiSelectPropertySchema MultiSelectItems " +
				"StringMultiSelectItems TitledMultiSelectItems EnumOption StringFormat"},
		shapeEmpty: {"empty-result", "the result of a request that has none is no object",
			"MODE-005 CLOSE-004 DELETE-002 AUTH-006 AUTH-011 RPC-014",
			"SetSessionModeResponse CloseSessionResponse DeleteSessionResponse AuthenticateResponse " +
				"LogoutResponse"},
		shapeStyle: {"style", "something that the schema refuses but the pages show, or that strict readers stumble over",
			"LOAD-006 RPC-013", ""},
	}
}

// shape judges every message of the agent by the type its method has.
func shape(v *version) *rule {
	r := v.ofAgent("SHAPE", "Each message has the shape that the schema gives to its method.", 1, 2)
	if v.number == 2 {
		return shapeByMessage(r)
	}
	for _, s := range shapeSubjects() {
		r.Fail(s.id, s.says, strings.Fields(s.requirements)...)
	}
	r.Points[shapeStyle].Class = rules.Lint
	return r.Watching(func(w *watch) {
		w.shapes[rules.OfAgent] = true
		points, evidence, parts := shapePoints(), evidenceOfShape(), partsOfShape()
		w.On(func(ev *event) {
			w.Saw(shapeMessage)
			if about, ok := evidence[ev.topic]; ok && !ev.err.Exists() {
				w.Saw(about)
			}
			for _, part := range parts {
				if slices.Contains(part.of, ev.topic) && part.is(ev) {
					w.Saw(part.point)
				}
			}
			for _, p := range ev.problems {
				if p.Severity > schema.Lossy && p.Severity != schema.Style || notShape(ev, p) {
					continue
				}
				point, known := points[p.Type]
				switch {
				case p.Severity == schema.Style:
					point = shapeStyle
				case strings.HasSuffix(p.Path, ".messageId"):
					point = shapeMessageID
				case strings.HasSuffix(p.Path, "configOptions") && p.Type != "SessionConfigOption":
					point = shapeOptionList
				case !known:
					point = shapeMessage
				}
				f := w.problem(point, ev, p)
				if p.Severity != schema.Style {
					w.Narrow(f, brokenBy(point, p, r.Points[point].Requirements)...)
				} else if ev.topic == answered(loadSession) {
					w.Narrow(f, "LOAD-006")
				}
			}
		}, agentMessages()...)
	})
}

// problem reports what is wrong with a message, once for all items of a list.
func (w *watch) problem(point int, ev *event, p schema.Problem) *rules.Finding {
	f := w.find(point, ev, ev.Method+" "+plainPath(p.Path), nil, "In %s, %s %s.", frameName(ev), p.Path, p.Message)
	if f != nil && p.Severity <= schema.Lossy {
		f.Damage = p.Severity.String()
	}
	return f
}

// shapeByMessage writes the points of shape in version 2, one for each kind of message.
func shapeByMessage(r *rule) *rule {
	other := r.Fail("broken", "a message breaks the schema", "V2-SHAPE-001")
	greet := r.Fail("initialize", "the answer to initialize breaks the schema", "V2-INIT-002")
	ended := r.Fail("prompt", "the answer to a prompt breaks the schema", "V2-PRM-001")
	stop := r.Fail("stop-reason", "the answer to a prompt has what that of version 1 has", "V2-PRM-001")
	update := r.Fail("update", "an update breaks the schema", "V2-UPD-001")
	ask := r.Fail("permission", "a permission request breaks the schema", "V2-PER-001")
	former := r.Fail("first-version", "an update is one of version 1", "V2-UPD-002")
	lossy := r.Warn("lossy", "a value does not fit, and readers lose it", "V2-SHAPE-001")
	style := r.Lint("unknown", "a message has what the schema does not know", "V2-SHAPE-001")
	return r.Watching(func(w *watch) {
		w.shapes[rules.OfAgent] = true
		points := map[topic]int{answered(initialize): greet, answered(prompt): ended, asked(permission): ask}
		w.On(func(ev *event) {
			point, special := points[ev.topic]
			if isUpdate(ev.topic) {
				point = update
				old := slices.Contains([]string{"tool_call", "plan", "current_mode_update"}, ev.tag())
				w.judge(former, old, ev, ev.tag(), nil, "The update %s is one of version 1; version 2 does not have it.", ev.tag())
				if old {
					return
				}
			} else if !special {
				point = other
			}
			w.Saw(point, lossy, style)
			if point == ended && ev.succeeded() {
				w.judge(stop, ev.result.Get("stopReason").Exists(), ev, "", nil,
					"The answer to the prompt has a stopReason, which version 2 tells by state_update.")
			}
			for _, p := range ev.problems {
				switch {
				case p.Severity == schema.Fatal:
					w.find(point, ev, p.Path, nil, "%s does not fit %s: %s.", p.Path, p.Type, p.Message)
				case p.Severity == schema.Lossy:
					w.find(lossy, ev, p.Path, nil, "%s does not fit %s, and readers lose it: %s.", p.Path, p.Type, p.Message)
				case p.Path == "id" && ev.Kind == transcript.Request: // ONE-RESPONSE says it
				case point != ended || p.Path != "result.stopReason":
					w.find(style, ev, p.Path, nil, "%s %s.", p.Path, p.Message)
				}
			}
		}, agentMessages()...)
	})
}

// brokenBy are the requirements of a point that one problem breaks.
func brokenBy(point int, p schema.Problem, all []string) []string {
	general := "RPC-014"
	about := func(end string) bool { return strings.HasSuffix(p.Path, end) }
	switch point {
	case shapeContent:
		return []string{pick(p.Type == "ContentChunk", "MSG-001",
			pick(strings.Contains(p.Type, "Resource") && p.Type != "ResourceLink", "CONTENT-003", "CONTENT-001")), general}
	case shapeTool:
		return []string{pick(p.Type == "ToolCallUpdate", "TOOL-007", "TOOL-002"), general}
	case shapePlan:
		return []string{pick(p.Type == "PlanEntryPriority" || p.Type == "PlanEntryStatus", "PLAN-003", "PLAN-002"), general}
	case shapeMode:
		return []string{pick(p.Type == "CurrentModeUpdate", "MODE-006", "MODE-001"), general}
	case shapeOption:
		return []string{pick(about(".currentValue"), "CONFIG-002",
			pick(p.Type == "SessionConfigSelectOptions", "CONFIG-005", "CONFIG-001")), general}
	case shapeOptionList:
		return []string{pick(p.Type == "ConfigOptionUpdate", "CONFIG-009", "CONFIG-007"), general}
	case shapeInit:
		return []string{pick(about("protocolVersion"), "INIT-006", "INIT-003"), general}
	case shapeAuth:
		return []string{pick(strings.Contains(p.Path, ".env"), "AUTH-018", "AUTH-001"), general}
	case shapeSetup:
		switch p.Type {
		case "ResumeSessionResponse":
			return []string{"RESUME-005", general}
		case "NewSessionResponse":
			return []string{"SESSION-003", general}
		}
		return []string{general}
	case shapeList:
		if p.Type == "SessionInfo" {
			return []string{"LIST-006", general}
		}
		return []string{"LIST-002", "LIST-003", general}
	case shapeInfo:
		return []string{general, "INFO-003"}[:pick(about("updatedAt"), 2, 1)]
	case shapePermission:
		return []string{pick(strings.HasPrefix(p.Type, "PermissionOption"), "PERM-003", "PERM-002"), general}
	case shapeElicit:
		id := "ELICIT-005"
		switch {
		case about(".mode"):
			id = "ELICIT-003"
		case about("url"), about("elicitationId"):
			id = "ELICIT-007"
		case about("sessionId"), about("requestId"):
			id = "ELICIT-004"
		case about("requestedSchema.type"), about("requestedSchema.properties"):
			id = "ELICIT-006"
		}
		return []string{id, general}
	case shapeEmpty:
		return append(ownResult(p.Type), general)
	}
	return all
}

// ownResult is the requirement about the result of one method, if there is one.
func ownResult(typeName string) []string {
	id, ok := map[string]string{
		"PromptResponse": "PROMPT-022", "SessionInfoUpdate": "INFO-002", "NewSessionResponse": "SESSION-003",
		"AuthenticateResponse": "AUTH-006", "LogoutResponse": "AUTH-011", "CloseSessionResponse": "CLOSE-004",
		"DeleteSessionResponse": "DELETE-002", "SetSessionModeResponse": "MODE-005",
	}[typeName]
	if !ok {
		return nil
	}
	return []string{id}
}

// notShape tells the problems that other rules report: errors by ERR-FORM,
// _meta and unknown kinds of updates by ROOT-KEYS, null ids by ONE-RESPONSE.
func notShape(ev *event, p schema.Problem) bool {
	return p.Type == "Error" || p.Type == "ErrorCode" || p.Path == "id" ||
		isMeta(p) || unknownTag(ev, p) || p.Path == "method"
}

func isMeta(p schema.Problem) bool {
	return strings.HasSuffix(p.Path, "._meta") && p.Severity <= schema.Lossy
}

func unknownTag(ev *event, p schema.Problem) bool {
	return p.Type == "SessionUpdate" && strings.HasSuffix(p.Path, ".sessionUpdate") &&
		ev.update.Get("sessionUpdate").Kind() == wire.String
}

// frameName names a message for a sentence.
func frameName(ev *event) string {
	switch {
	case ev.update.Exists():
		if tag := ev.tag(); tag != "" {
			return "session/update " + clip(tag)
		}
	case ev.result.Exists() || ev.err.Exists():
		return "the response to " + ev.Method
	}
	return ev.Method
}

// plainPath drops positions, so that the same fault in each item of a list is
// one finding.
func plainPath(path string) string {
	var out strings.Builder
	for step := range strings.SplitSeq(path, ".") {
		if step != "" && strings.Trim(step, "0123456789") == "" {
			step = "#"
		}
		out.WriteByte('.')
		out.WriteString(step)
	}
	return out.String()
}

// evidenceOfShape is the point of shape that a well-formed message of a topic is
// evidence for.
func evidenceOfShape() map[topic]int {
	points := map[topic]int{}
	for point, about := range map[int][]topic{
		shapeContent:  {userChunk, agentChunk, thoughtChunk},
		shapeTool:     {toolCall, toolUpdate},
		shapePlan:     {planUpdate},
		shapeUsage:    {usageUpdate},
		shapeCommands: {commandsUpdate},
		shapeMode:     {modeUpdate},
		shapeOption:   {optionsUpdate},
		shapeInfo:     {infoUpdate},
		shapeStop:     {answered(prompt)},
		shapeInit:     {answered(initialize)},
		shapeSetup:    {answered(newSession), answered(loadSession), answered(resumeSession)},
		shapeList:     {answered(listSessions)},

		shapeOptionList: {answered(setOption)},
		shapeEmpty: {answered(setMode), answered(closeSession), answered(deleteSession), answered(authenticate),
			answered(logout)},
		shapePermission: {asked(permission)},
		shapeFile:       {asked(readFile), asked(writeFile)},
		shapeTerminal:   append(terminalUses(), asked(createTerminal)),
		shapeElicit:     {asked(elicit)},
	} {
		for _, t := range about {
			points[t] = point
		}
	}
	return points
}

// part is something that a message need not have, and the point that it is evidence
// for where it is there.
type part struct {
	point int
	of    []topic
	is    func(*event) bool
}

func partsOfShape() []part {
	has := func(v wire.Value) bool { return len(v.Raw()) > len("{}") && !v.IsNull() }
	result := func(path string) func(*event) bool {
		return func(ev *event) bool { return has(ev.result.Path(path)) }
	}
	update := func(path string) func(*event) bool {
		return func(ev *event) bool { return has(ev.update.Path(path)) || has(ev.params.Path("toolCall."+path)) }
	}
	tools, chunks := []topic{toolCall, toolUpdate, asked(permission)}, []topic{userChunk, agentChunk, thoughtChunk}
	begun, opened := []topic{answered(initialize)}, []topic{answered(newSession), answered(loadSession)}
	return []part{
		{shapeAgentInfo, begun, result("agentInfo")},
		{shapeCapability, begun, result("agentCapabilities")},
		{shapeAuth, begun, result("authMethods")},
		{shapeMode, opened, result("modes")},
		{shapeOption, opened, result("configOptions")},
		{shapeToolStatus, tools, update("status")},
		{shapeToolKind, tools, update("kind")},
		{shapeToolContent, tools, update("content")},
		{shapeMessageID, chunks, update("messageId")},
		{shapeCost, []topic{usageUpdate}, update("cost")},
	}
}

// shapePoints maps the types of the schema to the points of shape.
func shapePoints() map[string]int {
	points := map[string]int{}
	for point, s := range shapeSubjects() {
		for name := range strings.FieldsSeq(s.types) {
			points[name] = point
		}
	}
	return points
}
