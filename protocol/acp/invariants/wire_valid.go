package invariants

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// wireValid checks that the agent sends no model request that a real API would refuse. After such a request the
// session is unusable, because each further prompt repeats the refused content. The protocol says nothing about
// models, so this rule does not affect the verdict of a conformance run.
func wireValid(w *watch) {
	main := map[int64]int{}   // Seqs of the conversation's requests, by number
	said := map[string]bool{} // arguments that the model gave although they are no JSON
	w.On(func(ev *event) {
		n, _ := ev.body.Get("n").Int()
		switch {
		case ev.Kind == transcript.ModelAnswer:
			cut := false // by the token limit: then the agent knows that the arguments break off
			for step := range ev.body.Get("steps").Items() {
				cut = cut || strings.HasPrefix(step.Str(), "stop:")
			}
			for step := range ev.body.Get("steps").Items() {
				var parts []string
				_, raw, _ := strings.Cut(step.Str(), "\nraw: ")
				if json.NewDecoder(strings.NewReader(raw)).Decode(&parts) == nil && !cut {
					rules.Remember(said, rememberedRequests, strings.TrimSpace(strings.Join(parts, "")), true)
				}
			}
		case ev.Kind == transcript.ModelRequest && ev.converses():
			main[n] = ev.Seq
			w.wholeCalls(ev, said)
		case ev.Kind == transcript.ModelDone && main[n] > 0:
			bad, _ := ev.body.Get("refused").Bool()
			because, after := []int{main[n]}, ""
			if act := ev.conn.lastAct; bad && act != nil {
				because, after = []int{act.seq, main[n]}, fmt.Sprintf(
					" The editor's last message before it is #%d.", act.seq)
			}
			w.judge("refused", bad, ev, "", because, "The model's API refuses the request: %s.%s", ev.body.Get("why").Str(),
				after)
			delete(main, n)
		}
	}, modelEvent)
}

// wholeCalls checks that the arguments of all calls in a model request are complete JSON. A cancel may interrupt the
// model's reply in the middle of a call's arguments. Some APIs refuse a conversation with such a call; others fail to
// read it. said has the arguments that are no JSON in the model's own replies.
func (w *watch) wholeCalls(ev *event, said map[string]bool) {
	a, ok := ev.askedOfModel()
	if !ok {
		return
	}
	for _, p := range a.Conversation() {
		if !p.Calls {
			continue
		}
		args := strings.TrimSpace(p.Text)
		w.judge("half-call", strings.HasPrefix(args, "{") && !said[args] && !json.Valid([]byte(args)), ev, p.Call, nil,
			"The arguments of a call of %s in the model request break off after %q.", p.Name, clip(args))
	}
}
