package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// subject is one point of shape: what it says, its requirements, and the types of the schema
// it is about. A message about one of the topics is evidence for it, if it has the part.
type subject struct {
	id, says, requirements, types string
	topics                        []topic
	has                           func(*event) bool // nil: always
	// narrow has the requirement that a problem breaks, by the end of its path or its type;
	// the first that fits counts, and "" fits all. Empty: all of the point's.
	narrow [][2]string
}

func subjects() []subject {
	has := func(v wire.Value) bool { return len(v.Raw()) > len("{}") && !v.IsNull() }
	result := func(path string) func(*event) bool {
		return func(ev *event) bool { return has(ev.result.Path(path)) }
	}
	update := func(path string) func(*event) bool {
		return func(ev *event) bool { return has(ev.update.Path(path)) || has(ev.params.Path("toolCall."+path)) }
	}
	tools := []topic{toolCall, toolUpdate, asked(permission)}
	begun, opened := []topic{answered(initialize)}, []topic{answered(newSession), answered(loadSession)}
	return []subject{
		{id: "message", says: "a message does not have the shape of its method", requirements: "RPC-014"},
		{"stop-reason", "the response to a prompt has no stop reason of the five",
			"PROMPT-004 RPC-014", "PromptResponse StopReason", []topic{answered(prompt)}, nil, nil},
		{"update", "a session/update has no update of the right shape",
			"SESSION-025 RPC-014", "SessionNotification SessionUpdate SessionId", nil, nil, nil},
		{"content", "content is no content block",
			"CONTENT-001 CONTENT-003 MSG-001 RPC-014",
			"ContentChunk ContentBlock TextContent ImageContent AudioContent ResourceLink EmbeddedResource " +
				"EmbeddedResourceResource TextResourceContents BlobResourceContents Annotations Role",
			messages(), nil, [][2]string{{"ContentChunk", "MSG-001"}, {"Resource", "CONTENT-003"},
				{"ResourceContents", "CONTENT-003"}, {"", "CONTENT-001"}}},
		{"message-id", "a messageId is no string", "MSG-003 RPC-014", "", messages(), update("messageId"),
			nil},
		{"tool-call", "a tool call does not have its shape",
			"TOOL-002 TOOL-007 RPC-014", "ToolCall ToolCallUpdate ToolCallLocation ToolCallId",
			[]topic{toolCall, toolUpdate}, nil, [][2]string{{"ToolCallUpdate", "TOOL-007"}, {"", "TOOL-002"}}},
		{"tool-kind", "the kind of a tool call is none of the ten", "TOOL-004 RPC-014", "ToolKind",
			tools, update("kind"), nil},
		{"tool-status", "the status of a tool call is none of the four",
			"TOOL-005 CANCEL-012 RPC-014", "ToolCallStatus", tools, update("status"), nil},
		{"tool-content", "the content of a tool call is neither content nor diff nor terminal",
			"TOOL-013 RPC-014", "ToolCallContent Content Diff Terminal", tools, update("content"), nil},
		{"plan", "a plan does not have its shape",
			"PLAN-002 PLAN-003 RPC-014", "Plan PlanEntry PlanEntryPriority PlanEntryStatus", []topic{planUpdate}, nil,
			[][2]string{{"PlanEntryPriority", "PLAN-003"}, {"PlanEntryStatus", "PLAN-003"}, {"", "PLAN-002"}}},
		{"usage", "a usage update does not have its shape", "USAGE-001 RPC-014", "UsageUpdate",
			[]topic{usageUpdate}, nil, nil},
		{"cost", "a cost lacks its amount or currency", "USAGE-002 RPC-014", "Cost",
			[]topic{usageUpdate}, update("cost"), nil},
		{"commands", "an available command does not have its shape",
			"CMD-001 RPC-014", "AvailableCommandsUpdate AvailableCommand AvailableCommandInput UnstructuredCommandInput",
			[]topic{commandsUpdate}, nil, nil},
		{"mode", "a mode or mode update does not have its shape",
			"MODE-001 MODE-006 RPC-014", "CurrentModeUpdate SessionModeState SessionMode", append(opened, modeUpdate),
			func(ev *event) bool { return ev.topic == modeUpdate || has(ev.result.Get("modes")) },
			[][2]string{{"CurrentModeUpdate", "MODE-006"}, {"", "MODE-001"}}},
		{"option", "a config option does not have its shape",
			"CONFIG-001 CONFIG-002 CONFIG-005 RPC-014",
			"SessionConfigOption SelectConfigOption BooleanConfigOption SessionConfigSelectOption " +
				"SessionConfigSelectOptions SessionConfigSelectGroup SessionConfigOptionCategory",
			append(opened, optionsUpdate),
			func(ev *event) bool { return ev.topic == optionsUpdate || has(ev.result.Get("configOptions")) },
			[][2]string{{".currentValue", "CONFIG-002"}, {"SessionConfigSelectOptions", "CONFIG-005"}, {"", "CONFIG-001"}}},
		{"option-list", "the list of config options is missing",
			"CONFIG-007 CONFIG-009 RPC-014", "ConfigOptionUpdate SetSessionConfigOptionResponse",
			[]topic{answered(setOption)}, nil, [][2]string{{"ConfigOptionUpdate", "CONFIG-009"}, {"", "CONFIG-007"}}},
		{"initialize", "the result of initialize does not have its shape",
			"INIT-006 INIT-003 RPC-014", "InitializeResponse", begun, nil,
			[][2]string{{"protocolVersion", "INIT-006"}, {"", "INIT-003"}}},
		{"agent-info", "agentInfo does not have its shape", "INIT-014 RPC-014", "Implementation",
			begun, result("agentInfo"), nil},
		{"capability", "a capability has the wrong JSON type",
			"INIT-017 RPC-014",
			"AgentCapabilities PromptCapabilities McpCapabilities SessionCapabilities AgentAuthCapabilities " +
				"SessionListCapabilities SessionDeleteCapabilities SessionAdditionalDirectoriesCapabilities " +
				"SessionResumeCapabilities SessionCloseCapabilities LogoutCapabilities", begun, result("agentCapabilities"), nil},
		{"auth-method", "an auth method does not have its shape",
			"AUTH-001 AUTH-018 RPC-014", "AuthMethod AuthMethodAgent AuthMethodTerminal", begun, result("authMethods"),
			[][2]string{{".env", "AUTH-018"}, {"", "AUTH-001"}}},
		{"session-result", "the result of a session request does not have its shape",
			"SESSION-003 RESUME-005 RPC-014", "NewSessionResponse LoadSessionResponse ResumeSessionResponse",
			append(opened, answered(resumeSession)), nil,
			[][2]string{{"ResumeSessionResponse", "RESUME-005"}, {"NewSessionResponse", "SESSION-003"}, {"", "RPC-014"}}},
		{"list", "the result of session/list does not have its shape",
			"LIST-002 LIST-003 LIST-006 RPC-014", "ListSessionsResponse SessionInfo", []topic{answered(listSessions)}, nil,
			[][2]string{{"SessionInfo", "LIST-006"}, {"", "LIST-002 LIST-003"}}},
		{"session-info", "a session_info_update does not have its shape",
			"RPC-014 INFO-003", "SessionInfoUpdate", []topic{infoUpdate}, nil,
			[][2]string{{"updatedAt", "RPC-014 INFO-003"}, {"", "RPC-014"}}},
		{"permission", "a permission request does not have its shape",
			"PERM-002 PERM-003 RPC-014", "RequestPermissionRequest PermissionOption PermissionOptionKind",
			[]topic{asked(permission)}, nil,
			[][2]string{{"PermissionOption", "PERM-003"}, {"PermissionOptionKind", "PERM-003"}, {"", "PERM-002"}}},
		{"file", "a file request does not have its shape",
			"FS-005 RPC-014", "ReadTextFileRequest WriteTextFileRequest", []topic{asked(readFile), asked(writeFile)}, nil, nil},
		{"terminal", "a terminal request does not have its shape",
			"TERM-002 RPC-014",
			"CreateTerminalRequest EnvVariable TerminalOutputRequest WaitForTerminalExitRequest " +
				"KillTerminalRequest ReleaseTerminalRequest", append(terminalUses(), asked(createTerminal)), nil, nil},
		{"elicitation", "an elicitation does not have its shape",
			"ELICIT-005 ELICIT-004 ELICIT-007 ELICIT-003 ELICIT-006 RPC-014",
			"CreateElicitationRequest CompleteElicitationNotification ElicitationSchema ElicitationPropertySchema " +
				"ElicitationForm ElicitationFormInSession ElicitationFormInRequest ElicitationUrl " +
				"ElicitationUrlInSession ElicitationUrlInRequest ElicitationOther ElicitationOtherInSession " +
				"ElicitationOtherInRequest ElicitationId StringPropertySchema NumberPropertySchema " +
				"IntegerPropertySchema BooleanPropertySchema MultiSelectPropertySchema MultiSelectItems " +
				"StringMultiSelectItems TitledMultiSelectItems EnumOption StringFormat", []topic{asked(elicit)}, nil,
			[][2]string{{".mode", "ELICIT-003"}, {"url", "ELICIT-007"}, {"elicitationId", "ELICIT-007"},
				{"sessionId", "ELICIT-004"}, {"requestId", "ELICIT-004"}, {"requestedSchema.type", "ELICIT-006"},
				{"requestedSchema.properties", "ELICIT-006"}, {"", "ELICIT-005"}}},
		{"empty-result", "the result of a request that has none is no object",
			"MODE-005 CLOSE-004 DELETE-002 AUTH-006 AUTH-011 RPC-014",
			"SetSessionModeResponse CloseSessionResponse DeleteSessionResponse AuthenticateResponse LogoutResponse",
			[]topic{answered(setMode), answered(closeSession), answered(deleteSession), answered(authenticate),
				answered(logout)}, nil, ownResults()},
		{"notice", "a notice does not have its shape", "NOTICE-002 RPC-014", "Notice NoticeSeverity", []topic{noticeUpdate},
			nil, nil},
		{"compaction", "an update of a compaction does not have its shape",
			"COMPACT-005 RPC-014", "CompactionUpdate CompactionSummaryChunk CompactionId", []topic{compactionUpdate}, nil, nil},
		{"subagent", "an update about a child session does not have its shape",
			"SUB-024 RPC-014", "SubagentUpdate SessionMessage SessionMessageChunk SubagentSessionCapabilities StateUpdate " +
				"RunningStateUpdate IdleStateUpdate RequiresActionStateUpdate UnknownStateUpdate SessionReference",
			[]topic{subagentUpdate, sessionMessage}, nil, nil},
		{id: "style", requirements: "LOAD-006 RPC-013",
			says: "something that the schema refuses but the pages show, or that strict readers stumble over"},
	}
}

