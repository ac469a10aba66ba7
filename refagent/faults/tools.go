package faults

func toolFaults() []Fault {
	return []Fault{
		{
			Name:    "tool-never-closed",
			Summary: "never gives a final status to any tool call",
			Copies:  "NousResearch/hermes-agent#114395",
			Hooks:   onUpdate(func(u object, tag string) bool { return tag != "tool_call_update" || !final(u["status"]) }),
		},
		{
			Name:    "denied-tool-never-closed",
			Summary: "never gives a final status to a tool call that failed or was denied",
			Copies:  "hawkingrei/agenthub#560",
			Hooks:   onUpdate(func(u object, tag string) bool { return tag != "tool_call_update" || u["status"] != "failed" }),
		},
		{
			Name:    "tool-two-ids",
			Summary: "announces a tool call under one id and carries it out under another",
			Copies:  "evalstate/fast-agent#674",
			Hooks:   with(twoIDs),
		},
		{
			Name:    "tool-update-unannounced",
			Summary: "updates a tool call that was never announced, with an empty id",
			Copies:  "bug-ops/zeph#1003",
			Hooks:   with(ghostTool),
		},
		{
			Name:    "tool-announced-again",
			Summary: "announces a tool call a second time after it ended",
			Copies:  "agentclientprotocol/claude-agent-acp#122",
			Hooks:   with(announceAgain),
		},
		{
			Name:    "tool-status-back",
			Summary: "lets a completed tool call run again and complete again",
			Hooks:   with(statusBack),
		},
		{
			Name:    "tool-never-in-progress",
			Summary: "never says that a tool call runs",
			Copies:  "bug-ops/zeph#928",
			Hooks:   onUpdate(func(u object, tag string) bool { return tag != "tool_call_update" || u["status"] != "in_progress" }),
		},
		{
			Name:    "tool-status-unknown",
			Summary: "gives a failed tool call the status cancelled, which does not exist in v1",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "tool_call_update" && u["status"] == "failed" {
					u["status"] = "cancelled"
				}
				return true
			}),
		},
		{
			Name:    "tool-kind-unknown",
			Summary: "gives a tool call a kind that does not exist",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "tool_call" {
					u["kind"] = "filesystem"
				}
				return true
			}),
		},
		{
			Name:    "tool-without-title",
			Summary: "announces a tool call without a title",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "tool_call" {
					delete(u, "title")
				}
				return true
			}),
		},
		{
			Name:    "tool-content-bare",
			Summary: "puts bare text blocks into the content of a tool call",
			Hooks: onUpdate(func(u object, tag string) bool {
				if list, ok := u["content"].([]any); ok && tag == "tool_call_update" {
					for i, c := range list {
						if o, ok := c.(object); ok && o["type"] == "content" {
							list[i] = o["content"]
						}
					}
				}
				return true
			}),
		},
		{
			Name:    "tool-failure-as-completed",
			Summary: "says completed of a tool call that failed",
			Copies:  "tutti-os/tutti#2574",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "tool_call_update" && u["status"] == "failed" {
					u["status"] = "completed"
				}
				return true
			}),
		},
		{
			Name:    "tools-hidden",
			Summary: "runs tools without showing any of it",
			Copies:  "agentclientprotocol/codex-acp#206",
			Hooks:   onUpdate(func(_ object, tag string) bool { return tag != "tool_call" && tag != "tool_call_update" }),
		},
		{
			Name:    "tool-updates-dropped-when-slow",
			Summary: "drops tool updates while the editor is more than 64 KiB behind with reading",
			Copies:  "NousResearch/hermes-agent#33023",
			Hooks:   with(dropWhenSlow),
		},
	}
}

func twoIDs(t *tap) {
	second := map[any]bool{}
	t.out = func(f frame) bool {
		u, tag := f.Update()
		id, _ := u["toolCallId"].(string)
		if tag != "tool_call_update" {
			return true
		}
		if !second[id] {
			second[id] = true
			t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call", "toolCallId": id + "-run", "title": "Run", "status": "pending"}))
		}
		u["toolCallId"] = id + "-run"
		return true
	}
}

func ghostTool(t *tap) {
	t.out = func(f frame) bool {
		if u, tag := f.Update(); tag == "tool_call_update" && u["status"] == "in_progress" {
			t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call_update", "toolCallId": "", "status": "completed"}))
		}
		return true
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
	t.out = func(f frame) bool {
		if u, tag := f.Update(); tag == "tool_call_update" && u["status"] == "completed" {
			t.Emit(f.Message)
			t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call_update", "toolCallId": u["toolCallId"], "status": "in_progress"}))
		}
		return true
	}
}

func dropWhenSlow(t *tap) {
	t.out = func(f frame) bool {
		_, tag := f.Update()
		return tag != "tool_call_update" || t.Queued() < 64<<10
	}
}
