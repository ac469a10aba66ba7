package replay_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mockclient"
)

// carelessEditors are the editors of the public record, one fault each.
var carelessEditors = []careless{
	{name: "pieces-out-of-order", scenario: "m01-burst", reddens: []string{"m01-burst#in-order"}, hear: swapPieces},
	{name: "last-piece-lost", scenario: "m01-burst", reddens: []string{"m01-burst#last-text"}, hear: loseLast},
	{name: "answer-overtaken", scenario: "m02-updates-with-new",
		reddens: []string{"m02-updates-with-new#session-usable"}, hear: failOpening("session/new")},
	{name: "first-updates-dropped", scenario: "m02-updates-with-new",
		reddens: []string{"m02-updates-with-new#first-commands"}, hear: dropFirst},
	{name: "idle-updates-dropped", scenario: "m05-after-the-turn",
		reddens: []string{"m05-after-the-turn#late-text"}, hear: dropIdle},
	{name: "foreign-update-fatal", scenario: "m03-update-before-new",
		reddens: []string{"m03-update-before-new#session-usable"}, hear: failOpening("session/new")},
	{name: "load-blocked-by-updates", scenario: "m04-load",
		reddens: []string{"m04-load#prompt-after-load"}, hear: failOpening("session/load")},
	{name: "refusal-taken-for-a-session", scenario: "m21-load-refused",
		reddens: []string{"m21-load-refused#new-session", "C-INIT-FIRST"}, hear: takeRefusals},
	{name: "gives-up-when-refused", scenario: "m21-load-refused",
		reddens: []string{"m21-load-refused#prompt-goes-on"}, hear: failOpening("session/new")},
	{name: "load-refused-and-resume-too", scenario: "m26-load-refused-resume",
		reddens: []string{"m26-load-refused-resume#prompt-goes-on"}, hear: refuseBeforeTurns},
	{name: "replay-dropped", scenario: "m04-load", reddens: []string{"m04-load#history"}, hear: dropReplay},
	{name: "replay-stored-again", scenario: "m04-load", reddens: []string{"m04-load#once"}, hear: replayTwice},
	{name: "replay-told-as-live", scenario: "m04-load", reddens: []string{"m04-load#once"}, hear: replayAgainInTurn},
	{name: "unknown-call-shown", scenario: "m06-odd-tool-calls",
		reddens: []string{"m06-odd-tool-calls#unannounced"}, hear: showUnknown},
	{name: "replaced-content-hidden", scenario: "m06-odd-tool-calls",
		reddens: []string{"m06-odd-tool-calls#replaced-content"}, hear: hideReplaced},
	{name: "update-takes-question-away", scenario: "m07-permission-options",
		reddens: []string{"m07-permission-options#two-rejects"}, say: silentOn("call-2")},
	{name: "bare-question-unseen", scenario: "m07-permission-options",
		reddens: []string{"m07-permission-options#unannounced"}, say: silentOn("call-1")},
	{name: "messages-joined", scenario: "m19-message-ids",
		reddens: []string{"m19-message-ids#apart"}, hear: dropMessageIDs},
	{name: "dead-agent-kept", scenario: "m10-exit-idle", reddens: []string{"m10-exit-idle#ended"}, waits: true},
	{name: "exit-in-turn-unseen", scenario: "m10-crash-mid-turn", reddens: []string{"m10-crash-mid-turn#ended"},
		waits: true},
	{name: "exit-in-setup-unseen", scenario: "m10-exit-in-new", reddens: []string{"m10-exit-in-new#ended"},
		waits: true},
	{name: "half-a-frame-unseen", scenario: "m10-half-a-frame", reddens: []string{"m10-half-a-frame#ended"},
		waits: true},
	{name: "stop-answers-nothing", scenario: "m08-permission-and-cancel",
		reddens: []string{"m08-permission-and-cancel#open-answered"}, say: stopSilently},
	{name: "cancel-again", scenario: "m09-cancel-ignored",
		reddens: []string{"m09-cancel-ignored#one-cancel"}, say: cancelTwice},
	{name: "late-answer-dropped", scenario: "m09-cancel-ignored",
		reddens: []string{"m09-cancel-ignored#late-answer"}, hear: dropAfterCancel, say: noteCancel},
	{name: "leaves-at-stop", scenario: "m09-cancelled", reddens: []string{"m09-cancelled#waited"}, say: leaveAtCancel},
	{name: "restarts-after-stop", scenario: "m09-cancelled", reddens: []string{"m09-cancelled#same-agent"},
		restarts: true},
	{name: "restarts-after-error", scenario: "m09-cancel-error", reddens: []string{"m09-cancel-error#same-agent"},
		restarts: true},
	{name: "waits-for-deaf-agent", scenario: "m09-cancel-unanswered",
		reddens: []string{"m09-cancel-unanswered#ended"}, waits: true},
	{name: "cancel-without-session", scenario: "m09-cancel-error",
		reddens: []string{"m09-cancel-error#right-session"}, say: cancelNothing},
	{name: "open-question-kept", scenario: "m08-permission-and-cancel",
		reddens: []string{"m08-permission-and-cancel#open-answered", "m08-permission-and-cancel#late-answered"},
		say:     silentOnBoth},
	{name: "late-question-kept", scenario: "m08-permission-and-cancel",
		reddens: []string{"m08-permission-and-cancel#late-answered"}, say: silentOnSecond},
	{name: "denies-with-cancelled", scenario: "m07-permission-options", reddens: []string{"C-PERM-CANCEL"},
		say: denyByCancel},
	{name: "other-option-ids", scenario: "m07-permission-options", reddens: []string{"C-PERM-OFFERED",
		"m07-permission-options#unannounced", "m07-permission-options#two-rejects",
		"m07-permission-options#only-allow"},
		say: kindsForIDs},
	{name: "unknown-unanswered", scenario: "m13-unknown-methods", reddens: []string{"m13-unknown-methods#answers",
		"m13-unknown-methods#vendor-request", "m13-unknown-methods#unknown-request"}, say: silentOnUnknown},
	{name: "unknown-answered-with-null", scenario: "m13-unknown-methods", reddens: []string{
		"m13-unknown-methods#vendor-request", "m13-unknown-methods#unknown-request"}, say: nullForErrors},
	{name: "unadvertised-carried-out", scenario: "m13-unknown-methods", reddens: []string{"C-GATE"},
		say: advertiseNothing},
	{name: "method-of-its-own", scenario: "m13-unknown-methods", reddens: []string{"C-SHAPE"}, say: closeAllFirst},
	{name: "version-ignored", scenario: "m17-version", reddens: []string{"m17-version#no-session"}, hear: hearVersion1},
	{name: "ids-confused", scenario: "m14-request-ids", reddens: []string{"m14-request-ids#uuid", "C-ANSWER"},
		say: confuseIDs},
	{name: "long-line-fatal", scenario: "m12-long-lines", reddens: []string{"m12-long-lines#connection-survives"},
		hear: dieOfLongLines, say: silentWhenDead},
	{name: "cut-characters-broken", scenario: "m12-long-lines",
		reddens: []string{"m12-long-lines#whole-characters"}, hear: breakCharacters},
	{name: "noise-fatal", scenario: "m12-noise", reddens: []string{"m12-noise#connection-survives"},
		say: silentOnErrors},
	{name: "stream-stops", scenario: "m01-burst", reddens: []string{"m01-burst#connection-survives"},
		say: silentOnErrors},
	{name: "whole-file-always", scenario: "m15-files",
		reddens: []string{"m15-files#second-line", "m15-files#limit-alone",
			"m15-files#from-the-third", "m15-files#missing-is-an-error",
			"m15-files#write-is-kept"}, handlers: map[string]func(*mockclient.Request){
			readFile: always(object{"content": "one\ntwo\nthree\n"})}},
	{name: "line-ends-lost", scenario: "m15-line-ends", reddens: []string{"m15-line-ends#line-ends-stay",
		"m15-line-ends#second-line", "m15-line-ends#last-line", "m15-line-ends#beyond-the-end",
		"m15-line-ends#no-lines"},
		handlers: map[string]func(*mockclient.Request){readFile: always(object{"content": "one\ntwo\nthree\n"})}},
	{name: "any-path", scenario: "m15-outside", reddens: []string{"m15-outside#writes-stay-inside",
		"m15-outside#reads-stay-inside", "m15-outside#relative-write", "m15-outside#relative-read"},
		handlers: map[string]func(*mockclient.Request){
			readFile: always(object{"content": "root:x:0:0"}), writeFile: always(object{})}},
	{name: "no-missing-folder", scenario: "m15-outside", reddens: []string{"m15-outside#creates-the-file"},
		handlers: map[string]func(*mockclient.Request){
			writeFile: func(r *mockclient.Request) { r.Fail(-32603, "there is no such folder") }}},
	{name: "output-cut-in-a-character", scenario: "m16-output-limit",
		reddens: []string{"m16-output-limit#whole-characters",
			"m16-output-limit#keeps-the-end", "m16-output-limit#says-that-it-cut", "C-TERM-UTF8"},
		handlers: map[string]func(*mockclient.Request){
			output: always(object{"output": "begin-\uFFFD", "truncated": false})}},
	{name: "all-of-the-output", scenario: "m16-large-output", reddens: []string{"m16-large-output#keeps-the-end",
		"m16-large-output#says-that-it-cut", "C-TERM-UTF8"}, handlers: map[string]func(*mockclient.Request){
		output: always(object{"output": strings.Repeat("x", 2000), "truncated": false})}},
	{name: "status-before-the-exit", scenario: "m16-kill", reddens: []string{"m16-kill#runs"},
		handlers: map[string]func(*mockclient.Request){
			output: always(object{"output": "", "truncated": false, "exitStatus": object{"exitCode": 0}})}},
	{name: "output-after-release", scenario: "m16-terminals", reddens: []string{"m16-terminals#use-after-release"},
		handlers: map[string]func(*mockclient.Request){
			output: always(object{"output": "still here", "truncated": false})}},
	{name: "ended-command-unanswered", scenario: "m16-terminals", reddens: []string{"m16-terminals#wait"},
		say: silentOnExit},
	{name: "agent-left-running", scenario: "m11-stubborn-tree", reddens: []string{"m11-stubborn-tree#tree-gone"},
		leavesRunning: true},
	{name: "allows-what-it-cannot-deny", scenario: "m22-denied",
		reddens: []string{"m22-denied#denied-again", "m22-denied#only-allow"}, say: rejectOnceOrFirst},
	{name: "modes-of-load-lost", scenario: "m23-loaded-modes", reddens: []string{"m23-loaded-modes#modes"},
		hear: loseModesOfLoad},
	{name: "annotated-dropped", scenario: "m24-annotated",
		reddens: []string{"m24-annotated#annotated", "m24-annotated#null"}, hear: dropAnnotated},
	{name: "vendor-updates-dropped", scenario: "m25-vendor-meta",
		reddens: []string{"m25-vendor-meta#text"}, hear: dropVendorTexts},
	{name: "vendor-output-preferred", scenario: "m25-vendor-meta",
		reddens: []string{"m25-vendor-meta#content"}, hear: preferVendorOutput},
	{name: "never-initializes", scenario: "m01-burst", reddens: []string{"C-INIT-FIRST"}, say: skipInitialize,
		hear: greetItself},
	{name: "dies-of-missing-program", scenario: "m27-impossible", reddens: []string{"m27-impossible#program"},
		say: dieOf("terminal/create")},
	{name: "dies-of-folder-as-file", scenario: "m27-impossible", reddens: []string{"m27-impossible#files"},
		say: dieOf(readFile)},
	{name: "write-kept-back", scenario: "m15-files", reddens: []string{"m15-files#write-is-kept"},
		handlers: map[string]func(*mockclient.Request){writeFile: always(object{})}},
	{name: "missing-file-empty", scenario: "m15-files", reddens: []string{"m15-files#missing-is-an-error"},
		say: emptyIfMissing},
	{name: "dies-of-unknown-update", scenario: "m28-unknown-update",
		reddens: []string{"m28-unknown-update#still-there"},
		say:     dieOf("_vendor/ask")},
	{name: "terminal-only-advertised", scenario: "m16-terminals", reddens: []string{"C-GATE"},
		handlers: map[string]func(*mockclient.Request){
			"terminal/create": func(r *mockclient.Request) { r.Fail(-32601, "Method not found") }}},
	{name: "waits-for-mode-update", scenario: "m18-modes", reddens: []string{"m18-modes#goes-on"}, say: neverPrompt},
}