// general is the requirement that every problem of shape breaks.
const general = "RPC-014"

// narrowed are the requirements that a problem breaks.
func (s subject) narrowed(p schema.Problem) []string {
	for _, n := range s.narrow {
		if strings.HasSuffix(p.Type, n[0]) || strings.HasSuffix(p.Path, n[0]) {
			if ids := strings.Fields(n[1]); ids[0] != general {
				return append(ids, general)
			}
			return strings.Fields(n[1])
		}
	}
	return strings.Fields(s.requirements)
}

// shape judges every message of the agent by the type its method has.
func shape(v *version) *rule {
	r := v.ofAgent("SHAPE", "Each message has the shape that the schema gives to its method.", 1, 2)
	r.Alone = true
	if v.number == 2 {
		return shapeByMessage(r)
	}
	all := subjects()
	points, evidence, byID := map[string]int{}, map[topic][]int{}, map[string]int{}
	for point, s := range all {
		byID[s.id] = r.Fail(s.id, s.says, strings.Fields(s.requirements)...)
		for name := range strings.FieldsSeq(s.types) {
			points[name] = point
		}
		for _, t := range s.topics {
			evidence[t] = append(evidence[t], point)
		}
	}
	message, messageID, options, style := byID["message"], byID["message-id"], byID["option-list"], byID["style"]
	r.Points[style].Class = rules.Lint
	return r.Watching(func(w *watch) {
		w.shapes[rules.OfAgent] = true
		w.On(func(ev *event) {
			w.Saw(message)
			for _, point := range evidence[ev.topic] {
				if has := all[point].has; !ev.err.Exists() && (has == nil || has(ev)) {
					w.Saw(point)
				}
			}
			for _, p := range ev.problems {
				if p.Severity > schema.Lossy && p.Severity != schema.Style || notShape(ev, p) {
					continue
				}
				point, known := points[p.Type]
				switch {
				case p.Severity == schema.Style:
					point = style
				case strings.HasSuffix(p.Path, ".messageId"):
					point = messageID
				case strings.HasSuffix(p.Path, "configOptions") && p.Type != "SessionConfigOption":
					point = options
				case !known:
					point = message
				}
				f := w.problem(point, ev, p)
				if p.Severity != schema.Style {
					w.Narrow(f, all[point].narrowed(p)...)
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
				w.judge(former, old, ev, ev.tag(), nil,
					"The update %s is one of version 1; version 2 does not have it.", ev.tag())
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

// ownResults has the requirement about the result of one method, by its type.
func ownResults() [][2]string {
	return [][2]string{
		{"PromptResponse", "PROMPT-022"}, {"SessionInfoUpdate", "INFO-002"}, {"NewSessionResponse", "SESSION-003"},
		{"AuthenticateResponse", "AUTH-006"}, {"LogoutResponse", "AUTH-011"}, {"CloseSessionResponse", "CLOSE-004"},
		{"DeleteSessionResponse", "DELETE-002"}, {"SetSessionModeResponse", "MODE-005"},
	}
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

var positions = lazy.Regexp(`(^|\.)[0-9]+\b`)

// plainPath drops positions, so that the same fault in each item of a list is
// one finding.
func plainPath(path string) string {
	return positions().ReplaceAllString("."+path, "$1#")
}
