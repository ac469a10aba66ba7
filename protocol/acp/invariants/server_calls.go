package invariants

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// serverCall is all that is known about the calls of a server's tool with one text. The text identifies the call.
type serverCall struct {
	asked, seen int    // how many times the model asked for the call, and a server got it
	result      string // result that the model got
	at          int    // Seq of the model request with that result
	said        string // the server's latest answer
	args        any    // arguments that the model gave in its latest call, decoded; nil if unknown
	erred       int    // Seq of a call that the server answered with an error
	open        int    // Seq of a call that the server answers only after the agent gave up; 0 once it has
	over        string // key in serverWatch.over of the server that the model named last
	of          *turn  // turn in which the model last asked for the call
	stopped     bool   // a turn was cancelled before a server got the call
	cancelled   bool   // the turn of the call was cancelled
	failed      bool   // a call of the turn failed, so the server's answer may not have reached the agent
	completed   int    // calls of the turn that completed
	question    int    // Seq of the open permission request about the call, or 0
	denied      int    // Seq of the answer that rejects the call, or 0
}

// reached judges a tool call that has arrived at a server.
func (w *serverWatch) reached(ev *event) {
	text, said := ev.body.Get("text").Str(), ev.body.Get("said").Str()
	s := w.calls[text]
	if s == nil {
		return
	}
	s.seen++
	w.goesOn(ev, s, text)
	w.judgeAsked(ev, s, text)
	w.judgeHeaders(ev, s, text)
	w.judge("twice", s.seen > s.asked, ev, text, nil,
		"The MCP server got %d calls with %q, but the model made %d.", s.seen, clip(text), s.asked)
	w.judge("other-server", s.asked == 1 && s.over != "" && !ev.body.Get("over").Is(s.over), ev, text, nil,
		"The model called %s with %q, but %s got the call.", serverBy(s.over), clip(text),
		serverBy(ev.body.Get("over").Str()))
	if s.asked == 1 && s.args != nil && len(ev.Redacted) == 0 && !w.sameArgs(ev, s, text) {
		return
	}
	s.said = said
	if s.asked == 1 && s.at > 0 && said != "" && !s.stopped && len(ev.Redacted) == 0 && (!s.failed || w.mixedUp(s)) {
		w.judge("result", !holds(s.result, said), ev, text, []int{s.at},
			"The MCP server answered %q, but the result of that call in the model request is %q (without white space).",
			clip(said), clip(s.result))
		also := ev.body.Get("also").Str()
		w.judge("result", also != "" && holds(s.result, said) && !holds(s.result, also), ev, text, []int{s.at},
			"The MCP server answered in two texts. The result of that call in the model request lacks the second: %q.",
			clip(also))
	}
}

// goesOn stores how the server handles a call: it exits, leaves the call open or answers with an error.
func (w *serverWatch) goesOn(ev *event, s *serverCall, text string) {
	if u := w.over[ev.body.Get("over").Str()]; text == "crash" && u != nil {
		u.ended = true // the stand-in server obeys this text
	}
	if open, _ := ev.body.Get("open").Bool(); open {
		s.open = ev.Seq
	}
	if failed, _ := ev.body.Get("failed").Bool(); failed {
		s.erred = ev.Seq
	}
}

// judgeHeaders reports a call that reached a server with the header of another session.
func (w *serverWatch) judgeHeaders(ev *event, s *serverCall, text string) {
	owner := w.owners[ev.body.Get("number").Str()]
	if owner == "" || s.asked != 1 || s.of == nil {
		return
	}
	own := s.of.session.id
	w.judge("headers", owner != own && slices.Contains(slices.Collect(maps.Values(w.owners)), own), ev, text, nil,
		"The model called a tool of an MCP server with %q in session %s, but the server got the call with a header that "+
			"the editor gave for session %s.", clip(text), own, owner)
}

// sameArgs judges the arguments of a call. The result is false if they cannot be read.
func (w *serverWatch) sameArgs(ev *event, s *serverCall, text string) bool {
	is, got := any(map[string]any{"text": text}), ev.body.Get("args")
	if got.Exists() && json.Unmarshal(got.Raw(), &is) != nil {
		return false
	}
	w.judge("arguments", !reflect.DeepEqual(is, s.args), ev, text, nil,
		"The model called the tool with %s, but the MCP server got %s.", clip(fmt.Sprint(s.args)), clip(fmt.Sprint(is)))
	return true
}

