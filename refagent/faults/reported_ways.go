package faults

import (
	"encoding/json"
	"slices"

	"github.com/acp-test/acp-test/refagent"
)

// replayFailed shows the model the prompt that failed in place of the one at hand.
func replayFailed() hooks {
	failed, last := map[string]*refagent.ModelMessage{}, map[string]*refagent.ModelMessage{}
	t := &tap{}
	h := t.hooks()
	h.Request = func(session string, messages []refagent.ModelMessage) []refagent.ModelMessage {
		t.mu.Lock()
		defer t.mu.Unlock()
		messages = slices.Clone(messages)
		for i := range slices.Backward(messages) {
			if messages[i].Role == "user" {
				if was := failed[session]; was != nil {
					messages[i] = *was
				}
				last[session] = &messages[i]
				break
			}
		}
		return messages
	}
	h.Stop = func(session, reason string, err error) (string, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if failed[session] = nil; err != nil {
			failed[session] = last[session]
		}
		return reason, err
	}
	return h
}

// hasBrokenServer tells of a server whose program cannot be there.
func hasBrokenServer(m message) bool {
	for s := range objects(m.Object("params")["mcpServers"], "") {
		if s["name"] == "broken" {
			return true
		}
	}
	return false
}

// ignoreAnswers shows nothing of a tool call after its permission was answered.
func ignoreAnswers(t *tap) {
	asked := map[any]bool{} // tool call
	t.out = func(f frame) bool {
		if f.Method == "session/request_permission" {
			asked[f.Message.Object("params", "toolCall")["toolCallId"]] = true
		}
		u, tag := f.Update()
		return tag != "tool_call_update" || !asked[u["toolCallId"]]
	}
	t.received = func(m message) {
		if o := m.Object("result", "outcome"); o != nil && o["optionId"] != nil {
			o["optionId"] = "not-understood"
		}
	}
}

func rejectUnasked(t *tap) {
	t.out = func(f frame) bool {
		if f.Method != "session/request_permission" {
			return true
		}
		t.give(respond(f.Message["id"], object{"outcome": object{"outcome": "selected", "optionId": "reject-once"}}))
		return false
	}
}

// deafWhileAsking hears of a cancel when the permission that is open has been answered.
func deafWhileAsking(t *tap) {
	asked := map[string]string{} // request → session
	held := map[string]message{} // by session
	t.sending = func(f frame) {
		if f.Method == "session/request_permission" && f.IsRequest() {
			asked[key(f.Message["id"])] = f.Session
		}
	}
	t.in = func(m message) bool {
		if s := sessionOf(m); is(m, "session/cancel") {
			for _, waits := range asked {
				if waits == s {
					held[s] = m
					return false
				}
			}
		}
		if s := asked[key(m["id"])]; m["method"] == nil && s != "" {
			delete(asked, key(m["id"]))
			if cancel := held[s]; cancel != nil {
				delete(held, s)
				t.give(cancel, m)
				return false
			}
		}
		return true
	}
}

// dropTheRest rejects by itself what a turn asks for after a rejection, and shows
// nothing of it.
func dropTheRest(t *tap) {
	rejected := map[string]bool{}
	asked := map[string]string{} // request → session
	hidden := map[any]bool{}
	t.received = func(m message) {
		option, _ := m.Object("result", "outcome")["optionId"].(string)
		if s := asked[key(m["id"])]; m["method"] == nil && s != "" && rejects(option) {
			rejected[s] = true
		}
		if is(m, "session/prompt") {
			delete(rejected, sessionOf(m))
		}
	}
	t.out = func(f frame) bool {
		u, tag := f.Update()
		switch {
		case tag == "tool_call" && rejected[f.Session]:
			hidden[u["toolCallId"]] = true
		case f.Method == "session/request_permission" && rejected[f.Session]:
			t.give(respond(f.Message["id"], object{"outcome": object{"outcome": "selected", "optionId": "reject-once"}}))
			return false
		case f.Method == "session/request_permission":
			asked[key(f.Message["id"])] = f.Session
		}
		return !hidden[u["toolCallId"]] || tag == ""
	}
}

func emptyAfterLoad(t *tap) {
	mute := map[string]bool{}
	t.out = func(f frame) bool {
		if answers(f, "session/load") && f.Message["error"] == nil {
			mute[f.Session] = true
			return true
		}
		if answers(f, "session/prompt") {
			delete(mute, f.Session)
		}
		_, tag := f.Update()
		return !mute[f.Session] || !isContent(tag)
	}
}

func brokenByTwoTools(t *tap) {
	calls := map[string]int{}
	t.refusing("session/prompt", -32603, "invalid conversation history received", func(m message) bool {
		broken := calls[sessionOf(m)] > 1
		if !broken {
			calls[sessionOf(m)] = 0
		}
		return broken
	})
	t.sending = func(f frame) {
		if _, tag := f.Update(); tag == "tool_call" {
			calls[f.Session]++
		}
	}
}

// resurrect lists a session again that was deleted in the middle of a turn.
func resurrect(t *tap) {
	var back []any
	cwd := map[string]any{}
	var last any
	t.received = func(m message) {
		if is(m, "session/new") {
			last = m.Object("params")["cwd"]
		}
		s := sessionOf(m)
		if _, open := t.open[s]; is(m, "session/delete") && open {
			back = append(back, object{"sessionId": s, "cwd": cwd[s]})
		}
	}
	t.sending = func(f frame) {
		if answers(f, "session/new") {
			cwd[f.Session] = last
		}
		if r := f.Message.Object("result"); answers(f, "session/list") && r != nil {
			list, _ := r["sessions"].([]any)
			r["sessions"] = append(list, back...)
		}
	}
}

// shareServers lets the MCP servers of all sessions pile up.
func shareServers(t *tap) {
	var all []any
	t.received = func(m message) {
		if !is(m, "session/new") {
			return
		}
		p := m.Object("params")
		own, _ := p["mcpServers"].([]any)
		p["mcpServers"] = append(own, all...)
		all = append(all, own...)
	}
}

var blockTypes = []any{"text", "image", "audio", "resource", "resource_link"}

func hasUnknownBlock(m message) bool {
	for b := range objects(m.Object("params")["prompt"], "") {
		if !slices.Contains(blockTypes, b["type"]) {
			return true
		}
	}
	return false
}

func addUsage(t *tap) {
	sum := map[string]int64{}
	t.sending = func(f frame) {
		u, tag := f.Update()
		if tag != "usage_update" {
			return
		}
		var used int64
		_ = json.Unmarshal([]byte(key(u["used"])), &used) // it is the agent's own number
		sum[f.Session] += used
		u["used"] = sum[f.Session]
	}
}