const (
	readFile  = "fs/read_text_file"
	writeFile = "fs/write_text_file"
	output    = "terminal/output"
)

func kindOf(m object) any { return dig(m, "params", "update", "sessionUpdate") }

func textOf(m object) string {
	s, _ := dig(m, "params", "update", "content", "text").(string)
	return s
}

func isAnswer(m object) bool { return m["method"] == nil }

func swapPieces(e *editing, m object) []object {
	first, _ := e.memory["first"].(object)
	if kindOf(m) == "agent_message_chunk" && first == nil {
		e.memory["first"] = m
		return nil
	}
	delete(e.memory, "first")
	if first == nil {
		return []object{m}
	}
	if kindOf(m) == "agent_message_chunk" {
		return []object{m, first}
	}
	return []object{first, m}
}

func loseLast(e *editing, m object) []object {
	held, _ := e.memory["held"].(object)
	switch {
	case kindOf(m) == "agent_message_chunk":
		e.memory["held"] = m
		if held == nil {
			return nil
		}
		return []object{held}
	case dig(m, "result", "stopReason") != nil:
		return []object{m}
	}
	return []object{m}
}

// failOpening makes an error of the answer that opens a session.
func failOpening(method string) func(e *editing, m object) []object {
	return func(e *editing, m object) []object {
		opens := dig(m, "result", "sessionId") != nil
		if method == "session/load" {
			_, has := m["result"]
			opens = has && m["result"] == nil
		}
		if opens {
			return []object{{"jsonrpc": "2.0", "id": m["id"],
				"error": object{"code": -32603, "message": "no such session"}}}
		}
		return []object{m}
	}
}