// mixedUp reports whether the result of s contains the server's answer to another call.
func (w *serverWatch) mixedUp(s *serverCall) bool {
	for _, other := range w.calls {
		if other != s && other.said != "" && holds(s.result, other.said) {
			return true
		}
	}
	return false
}

// called counts the calls of a server's tool in a model reply.
func (w *serverWatch) called(ev *event) {
	if t := w.state.turnOf(ev); t != nil {
		rules.Remember(w.wished, rememberedRequests, t, w.wished[t]+len(called(ev.body.Get("steps"))))
		rules.Remember(w.only, rememberedRequests, t, onlyCall(ev.body.Get("steps")))
	}
	for step := range ev.body.Get("steps").Items() {
		if !strings.HasPrefix(step.Str(), `tool: "mcp"`) {
			continue
		}
		text := member(step.Str(), "text")
		if text == "" {
			continue
		}
		if w.calls[text] == nil {
			rules.Remember(w.calls, rememberedRequests, text, &serverCall{})
		}
		if s := w.calls[text]; s != nil {
			s.asked++
			s.of = w.state.turnOf(ev)
			s.over = w.named[member(step.Str(), "server")]
			s.args = argsOf(step.Str())
		}
	}
}

// onlyCall returns the text of the call of a server's tool if a reply makes no other call, or "".
func onlyCall(steps wire.Value) (text string) {
	if all := made(steps); len(all) != 1 || all[0] != "mcp" {
		return ""
	}
	for step := range steps.Items() {
		if strings.HasPrefix(step.Str(), `tool: "mcp"`) {
			text = member(step.Str(), "text")
		}
	}
	return text
}

// member returns the string value of the first member called name in a step of a script, or "".
func member(step, name string) (text string) {
	_, after, _ := strings.Cut(step, `"`+name+`": `)
	if json.NewDecoder(strings.NewReader(after)).Decode(&text) != nil {
		return ""
	}
	return text
}

// argsOf returns the decoded arguments for the server's tool in a step of a script, or nil if they are not JSON.
func argsOf(step string) any {
	_, args, _ := strings.Cut(step, "\nargs: ")
	args, _, _ = strings.Cut(args, "\n")
	var of struct{ Args any }
	if json.Unmarshal([]byte(args), &of) != nil {
		return nil
	}
	return of.Args
}

// results stores the results that the model got for calls of servers' tools.
func (w *serverWatch) results(ev *event, a fakellm.Asked) {
	calls := map[string]string{}
	for _, p := range a.Conversation() {
		switch {
		case p.Calls && p.Call != "":
			if args, err := wire.Parse([]byte(p.Text)); err == nil {
				calls[p.Call] = args.Get("text").Str()
			}
		case p.Who == "result":
			if s := w.calls[calls[p.Call]]; s != nil && s.at == 0 {
				s.result, s.at = hearing.Loose(p.Text), ev.Seq
			}
		}
	}
}

// calledIn checks that a server got a call of the turn that has just ended, and that the editor was told if the call
// failed. The latter is judged only if the turn shows as many completed calls as the model made.
func (w *serverWatch) calledIn(ev *event, s *serverCall, text string) {
	w.judge("completed", s.erred > s.of.started && !s.failed && s.completed == w.wished[s.of] && s.of.alone(),
		ev, text, []int{s.erred},
		"The MCP server answered the call with %q with an error, but the agent reported each call of the turn as "+
			"completed.", clip(text))
	u := w.over[s.over]
	if s.at == 0 || u == nil || u.listed == 0 {
		return
	}
	lost := s.seen == 0 && !s.stopped && !u.ended && !w.refused[s.of] && !w.strict[ev.Session] && s.of.alone()
	w.judge("not-called", lost, ev, text, []int{s.at}, "The model called a tool of %s with %q and "+
		"got a result, but the server got no call. The result is %q (without white space).", serverBy(s.over),
		clip(text), clip(s.result))
}
