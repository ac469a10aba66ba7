package replay_test

import (
	"encoding/json"
	"strings"
)

// careless2 are editors of version 2 with one fault each: what hears or says something else
// for them stands between them and the agent.
var careless2 = []struct {
	name, scenario string
	reddens        []string // the checks and rules that find it, exactly
	hear, say      func(c *client2, m object) []object
	hangs          bool // it waits for ever
	restarts       bool // it starts the agent anew
}{
	{name: "counts-any-idle", scenario: "n01-repeated-idle", reddens: []string{"n01-repeated-idle#waited"},
		hear: idleEnds},
	{name: "dies-of-unknown-updates", scenario: "n03-unknown-values", reddens: []string{
		"n03-unknown-values#connection-survives", "n03-unknown-values#waited"}, hear: dieOfUnknown},
	{name: "unknown-state-is-idle", scenario: "n03-unknown-values", reddens: []string{
		"n03-unknown-values#waited", "n03-unknown-values#connection-survives"},
		hear: unknownIsIdle},
	{name: "kinds-for-ids", scenario: "n07-permissions", reddens: []string{"C-PERM-OFFERED",
		"n07-permissions#command", "n07-permissions#bare", "n07-permissions#unknown-kind"}, say: kindForID},
	{name: "unknown-unanswered", scenario: "m13-unknown-methods", reddens: []string{"m13-unknown-methods#answers",
		"m13-unknown-methods#vendor-request", "m13-unknown-methods#unknown-request"}, say: dropErrors, hangs: true},
	{name: "unknown-answered-with-null", scenario: "m13-unknown-methods", reddens: []string{
		"m13-unknown-methods#vendor-request", "m13-unknown-methods#unknown-request"}, say: nullErrors},
	{name: "loads", scenario: "n19-resume", reddens: []string{"C-SHAPE"},
		say: on("session/resume", func(_ *client2, m object) []object {
			m["method"] = "session/load"
			return []object{m}
		})},
	{name: "sets-modes", scenario: "n18-options", reddens: []string{"C-SHAPE", "n18-options#no-modes"},
		say: before("session/prompt", `{"id":"m","method":"session/set_mode","params":{"sessionId":"session-1",`+
			`"modeId":"code"}}`)},
	{name: "empty-prompt", scenario: "n21-notices", reddens: []string{"C-SHAPE"},
		say: on("session/prompt", func(_ *client2, m object) []object {
			m["params"].(object)["prompt"] = []any{}
			return []object{m}
		})},
	{name: "id-null", scenario: "n21-notices", reddens: []string{"V2-CLIENT-IDS"},
		say: before("session/prompt", `{"id":null,"method":"session/list","params":{}}`)},
	{name: "id-in-use", scenario: "n22-plans", reddens: []string{"V2-CLIENT-IDS"},
		say: on("session/prompt", func(c *client2, m object) []object {
			return []object{m, {"id": m["id"], "method": "session/list", "params": object{}}}
		}), hear: dropLists},
	{name: "prompts-nobody", scenario: "n21-notices", reddens: []string{"C-INIT-FIRST"},
		say: before("session/prompt",
			`{"id":"x","method":"session/prompt","params":{"sessionId":"session-9","prompt":[{"type":"text",`+
				`"text":"?"}]}}`)},
	{name: "hurries", scenario: "n21-notices", reddens: []string{"C-INIT-FIRST"},
		say: before("initialize", `{"id":"x","method":"session/list","params":{}}`)},
	{name: "relative-folder", scenario: "n21-notices", reddens: []string{"C-CWD"},
		say: on("session/new", func(_ *client2, m object) []object {
			m["params"].(object)["cwd"] = "work"
			return []object{m}
		})},
	{name: "picture-unasked", scenario: "n21-notices", reddens: []string{"C-GATE"},
		say: on("session/prompt", func(_ *client2, m object) []object {
			m["params"].(object)["prompt"] = []any{object{"type": "image", "data": "AAAA", "mimeType": "image/png"}}
			return []object{m}
		})},
	{name: "server-unasked", scenario: "n21-notices", reddens: []string{"C-GATE"},
		say: on("session/new", func(_ *client2, m object) []object {
			server := object{"type": "http", "name": "a", "url": "http://127.0.0.1/", "headers": []any{}}
			m["params"].(object)["mcpServers"] = []any{server}
			return []object{m}
		})},
	{name: "deletes-unasked", scenario: "n21-notices", reddens: []string{"C-GATE"},
		say: before("session/prompt", `{"id":"x","method":"session/delete","params":{"sessionId":"session-0"}}`)},
	{name: "logs-in-by-the-terminal", scenario: "n17-login", reddens: []string{"C-MODE-LISTED",
		"n17-login#offered-method"}, say: on("auth/login", func(_ *client2, m object) []object {
		m["params"].(object)["methodId"] = "tui"
		return []object{m}
	})},
	{name: "logs-in-unasked", scenario: "n21-notices", reddens: []string{"C-MODE-LISTED"},
		say: before("session/prompt", `{"id":"x","method":"auth/login","params":{"methodId":"key"}}`)},
	{name: "cancels-what-offers-nothing", scenario: "n13-cancellable", reddens: []string{"V2-CLIENT-CANCEL",
		"n13-cancellable#only-what-offers-it"}, hear: cancelNever},
	{name: "chooses-what-was-taken-back", scenario: "n08-taken-back", reddens: []string{"C-PERM-OFFERED"},
		say: answerLate},
	{name: "answers-twice", scenario: "n14-request-ids", reddens: []string{"C-ANSWER"},
		say: answering(func(m object) []object { return []object{m, m} })},
	{name: "answers-nobody", scenario: "n14-request-ids", reddens: []string{"C-ANSWER"},
		say: answering(func(m object) []object { return []object{m, {"id": "nobody", "result": object{}}} })},
	{name: "ids-confused", scenario: "n14-request-ids", reddens: []string{"C-ANSWER", "n14-request-ids#uuid"},
		say: confuse, hangs: true},
	{name: "version-ignored", scenario: "n15-version", reddens: []string{"n15-version#no-session"},
		hear: func(_ *client2, m object) []object {
			if r, ok := m["result"].(object); ok && r["protocolVersion"] != nil {
				r["protocolVersion"] = 2.0
			}
			return []object{m}
		}},
	{name: "refusal-ignored", scenario: "n16-no-version", reddens: []string{"n16-no-version#no-session",
		"C-INIT-FIRST"}, hear: func(_ *client2, m object) []object {
		if code := dig(m, "error", "code"); code == -32022.0 {
			return []object{{"id": m["id"], "result": object{"protocolVersion": 2.0}}}
		}
		return []object{m}
	}},
	{name: "waits-for-what-was-refused", scenario: "n16-no-version", reddens: []string{"n16-no-version#ended"},
		hear: func(*client2, object) []object { return nil }, hangs: true},
	{name: "failure-unseen", scenario: "n10-failed-turn", reddens: []string{"n10-failed-turn#ended"},
		hear: func(_ *client2, m object) []object {
			if dig(m, "params", "update", "stopReason") == "error" {
				return nil
			}
			return []object{m}
		}, hangs: true},
	{name: "restarts-after-failure", scenario: "n09-refused", reddens: []string{"n09-refused#same-agent"},
		restarts: true},
	{name: "replacement-unseen", scenario: "n05-replaced-message", reddens: []string{"n05-replaced-message#replaced"},
		hear: dropUpdates("agent_message")},
	{name: "whole-content-unseen", scenario: "n06-patched-call", reddens: []string{"n06-patched-call#whole"},
		hear: func(_ *client2, m object) []object {
			if u, _ := dig(m, "params", "update").(object); u["sessionUpdate"] == "tool_call_update" {
				delete(u, "content")
			}
			return []object{m}
		}},
	{name: "text-without-prompt-unseen", scenario: "n11-background", reddens: []string{"n11-background#late-text"},
		hear: func(c *client2, m object) []object {
			if dig(m, "params", "update", "messageId") == "later" {
				c.until = ""
				return []object{object{"method": "session/update", "params": object{"update": object{}}}}
			}
			return []object{m}
		}, hangs: true},
	{name: "question-without-prompt-unanswered", scenario: "n11-background",
		reddens: []string{"n11-background#late-text"},
		say:     answering(func(object) []object { return nil }), hangs: true},
	{name: "history-shown-twice", scenario: "n19-resume", reddens: []string{"n19-resume#once"},
		hear: func(_ *client2, m object) []object {
			if dig(m, "params", "update", "messageId") == "a-1" {
				return []object{m, m}
			}
			return []object{m}
		}},
	{name: "lost-session-is-the-end", scenario: "n20-resume-refused",
		reddens: []string{"n20-resume-refused#new-session",
			"n20-resume-refused#prompt-goes-on"},
		say: on("session/new", func(*client2, object) []object { return nil }), hangs: true},
	{name: "terminals-of-version-1", scenario: "n12-terminals", reddens: []string{"n12-terminals#no-method"},
		say: nullErrors},
	{name: "stop-answers-nothing", scenario: "m08-permission-and-cancel", reddens: []string{
		"m08-permission-and-cancel#open-answered", "m08-permission-and-cancel#late-answered"},
		say: answering(func(object) []object { return nil }), hangs: true},
	{name: "leaves-at-stop", scenario: "m09-cancelled", reddens: []string{"m09-cancelled#waited"},
		say: on("session/cancel", func(c *client2, _ object) []object {
			c.out.Close() // it says nothing, so the turn goes on
			return nil
		})},
}