// refuseBeforeTurns makes a refusal of each answer but that to initialize, until a turn.
func refuseBeforeTurns(e *editing, m object) []object {
	if m["result"] != nil && dig(m, "result", "protocolVersion") == nil && dig(m, "result", "stopReason") == nil {
		return []object{{"jsonrpc": "2.0", "id": m["id"],
			"error": object{"code": -32603, "message": "no such session"}}}
	}
	return []object{m}
}

// takeRefusals makes a success of the answers that refuse a session.
func takeRefusals(_ *editing, m object) []object {
	if m["error"] != nil {
		return []object{{"jsonrpc": "2.0", "id": m["id"], "result": object{}}}
	}
	return []object{m}
}

func dropFirst(e *editing, m object) []object {
	n, _ := e.memory["n"].(int)
	if kindOf(m) != nil && n < 4 {
		e.memory["n"] = n + 1
		return nil
	}
	return []object{m}
}

func dropIdle(e *editing, m object) []object {
	if dig(m, "result", "stopReason") != nil {
		e.memory["idle"] = true
	}
	if e.memory["idle"] != nil && textOf(m) != "" {
		return nil
	}
	return []object{m}
}

func loaded(e *editing, m object) bool {
	if r, has := m["result"]; has && r == nil {
		e.memory["loaded"] = true
	}
	return e.memory["loaded"] != nil
}

