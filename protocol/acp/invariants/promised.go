package invariants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// busyPromised checks how the agent treats a prompt to a busy session. The specification does not say what an agent
// must do, so the check needs a promise in the profile or the scenario.
func busyPromised(w *watch) {
	promise := w.Config().Busy
	if promise == "" {
		return
	}
	w.inTurn(func(ev *event, t *turn) {
		if !t.concurrent {
			return
		}
		w.Saw("refused", "taken")
		if t.cancel != nil || t.close != nil || t.request.back != nil {
			return
		}
		busy := slices.ContainsFunc(ev.conn.pending(t.request.by), func(r *request) bool {
			return r.verb == prompt && r.session == t.session && r.seq < t.started
		})
		denied := ev.err.Exists() || ev.stop == "refusal"
		switch object := fmt.Sprint(t.started); {
		case promise == "reject" && !denied && ev.stop != "cancelled" && t.amid:
			w.find("taken", ev, object, []int{t.started},
				"A prompt to a busy session ended with %s; the profile says that the agent refuses such prompts.",
				ev.stop)
		case promise != "reject" && denied && busy:
			w.find("refused", ev, object, []int{t.started},
				"The agent refused a prompt to a busy session; the profile says %s.", promise)
		}
	}, answered(prompt))
}

// promisedKinds maps a neutral tool to the kind of its tool calls.
var promisedKinds = map[string]string{"write_file": "edit", "edit_file": "edit", "delete_file": "delete",
	"move_file": "move", "run_shell": "execute", "read_file": "read", "search": "search", "fetch": "fetch"}

// askPromised checks that the agent asks the user before the actions that its profile names. The agent need not ask
// once the user has chosen an allow-always or reject-always option, another mode or another config value.
func askPromised(w *watch) {
	promised := map[string]bool{}
	for _, tool := range w.Config().Asks {
		promised[promisedKinds[tool]] = true
	}
	if len(promised) == 0 {
		return
	}
	type call struct {
		of *session
		id string
	}
	kinds, asks, free := map[call]string{}, map[*tool]bool{}, map[*session]bool{}
	w.On(func(ev *event) {
		if ev.tool != nil {
			rules.Remember(asks, rememberedTools, ev.tool, true)
		}
	}, asked(permission))
	w.On(func(ev *event) {
		if o, _ := ev.chosen(); strings.HasSuffix(o.kind, "_always") {
			free[ev.session] = true
		}
	}, answered(permission))
	w.On(func(ev *event) { free[ev.session] = true }, asked(setMode), asked(setOption))
	w.On(func(ev *event) {
		t, of := ev.tool, call{ev.session, ev.update.Get("toolCallId").Str()}
		if kind := ev.update.Get("kind").Str(); kind != "" {
			rules.Remember(kinds, rememberedTools, of, kind) // ev.tool is nil for the first entry about a call
		}
		if t == nil || t.turn == nil || t.turn.mixed || !promised[kinds[of]] || ev.session.created == 0 ||
			free[ev.session] || w.version.readStatus(ev.update.Get("status")) != completed {
			return
		}
		w.judge("unasked", !asks[t], ev, t.id, []int{t.first},
			"The agent completed tool call %q of kind %s without asking the user; the profile says that it asks.",
			t.id, kinds[of])
	}, toolCall, toolUpdate)
}

// backPromised checks that the agent stops a prompt after $/cancel_request, if its profile promises that. An answer to
// a later request proves that the agent had read the cancel. Model output after that answer proves that the agent went
// on.
func backPromised(w *watch) {
	if !w.Config().Stops {
		return
	}
	type answer struct{ to, seq int } // the latest answered request, and the Seq of the answer
	read, said := map[*conn]answer{}, map[string]int{}
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelChunk {
			said[ev.Session] = ev.Seq
		}
	}, modelEvent)
	w.On(func(ev *event) {
		t, last := ev.request.turn, read[ev.conn]
		if ev.request.seq > last.to {
			read[ev.conn] = answer{ev.request.seq, ev.Seq}
		}
		if t == nil || ev.request.verb != prompt || t.request.back == nil || t.cancel != nil || t.close != nil {
			return
		}
		back := t.request.back.seq
		stopped := ev.err.Exists() || ev.stop == "cancelled"
		if !stopped && last.to < back {
			return // the agent need not have read the cancel
		}
		// If the model said nothing more, the agent had already finished.
		w.judge("goes-on", !stopped && said[t.session.id] > last.seq, ev, fmt.Sprint(t.started), []int{t.started, back},
			"The client cancelled the prompt, but it went on and ended with %s; the profile says that it stops.",
			ev.stop)
	}, agentAnswers()...)
}