// on changes what has a method; the rest stays.
func on(method string, change func(c *client2, m object) []object) func(*client2, object) []object {
	return func(c *client2, m object) []object {
		if m["method"] != method {
			return []object{m}
		}
		return change(c, m)
	}
}

// before says something in front of the first message with a method.
func before(method, line string) func(*client2, object) []object {
	return on(method, func(c *client2, m object) []object {
		if c.memory["said"] != nil {
			return []object{m}
		}
		c.memory["said"] = true
		return []object{parsed(line), m}
	})
}

// answering changes the answers to permission requests.
func answering(change func(m object) []object) func(*client2, object) []object {
	return func(_ *client2, m object) []object {
		if dig(m, "result", "outcome") == nil {
			return []object{m}
		}
		return change(m)
	}
}

func idleEnds(c *client2, m object) []object {
	if dig(m, "params", "update", "state") == "idle" {
		c.began = true
	}
	return []object{m}
}

func dieOfUnknown(c *client2, m object) []object {
	if kind, _ := dig(m, "params", "update", "sessionUpdate").(string); strings.HasPrefix(kind, "_") {
		c.out.Close()
		c.working, c.prompts, c.until = false, 0, "It begins" // it leaves
	}
	return []object{m}
}

func unknownIsIdle(_ *client2, m object) []object {
	if u, _ := dig(m, "params", "update").(object); u["state"] == "_pondering" {
		u["state"] = "idle"
	}
	return []object{m}
}