func dropReplay(e *editing, m object) []object {
	if !loaded(e, m) && kindOf(m) != nil {
		return nil
	}
	return []object{m}
}

func replayTwice(e *editing, m object) []object {
	if !loaded(e, m) && kindOf(m) != nil {
		return []object{m, m}
	}
	return []object{m}
}

func replayAgainInTurn(e *editing, m object) []object {
	past, _ := e.memory["past"].([]object)
	if !loaded(e, m) && kindOf(m) != nil {
		e.memory["past"] = append(past, m)
	}
	if textOf(m) == "The new answer." {
		return append(slices.Clone(past), m)
	}
	return []object{m}
}

func showUnknown(_ *editing, m object) []object {
	id, _ := dig(m, "params", "update", "toolCallId").(string)
	if strings.HasPrefix(id, "orphan-") {
		u := dig(m, "params", "update").(object)
		u["sessionUpdate"], u["title"] = "tool_call", id
	}
	return []object{m}
}

func hideReplaced(e *editing, m object) []object {
	u, _ := dig(m, "params", "update").(object)
	if u["sessionUpdate"] == "tool_call_update" && u["content"] != nil {
		if e.memory["shown"] != nil {
			delete(u, "content")
		}
		e.memory["shown"] = true
	}
	return []object{m}
}

