package faults

func terminalFaults() []Fault {
	return []Fault{
		fault("terminal-never-released", "never releases a terminal",
			with(neverRelease)).copies("can1357/oh-my-pi#12435"),
		fault("terminal-killed-not-released", "kills a terminal and believes that this releases it", with(func(t *tap) {
			t.out = func(f frame) bool { asMethod(f, "terminal/release", "terminal/kill"); return true }
		})),
		fault("terminal-released-twice", "releases every terminal twice",
			with(func(t *tap) { afterRelease(t, "terminal/release") })),
		fault("terminal-used-after-release", "asks for the output of a terminal it has released",
			with(func(t *tap) { afterRelease(t, "terminal/output") })),
		fault("terminal-unknown", "asks for the output of a terminal that was never created", with(func(t *tap) {
			t.sending = func(f frame) {
				if f.IsRequest() && f.Method == "terminal/wait_for_exit" {
					ghost := clone(f.Message)
					ghost["id"], ghost["method"] = "ghost", "terminal/output"
					ghost.Object("params")["terminalId"] = "term_ghost"
					t.Emit(ghost)
				}
			}
		})),
		fault("terminal-shown-unknown", "shows a terminal in a tool call that does not exist",
			changeUpdate(func(u object, _ string) {
				for o := range objects(u["content"], "terminal") {
					o["terminalId"] = "term_ghost"
				}
			})),
		fault("terminal-shown-too-late", "shows a terminal in a tool call only after its release", with(showLate)),
		fault("terminal-relative-cwd", "starts terminals in the directory \".\"",
			onRequest("terminal/create", func(p object) {
				p["cwd"] = "."
			})),
	}
}

func asMethod(f frame, from, to string) {
	if f.IsRequest() && f.Method == from {
		f.Message["method"] = to
	}
}

// neverRelease answers the agent's own release, which the editor never sees.
func neverRelease(t *tap) {
	t.out = func(f frame) bool {
		if f.IsRequest() && f.Method == "terminal/release" {
			t.give(respond(f.Message["id"], object{}))
			return false
		}
		return true
	}
}

// afterRelease sends another request for a terminal right after its release.
func afterRelease(t *tap, method string) {
	t.out = func(f frame) bool {
		if f.IsRequest() && f.Method == "terminal/release" {
			again := clone(f.Message)
			again["id"], again["method"] = "again-"+key(f.Message["id"]), method
			t.Emit(f.Message)
			t.Emit(again)
			return false
		}
		return true
	}
}

func showLate(t *tap) {
	held := map[string]any{}
	t.sending = func(f frame) {
		u, tag := f.Update()
		id := key(u["toolCallId"])
		if tag != "tool_call_update" {
			return
		}
		if list, _ := u["content"].([]any); len(list) > 0 && list[0].(object)["type"] == "terminal" {
			held[id] = list
			delete(u, "content")
		}
		if final(u["status"]) && held[id] != nil {
			u["content"] = held[id]
		}
	}
}