func kindForID(_ *client2, m object) []object {
	if o, _ := dig(m, "result", "outcome").(object); o["outcome"] == "selected" {
		o["optionId"] = "allow_once"
	}
	return []object{m}
}

func dropErrors(_ *client2, m object) []object {
	if m["error"] != nil {
		return nil
	}
	return []object{m}
}

func nullErrors(_ *client2, m object) []object {
	if m["error"] != nil {
		return []object{{"id": m["id"], "result": object{}}}
	}
	return []object{m}
}

func dropUpdates(kind string) func(*client2, object) []object {
	return func(_ *client2, m object) []object {
		if dig(m, "params", "update", "sessionUpdate") == kind {
			return nil
		}
		return []object{m}
	}
}

func dropLists(_ *client2, m object) []object {
	if dig(m, "result", "sessions") != nil {
		return nil
	}
	return []object{m}
}

func cancelNever(c *client2, m object) []object {
	if dig(m, "params", "update", "toolCallId") == "never" && c.memory["said"] == nil {
		c.memory["said"] = true
		c.raw(parsed(`{"id":"x","method":"tool_call/cancel","params":{"sessionId":"session-1","toolCallId":"never"}}`))
	}
	return []object{m}
}

// answerLate keeps the answer to a permission until it has answered something else.
func answerLate(c *client2, m object) []object {
	if dig(m, "result", "outcome") != nil {
		c.memory["kept"] = m
		return nil
	}
	if kept, _ := c.memory["kept"].(object); kept != nil && m["error"] != nil {
		delete(c.memory, "kept")
		return []object{m, kept}
	}
	return []object{m}
}

// confuse answers under the id in another form.
func confuse(_ *client2, m object) []object {
	if id, ok := m["id"].(string); ok && dig(m, "result", "outcome") != nil {
		raw, _ := json.Marshal(id)
		m["id"] = string(raw)
	}
	return []object{m}
}
