package faults

import (
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/acp-test/acp-test/refagent"
)

func toolFaults() []Fault {
	return []Fault{
		fault("kinds-of-readers", "says of tools that delete or move files that they read",
			callKinds("read", "delete", "move")),
		fault("kind-of-a-writer", "says of a tool that gets a page that it edits", callKinds("edit", "fetch")),
		fault("rejection-only-of-edits", "deletes and moves files although the user rejected that", func() hooks {
			return hooks{Allowed: func(_, tool, _ string, allowed bool) bool {
				return allowed || tool == "delete_file" || tool == "move_file"
			}}
		}),
		fault("turn-waits-for-background", "does not end the turn in which a command was started that goes on",
			with(waitForBackground)).hangs(),
		fault("error-output-lost", "does not read what a command writes to its error output", func() hooks {
			return hooks{Command: func(c *exec.Cmd) { c.Stderr = nil }}
		}),
		fault("error-output-hidden", "shows the first line of what a command has written", firstLine).
			copies("agentclientprotocol/claude-agent-acp#456"),
		fault("files-stay-where-they-are", "says that it has deleted or moved a file, and has not", leaveFiles),
		fault("tool-never-closed", "never gives a final status to any tool call",
			onUpdate(func(u object, tag string) bool { return tag != "tool_call_update" || !final(u["status"]) })).
			copies("NousResearch/hermes-agent#114395"),
		fault("denied-tool-never-closed", "never gives a final status to a tool call that failed or was denied",
			onUpdate(func(u object, tag string) bool { return tag != "tool_call_update" || u["status"] != "failed" })).
			copies("hawkingrei/agenthub#560"),
		fault("tool-two-ids", "announces a tool call under one id and carries it out under another",
			with(twoIDs)).copies("evalstate/fast-agent#674"),
		fault("tool-update-unannounced", "updates a tool call that was never announced, with an empty id",
			with(ghostTool)).copies("bug-ops/zeph#1003"),
		fault("tool-announced-again", "announces a tool call a second time after it ended",
			with(announceAgain)).copies("agentclientprotocol/claude-agent-acp#122"),
		fault("tool-status-back", "lets a completed tool call run again and complete again", with(statusBack)),
		fault("tool-never-in-progress", "never says that a tool call runs",
			onUpdate(func(u object, tag string) bool { return tag != "tool_call_update" || u["status"] != "in_progress" })).
			copies("bug-ops/zeph#928"),
		fault("tool-status-unknown", "gives a failed tool call the status cancelled, which does not exist in v1",
			changeOnly("tool_call_update", func(u object) {
				if u["status"] == "failed" {
					u["status"] = "cancelled"
				}
			})),
		fault("tool-kind-unknown", "gives a tool call a kind that does not exist",
			changeOnly("tool_call", func(u object) {
				u["kind"] = "filesystem"
			})),
		fault("tool-without-title", "announces a tool call without a title", changeOnly("tool_call", func(u object) {
			delete(u, "title")
		})),
		fault("tool-content-bare", "puts bare text blocks into the content of a tool call",
			changeUpdate(func(u object, tag string) {
				if list, ok := u["content"].([]any); ok && tag == "tool_call_update" {
					for i, c := range list {
						if o, ok := c.(object); ok && o["type"] == "content" {
							list[i] = o["content"]
						}
					}
				}
			})),
		fault("tool-failure-as-completed", "says completed of a tool call that failed",
			changeOnly("tool_call_update", func(u object) {
				if u["status"] == "failed" {
					u["status"] = "completed"
				}
			})).copies("tutti-os/tutti#2574"),
		fault("tools-hidden", "runs tools without showing any of it",
			onUpdate(func(_ object, tag string) bool { return tag != "tool_call" && tag != "tool_call_update" })).
			copies("agentclientprotocol/codex-acp#206"),
		fault("tool-updates-dropped-when-slow", "drops tool updates while the editor is more than 64 KiB behind with reading",
			with(dropWhenSlow)).copies("NousResearch/hermes-agent#33023"),
	}
}

func twoIDs(t *tap) {
	second := map[any]bool{}
	t.sending = func(f frame) {
		u, tag := f.Update()
		id, _ := u["toolCallId"].(string)
		if tag != "tool_call_update" {
			return
		}
		if !second[id] {
			second[id] = true
			t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call", "toolCallId": id + "-run", "title": "Run",
				"status": "pending"}))
		}
		u["toolCallId"] = id + "-run"
	}
}

func ghostTool(t *tap) {
	t.sending = func(f frame) {
		if u, tag := f.Update(); tag == "tool_call_update" && u["status"] == "in_progress" {
			t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call_update", "toolCallId": "", "status": "completed"}))
		}
	}
}

func announceAgain(t *tap) {
	first := map[any]message{}
	t.out = func(f frame) bool {
		u, tag := f.Update()
		switch {
		case tag == "tool_call":
			first[u["toolCallId"]] = clone(f.Message)
		case tag == "tool_call_update" && final(u["status"]) && first[u["toolCallId"]] != nil:
			again := first[u["toolCallId"]]
			again.Object("params", "update")["status"] = u["status"]
			t.Emit(f.Message)
			t.Emit(again)
			return false
		}
		return true
	}
}

func statusBack(t *tap) {
	t.sending = func(f frame) {
		if u, tag := f.Update(); tag == "tool_call_update" && u["status"] == "completed" {
			t.Emit(f.Message)
			t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call_update", "toolCallId": u["toolCallId"],
				"status": "in_progress"}))
		}
	}
}

func dropWhenSlow(t *tap) {
	t.out = func(f frame) bool {
		_, tag := f.Update()
		return tag != "tool_call_update" || t.Queued() < 64<<10
	}
}

// callKinds says of tool calls of some kinds that they are of another one.
func callKinds(other string, kinds ...any) func() refagent.Hooks {
	return changeFrame(func(f frame) {
		u, _ := f.Update()
		for _, call := range []object{u, f.Message.Object("params", "toolCall")} {
			if slices.Contains(kinds, call["kind"]) {
				call["kind"] = other
			}
		}
	})
}

// leaveFiles neither deletes nor moves what the user allows, and says that it is done.
func leaveFiles() hooks {
	var due atomic.Bool // the next call that fails is said to be completed
	h := changeOnly("tool_call_update", func(u object) {
		if u["status"] == "failed" && due.CompareAndSwap(true, false) {
			u["status"] = "completed"
		}
	})()
	h.Allowed = func(_, tool, _ string, allowed bool) bool {
		leave := allowed && (tool == "delete_file" || tool == "move_file")
		if leave {
			due.Store(true)
		}
		return allowed && !leave
	}
	return h
}

// waitForBackground keeps back the answer to a prompt whose commands have left something
// running.
func waitForBackground(t *tap) {
	waits := map[string]bool{} // by session
	t.out = func(f frame) bool {
		u, tag := f.Update()
		input, _ := u["rawInput"].(object)
		if command, _ := input["command"].(string); tag == "tool_call" && strings.Contains(command, " & ") {
			waits[f.Session] = true
		}
		return !answers(f, "session/prompt") || !waits[f.Session]
	}
}

// firstLine shows the first line of each text in a tool call.
func firstLine() hooks {
	return changeOnly("tool_call_update", func(u object) {
		for item := range objects(u["content"], "content") {
			if content, text := textOf(item); content != nil {
				content["text"], _, _ = strings.Cut(text, "\n")
			}
		}
		if raw, _ := u["rawOutput"].(object); raw["output"] != nil {
			delete(raw, "output")
		}
	})()
}