func dropMessageIDs(_ *editing, m object) []object {
	u, _ := dig(m, "params", "update").(object)
	delete(u, "messageId")
	return []object{m}
}

// silentOn keeps the answers to permissions for a tool call from the agent, and gives
// up then.
func silentOn(call string) func(e *editing, m object) []object {
	return silentWhen(func(e *editing, asked object, _ object) bool {
		return dig(asked, "params", "toolCall", "toolCallId") == call
	})
}

// silentWhen keeps back the answers of which when is true. It is asked with the
// agent's request, too.
func silentWhen(when func(e *editing, asked, m object) bool) func(e *editing, m object) []object {
	return func(e *editing, m object) []object {
		if isAnswer(m) && when(e, e.asked[key(m["id"])], m) {
			e.leave()
			return nil
		}
		return []object{m}
	}
}

var silentOnSecond = silentWhen(func(e *editing, asked, _ object) bool {
	n, _ := e.memory["n"].(int)
	e.memory["n"] = n + 1
	return asked["method"] == "session/request_permission" && n == 1
})

// silentOnBoth leaves when it has kept back its second answer, and not before.
func silentOnBoth(e *editing, m object) []object {
	if !isAnswer(m) || e.asked[key(m["id"])]["method"] != "session/request_permission" {
		return []object{m}
	}
	if n, _ := e.memory["n"].(int); n == 1 {
		e.leave()
	}
	e.memory["n"] = 1
	return nil
}

var silentOnErrors = silentWhen(func(_ *editing, _, m object) bool { return m["error"] != nil })

// silentOnUnknown leaves at its answer to the second of two unknown methods, and not before the
// agent has asked both.
func silentOnUnknown(e *editing, m object) []object {
	if isAnswer(m) && m["error"] != nil {
		if e.asked[key(m["id"])]["method"] == "no/such_method" {
			e.leave()
		}
		return nil
	}
	return []object{m}
}

var silentOnExit = silentWhen(func(_ *editing, asked,
	_ object) bool {
	return asked["method"] == "terminal/wait_for_exit"
})

var silentWhenDead = silentWhen(func(e *editing, _, _ object) bool { return e.memory["dead"] != nil })

