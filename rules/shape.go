package rules

import (
	"strings"
	"sync"

	"github.com/acp-test/acp-test/protocol/acp/schema"
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

// shape judges every message of the agent by the type its method has.
func shape() Rule {
	return Rule{
		ID:       "SHAPE",
		Sentence: "Each message has the shape that the schema gives to its method.",
		Points: []Point{
			shapeMessage:     {"message", Fail, []string{"RPC-014"}, "a message does not have the shape of its method"},
			shapeStop:        {"stop-reason", Fail, []string{"PROMPT-004", "RPC-014"}, "the response to a prompt has no stop reason of the five"},
			shapeUpdate:      {"update", Fail, []string{"SESSION-025", "RPC-014"}, "a session/update has no update of the right shape"},
			shapeContent:     {"content", Fail, []string{"CONTENT-001", "CONTENT-003", "MSG-001", "RPC-014"}, "content is no content block"},
			shapeMessageID:   {"message-id", Fail, []string{"MSG-003", "RPC-014"}, "a messageId is no string"},
			shapeTool:        {"tool-call", Fail, []string{"TOOL-002", "TOOL-007", "RPC-014"}, "a tool call does not have its shape"},
			shapeToolKind:    {"tool-kind", Fail, []string{"TOOL-004", "RPC-014"}, "the kind of a tool call is none of the ten"},
			shapeToolStatus:  {"tool-status", Fail, []string{"TOOL-005", "CANCEL-012", "RPC-014"}, "the status of a tool call is none of the four"},
			shapeToolContent: {"tool-content", Fail, []string{"TOOL-013", "RPC-014"}, "the content of a tool call is neither content nor diff nor terminal"},
			shapePlan:        {"plan", Fail, []string{"PLAN-002", "PLAN-003", "RPC-014"}, "a plan does not have its shape"},
			shapeUsage:       {"usage", Fail, []string{"USAGE-001", "RPC-014"}, "a usage update does not have its shape"},
			shapeCost:        {"cost", Fail, []string{"USAGE-002", "RPC-014"}, "a cost lacks its amount or currency"},
			shapeCommands:    {"commands", Fail, []string{"CMD-001", "RPC-014"}, "an available command does not have its shape"},
			shapeMode:        {"mode", Fail, []string{"MODE-001", "MODE-006", "RPC-014"}, "a mode or mode update does not have its shape"},
			shapeOption:      {"option", Fail, []string{"CONFIG-001", "CONFIG-002", "CONFIG-005", "RPC-014"}, "a config option does not have its shape"},
			shapeOptionList:  {"option-list", Fail, []string{"CONFIG-007", "CONFIG-009", "RPC-014"}, "the list of config options is missing"},
			shapeInit:        {"initialize", Fail, []string{"INIT-006", "INIT-003", "RPC-014"}, "the result of initialize does not have its shape"},
			shapeAgentInfo:   {"agent-info", Fail, []string{"INIT-014", "RPC-014"}, "agentInfo does not have its shape"},
			shapeCapability:  {"capability", Fail, []string{"INIT-017", "RPC-014"}, "a capability has the wrong JSON type"},
			shapeAuth:        {"auth-method", Fail, []string{"AUTH-001", "AUTH-018", "RPC-014"}, "an auth method does not have its shape"},
			shapeSetup:       {"session-result", Fail, []string{"SESSION-003", "RESUME-005", "RPC-014"}, "the result of a session request does not have its shape"},
			shapeList:        {"list", Fail, []string{"LIST-002", "LIST-003", "LIST-006", "RPC-014"}, "the result of session/list does not have its shape"},
			shapeInfo:        {"session-info", Fail, []string{"RPC-014", "INFO-003"}, "a session_info_update does not have its shape"},
			shapePermission:  {"permission", Fail, []string{"PERM-002", "PERM-003", "RPC-014"}, "a permission request does not have its shape"},
			shapeFile:        {"file", Fail, []string{"FS-005", "RPC-014"}, "a file request does not have its shape"},
			shapeTerminal:    {"terminal", Fail, []string{"TERM-002", "RPC-014"}, "a terminal request does not have its shape"},
			shapeElicit:      {"elicitation", Fail, []string{"ELICIT-005", "ELICIT-004", "ELICIT-007", "ELICIT-003", "ELICIT-006", "RPC-014"}, "an elicitation does not have its shape"},
			shapeEmpty:       {"empty-result", Fail, []string{"MODE-005", "CLOSE-004", "DELETE-002", "AUTH-006", "AUTH-011", "RPC-014"}, "the result of a request that has none is no object"},
			shapeStyle:       {"style", Lint, []string{"LOAD-006", "RPC-013"}, "something that the schema refuses but the pages show, or that strict readers stumble over"},
		},
		versions: []int{1},
		start: func(w *watch) {
			w.shapes = true
			points := shapePoints()
			judge := func(ev *event) {
				w.saw(shapeMessage)
				if about, ok := shapeSubject(ev); ok {
					w.saw(about)
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
					f := w.find(point, ev, ev.Method+" "+plainPath(p.Path), nil, "In %s, %s %s.", frameName(ev), p.Path, p.Message)
					if f == nil {
						continue
					}
					if p.Severity <= schema.Lossy {
						f.Damage = p.Severity.String()
					}
					if p.Severity != schema.Style {
						w.only(f, brokenBy(point, p, w.rule.Points[point].Requirements)...)
					} else if ev.topic == answered(loadSession) {
						w.only(f, "LOAD-006")
					}
				}
			}
			w.on(judge, agentMessages()...)
		},
	}
}

// brokenBy are the requirements of a point that one problem breaks.
func brokenBy(point int, p schema.Problem, all []string) []string {
	general := "RPC-014"
	about := func(end string) bool { return strings.HasSuffix(p.Path, end) }
	switch point {
	case shapeContent:
		return []string{pick(p.Type == "ContentChunk", "MSG-001", pick(strings.Contains(p.Type, "Resource") && p.Type != "ResourceLink", "CONTENT-003", "CONTENT-001")), general}
	case shapeTool:
		return []string{pick(p.Type == "ToolCallUpdate", "TOOL-007", "TOOL-002"), general}
	case shapePlan:
		return []string{pick(p.Type == "PlanEntryPriority" || p.Type == "PlanEntryStatus", "PLAN-003", "PLAN-002"), general}
	case shapeMode:
		return []string{pick(p.Type == "CurrentModeUpdate", "MODE-006", "MODE-001"), general}
	case shapeOption:
		return []string{pick(about(".currentValue"), "CONFIG-002", pick(p.Type == "SessionConfigSelectOptions", "CONFIG-005", "CONFIG-001")), general}
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
		if tag := ev.update.Get("sessionUpdate").Str(); tag != "" {
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

// shapeSubject is the point that a message of a topic is evidence for.
func shapeSubject(ev *event) (int, bool) {
	if ev.err.Exists() {
		return 0, false
	}
	switch ev.topic {
	case userChunk, agentChunk, thoughtChunk:
		return shapeContent, true
	case toolCall, toolUpdate:
		return shapeTool, true
	case planUpdate:
		return shapePlan, true
	case usageUpdate:
		return shapeUsage, true
	case commandsUpdate:
		return shapeCommands, true
	case modeUpdate:
		return shapeMode, true
	case optionsUpdate:
		return shapeOption, true
	case infoUpdate:
		return shapeInfo, true
	case answered(prompt):
		return shapeStop, true
	case answered(initialize):
		return shapeInit, true
	case answered(newSession), answered(loadSession), answered(resumeSession):
		return shapeSetup, true
	case answered(listSessions):
		return shapeList, true
	case answered(setOption):
		return shapeOptionList, true
	case answered(setMode), answered(closeSession), answered(deleteSession), answered(authenticate), answered(logout):
		return shapeEmpty, true
	case asked(permission):
		return shapePermission, true
	case asked(readFile), asked(writeFile):
		return shapeFile, true
	case asked(createTerminal), asked(terminalOutput), asked(waitForExit), asked(killTerminal), asked(releaseTerminal):
		return shapeTerminal, true
	case asked(elicit):
		return shapeElicit, true
	}
	return 0, false
}

// shapePoints maps the types of the schema to the subjects.
var shapePoints = sync.OnceValue(func() map[string]int {
	points := map[string]int{}
	for point, types := range map[int]string{
		shapeStop:        "PromptResponse StopReason",
		shapeUpdate:      "SessionNotification SessionUpdate SessionId",
		shapeContent:     "ContentChunk ContentBlock TextContent ImageContent AudioContent ResourceLink EmbeddedResource EmbeddedResourceResource TextResourceContents BlobResourceContents Annotations Role",
		shapeTool:        "ToolCall ToolCallUpdate ToolCallLocation ToolCallId",
		shapeToolKind:    "ToolKind",
		shapeToolStatus:  "ToolCallStatus",
		shapeToolContent: "ToolCallContent Content Diff Terminal",
		shapePlan:        "Plan PlanEntry PlanEntryPriority PlanEntryStatus",
		shapeUsage:       "UsageUpdate",
		shapeCost:        "Cost",
		shapeCommands:    "AvailableCommandsUpdate AvailableCommand AvailableCommandInput UnstructuredCommandInput",
		shapeMode:        "CurrentModeUpdate SessionModeState SessionMode",
		shapeOption:      "SessionConfigOption SelectConfigOption BooleanConfigOption SessionConfigSelectOption SessionConfigSelectOptions SessionConfigSelectGroup SessionConfigOptionCategory",
		shapeOptionList:  "ConfigOptionUpdate SetSessionConfigOptionResponse",
		shapeInit:        "InitializeResponse",
		shapeAgentInfo:   "Implementation",
		shapeCapability:  "AgentCapabilities PromptCapabilities McpCapabilities SessionCapabilities AgentAuthCapabilities SessionListCapabilities SessionDeleteCapabilities SessionAdditionalDirectoriesCapabilities SessionResumeCapabilities SessionCloseCapabilities LogoutCapabilities",
		shapeAuth:        "AuthMethod AuthMethodAgent AuthMethodTerminal",
		shapeSetup:       "NewSessionResponse LoadSessionResponse ResumeSessionResponse",
		shapeList:        "ListSessionsResponse SessionInfo",
		shapeInfo:        "SessionInfoUpdate",
		shapePermission:  "RequestPermissionRequest PermissionOption PermissionOptionKind",
		shapeFile:        "ReadTextFileRequest WriteTextFileRequest",
		shapeTerminal:    "CreateTerminalRequest EnvVariable TerminalOutputRequest WaitForTerminalExitRequest KillTerminalRequest ReleaseTerminalRequest",
		shapeElicit:      "CreateElicitationRequest CompleteElicitationNotification ElicitationSchema ElicitationPropertySchema ElicitationForm ElicitationFormInSession ElicitationFormInRequest ElicitationUrl ElicitationUrlInSession ElicitationUrlInRequest ElicitationOther ElicitationOtherInSession ElicitationOtherInRequest ElicitationId StringPropertySchema NumberPropertySchema IntegerPropertySchema BooleanPropertySchema MultiSelectPropertySchema MultiSelectItems StringMultiSelectItems TitledMultiSelectItems EnumOption StringFormat",
		shapeEmpty:       "SetSessionModeResponse CloseSessionResponse DeleteSessionResponse AuthenticateResponse LogoutResponse",
	} {
		for name := range strings.FieldsSeq(types) {
			points[name] = point
		}
	}
	return points
})
