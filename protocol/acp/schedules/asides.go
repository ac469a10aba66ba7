package schedules

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

//go:embed asides.txt
var besides string

// asides returns the table of acts that an editor may add while turns run. The functions here give the conditions,
// values and parts to which the table refers by name.
func asides() *sweep.Acts[*orderWriter] {
	t := &sweep.Acts[*orderWriter]{
		Flags: []string{"cancels", "cancels-other", "slow"},
		Conditions: map[string]func(*orderWriter) bool{
			"mode":   func(w *orderWriter) bool { return w.mode != "" },
			"option": func(w *orderWriter) bool { return w.option[0] != "" },
			"lists":  func(w *orderWriter) bool { return w.Seen.Able["list"] },
			"other":  func(w *orderWriter) bool { return w.order.Others() },
			"next":   func(w *orderWriter) bool { return w.order.Nexts() },
		},
		Values: map[string]func(*orderWriter) script.Word{
			"main": func(w *orderWriter) script.Word { return script.Text(w.Seen.Session) },
		},
		Parts: map[string]func(*orderWriter, *script.Line){
			"cancel-turn":   func(w *orderWriter, l *script.Line) { w.cancel(l.Words[0].Raw()) },
			"set-mode":      func(w *orderWriter, _ *script.Line) { w.set("session/set_mode", `"modeId": "`+w.mode+`"`) },
			"set-option":    func(w *orderWriter, _ *script.Line) { w.setOption() },
			"request":       func(w *orderWriter, l *script.Line) { w.request(l.Words[0].Raw(), l.Words[1]) },
			"second-prompt": func(w *orderWriter, _ *script.Line) { w.second() },
			"take-back":     func(w *orderWriter, _ *script.Line) { w.takeBack() },
		},
	}
	return t.Read(besides)
}

// setOption sets an option of the target's session to the value that it already has.
func (w *orderWriter) setOption() {
	kind := ""
	if w.version.stateEnds {
		kind = `, "type": "id"`
	}
	w.set("session/set_config_option", `"configId": "`+w.option[0]+`", "value": "`+w.option[1]+`"`+kind)
}

// set sends a request about the target's session with additional params.
func (w *orderWriter) set(method, params string) {
	w.request(method, script.Join(script.Quote(`{"sessionId": "`), script.Variable("SESSION("+w.Seen.Session+")"),
		script.Quote(`", `+params+`}`)))
}

// cancel cancels a session. If a turn of the session runs, it records how surely the turn must end as cancelled.
func (w *orderWriter) cancel(session string) {
	w.Key("cancel %s", session)
	t := w.open(session)
	if t == nil || t.cancelled != notCancelled {
		return
	}
	t.cancelled = maybeCancelled
	if !t.contested && t.held() {
		t.cancelled = surelyCancelled
	}
	t.asked = false // the editor answers open permission requests when it cancels
}

// request sends a request that an editor may send at any time, and does not wait for the answer.
func (w *orderWriter) request(method string, params script.Word) {
	if w.open(w.Seen.Session) == nil && !w.begun() {
		w.bad = true // no session is open yet
		return
	}
	w.requests++
	w.Add("request %s %s as %s", method, params, fmt.Sprint("R", w.requests))
}

// begun reports whether the target's session has received a prompt.
func (w *orderWriter) begun() bool {
	return slices.ContainsFunc(w.state, func(t turnState) bool { return t.begun && t.Session == w.Seen.Session })
}

// second sends a prompt to a session whose turn still runs. The agent may refuse the prompt, work on it later, or work
// on it instead of the first prompt. So the scenario awaits any answer to the first prompt.
func (w *orderWriter) second() {
	t := w.open(w.Seen.Session)
	if t == nil || t.contested {
		w.bad = true
		return
	}
	w.contest(t)
	w.Prompt(w.Seen.Session, w.Own("And another thing."), nil, "TWO", sweep.Says("Noted."))
	w.KeepLast()
	w.two = true
}

// takeBack cancels the prompt by its request id. An agent may ignore such a cancel.
func (w *orderWriter) takeBack() {
	t := w.open(w.Seen.Session)
	if t == nil || t.contested || t.asked {
		w.bad = true
		return
	}
	w.contest(t)
	w.Key("cancel-request %s", t.name)
}

// contest records that the turn may now continue in more than one way.
func (w *orderWriter) contest(t *turnState) {
	t.contested = true
	if w.asks {
		w.Add("permit %s", w.choice)
	}
}