func key(id any) string {
	raw, err := json.Marshal(id)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func stopSilently(e *editing, m object) []object {
	if m["method"] == "session/cancel" || isAnswer(m) {
		e.leave()
		return nil
	}
	return []object{m}
}

func leaveAtCancel(e *editing, m object) []object {
	if m["method"] == "session/cancel" {
		e.giveUp()
		return nil
	}
	return []object{m}
}

func cancelTwice(_ *editing, m object) []object {
	if m["method"] == "session/cancel" {
		return []object{m, m}
	}
	return []object{m}
}

func noteCancel(e *editing, m object) []object {
	if m["method"] == "session/cancel" {
		e.memory["cancelled"] = true
	}
	return []object{m}
}

func dropAfterCancel(e *editing, m object) []object {
	if e.memory["cancelled"] != nil && textOf(m) != "" {
		return nil
	}
	return []object{m}
}

func cancelNothing(e *editing, m object) []object {
	if m["method"] == "session/cancel" {
		dig(m, "params").(object)["sessionId"] = ""
		e.giveUp()
	}
	return []object{m}
}

// rejectOnceOrFirst denies, and looks for one kind of option alone.
func rejectOnceOrFirst(e *editing, m object) []object {
	list, _ := dig(e.asked[key(m["id"])], "params", "options").([]any)
	if dig(m, "result", "outcome") == nil || len(list) == 0 {
		return []object{m}
	}
	chosen := slices.IndexFunc(list, func(o any) bool { return dig(o, "kind") == "reject_once" })
	m["result"] = object{"outcome": object{"outcome": "selected", "optionId": dig(list[max(chosen, 0)], "optionId")}}
	return []object{m}
}

func dropAnnotated(_ *editing, m object) []object {
	if content, _ := dig(m, "params", "update", "content").(object); content != nil {
		if _, has := content["annotations"]; has {
			return nil
		}
	}
	return []object{m}
}

// dropVendorTexts leaves out what has something of a vendor in it.
func dropVendorTexts(_ *editing, m object) []object {
	if kindOf(m) == "agent_message_chunk" && dig(m, "params", "update", "_meta") != nil {
		return nil
	}
	return []object{m}
}

// preferVendorOutput looks for the output of a call in one vendor's place alone.
func preferVendorOutput(_ *editing, m object) []object {
	if u, _ := dig(m, "params", "update").(object); u["_meta"] != nil && kindOf(m) == "tool_call_update" {
		delete(u, "content")
	}
	return []object{m}
}

// closeAllFirst tells the agent to close all sessions, by a method that there is not.
func closeAllFirst(_ *editing, m object) []object {
	if m["method"] == "session/prompt" {
		return []object{{"jsonrpc": "2.0", "method": "session/close_all", "params": object{}}, m}
	}
	return []object{m}
}

// loseModesOfLoad takes the modes out of what opens a session that was not made just now.
func loseModesOfLoad(_ *editing, m object) []object {
	if r, _ := m["result"].(object); r["modes"] != nil && r["sessionId"] == nil {
		delete(r, "modes")
	}
	return []object{m}
}

func denyByCancel(e *editing, m object) []object {
	if dig(m, "result", "outcome") != nil {
		m["result"] = object{"outcome": object{"outcome": "cancelled"}}
	}
	return []object{m}
}

func kindsForIDs(e *editing, m object) []object {
	o, _ := dig(m, "result", "outcome").(object)
	if o["optionId"] != nil {
		o["optionId"] = "allow_once"
	}
	return []object{m}
}

func nullForErrors(_ *editing, m object) []object {
	if m["error"] != nil {
		delete(m, "error")
		m["result"] = nil
	}
	return []object{m}
}

func advertiseNothing(_ *editing, m object) []object {
	if m["method"] == "initialize" {
		dig(m, "params").(object)["clientCapabilities"] = object{}
	}
	return []object{m}
}

func hearVersion1(_ *editing, m object) []object {
	r, _ := m["result"].(object)
	if r["protocolVersion"] != nil {
		r["protocolVersion"] = 1
	}
	return []object{m}
}

func confuseIDs(e *editing, m object) []object {
	if id, ok := m["id"].(string); ok && isAnswer(m) && len(id) > 30 {
		e.leave()
		m["id"] = 0
	}
	return []object{m}
}

func dieOfLongLines(e *editing, m object) []object {
	if raw, err := json.Marshal(m); err == nil && len(raw) > 64<<10 {
		e.memory["dead"] = true
	}
	return []object{m}
}

func breakCharacters(_ *editing, m object) []object {
	if c, _ := dig(m, "params", "update", "content").(object); c["text"] != nil {
		c["text"] = string(bytes.ReplaceAll([]byte(textOf(m)), []byte("é"), []byte("\uFFFD\uFFFD")))
	}
	return []object{m}
}

func skipInitialize(_ *editing, m object) []object {
	if m["method"] == "initialize" {
		m["method"] = "_acp-test/hello"
	}
	return []object{m}
}

// greetItself makes the agent's greeting of the first refusal.
func greetItself(e *editing, m object) []object {
	if m["error"] != nil && e.memory["greeted"] == nil {
		e.memory["greeted"] = true
		return []object{{"jsonrpc": "2.0", "id": m["id"], "result": object{"protocolVersion": 1}}}
	}
	return []object{m}
}

// dieOf ends the editor where it would answer a request of a method.
func dieOf(method string) func(e *editing, m object) []object {
	return func(e *editing, m object) []object {
		if isAnswer(m) && e.asked[key(m["id"])]["method"] == method {
			e.memory["dead"] = true
			e.leave()
		}
		return silentWhenDead(e, m)
	}
}

func emptyIfMissing(e *editing, m object) []object {
	if isAnswer(m) && m["error"] != nil && e.asked[key(m["id"])]["method"] == readFile {
		return []object{{"jsonrpc": "2.0", "id": m["id"], "result": object{"content": ""}}}
	}
	return []object{m}
}

func neverPrompt(e *editing, m object) []object {
	if m["method"] == "session/prompt" {
		e.giveUp()
		return nil
	}
	return []object{m}
}
