package mockclient

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

type outcome struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId,omitempty"`
	} `json:"outcome"`
}

// Selected returns the result for a permission request that chooses an option by its id.
func Selected(optionID string) any {
	var o outcome
	o.Outcome.Outcome, o.Outcome.OptionID = "selected", optionID
	return o
}

// CancelledOutcome returns the result for a permission request whose turn was cancelled.
func CancelledOutcome() any {
	var o outcome
	o.Outcome.Outcome = "cancelled"
	return o
}

// permission answers session/request_permission according to the policy, unless a caller of Answer has already
// answered. While it holds mu, it chooses the answer, checks for an earlier cancel, and makes the request visible to
// later cancels. Therefore no cancel is missed.
func (e *Editor) permission(r *Request) {
	a := e.askOf(r)
	pace := e.agent.AnswerDelay()
	e.mu.Lock()
	d := e.policy.decide(a) // always, because the rules count all requests
	if r.answered {
		e.mu.Unlock()
		return
	}
	d.Delay = cmp.Or(d.Delay, pace)
	r.undecided, r.stubborn = false, d.Never || d.AfterCancel
	cancelled := e.cancelledTurn(a.session)
	wait := d.Delay > 0 && !d.Never && !d.Hold
	if wait && !e.over {
		r.timer = time.AfterFunc(d.Delay, func() { e.act(r, d) })
	}
	e.mu.Unlock()
	switch {
	case cancelled && !r.stubborn:
		e.answerCancelled([]*Request{r})
	case d.Never, d.Hold, wait:
	default:
		e.act(r, d)
	}
}

// act sends the answer that was chosen. If the turn was cancelled meanwhile, it sends the outcome cancelled instead,
// because no choice may follow a cancel (ACP v1, Prompt Turn, Cancellation). The check and the append of the answer
// are one step.
func (e *Editor) act(r *Request, d decision) {
	body := func() (any, *RPCError) {
		if !d.AfterCancel && e.cancelledTurn(r.Entry.Session) {
			return CancelledOutcome(), nil
		}
		if d.note != nil {
			d.note.Request = r.Entry.Seq
			e.note(r.Entry.Session, *d.note)
		}
		return d.reply()
	}
	r.respond(body)
	if d.Twice {
		_, _ = e.respond(r, body, true)
	}
}

// cancelledTurn reports whether the session or one of its ancestors has a
// cancelled turn that has not ended. The caller holds mu.
func (e *Editor) cancelledTurn(session string) bool {
	for w := e.sessions[session]; w != nil; w = w.parent {
		if len(w.cancelled) > 0 {
			return true
		}
	}
	return false
}

// openPermissions returns the open permission requests of a session and its descendants that a cancel must answer.
// The caller holds mu.
func (e *Editor) openPermissions(session string) []*Request {
	var open []*Request
	for _, r := range e.requests {
		asks := r.Entry.Method == "session/request_permission" && !r.undecided && !r.stubborn
		if asks && e.family(r.Entry.Session, session) {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, func(a, b *Request) int { return a.Entry.Seq - b.Entry.Seq }) // in order of arrival
	return open
}

func (e *Editor) answerCancelled(open []*Request) {
	for _, r := range open {
		r.respond(func() (any, *RPCError) { return CancelledOutcome(), nil })
	}
}

// AnswerPermission answers a permission request that the policy left open. request is the Seq of the request's entry.
// If the request already has an answer, it gets a second one.
func (e *Editor) AnswerPermission(request int, answer Answer) (transcript.Entry, error) {
	f := e.t.At(request)
	r := &Request{Entry: f, Params: f.JSON().Get("params"), e: e}
	d := choose(answer, e.askOf(r))
	if d.note != nil {
		d.note.Request = request
		e.note(f.Session, *d.note)
	}
	result, rpcErr := d.reply()
	return e.Answer(request, result, rpcErr)
}

// reply returns the result or the error for a decision. The decision must not leave the request open.
func (d decision) reply() (any, *RPCError) {
	switch {
	case d.Error != nil:
		return nil, d.Error
	case d.Result != nil:
		return d.Result, nil
	case d.Cancelled:
		return CancelledOutcome(), nil
	}
	return Selected(d.chosen), nil
}

func (e *Editor) askOf(r *Request) ask { return e.tools.ask(r.Entry.Session, r.Params) }

// ask reads the params of a permission request. It adds what earlier updates said about the tool call.
func (n *toolNames) ask(session string, params wire.Value) ask {
	call := params.Get("toolCall")
	if subject := params.Path("subject.toolCall"); subject.Exists() { // of version 2
		call = subject
	}
	a := ask{session: session, kind: call.Get("kind").Str(), title: call.Get("title").Str()}
	known := n.of(session, call.Get("toolCallId").Str())
	a.kind = cmp.Or(a.kind, known.kind, "other") // "other" is the schema's default
	a.title = cmp.Or(a.title, known.title, params.Get("title").Str())
	a.said = known.said + string(call.Raw())
	for o := range params.Get("options").Items() {
		if id := o.Get("optionId"); id.Kind() == wire.String {
			a.options = append(a.options, option{id.Str(), o.Get("kind").Str()})
		}
	}
	return a
}

// toolNames stores the kind and title of announced tool calls, because a permission request may contain only the
// call's id.
type toolNames struct {
	conn  int
	mu    sync.Mutex
	known map[[2]string]toolName
}

type toolName struct{ kind, title, said string }

// mostTools is the maximum number of tool calls in toolNames, and mostSaid the maximum number of bytes of text for
// each call.
const (
	mostTools = 1 << 16
	mostSaid  = 1 << 16
)

// ends returns raw, or its beginning and its end if it is longer than most bytes.
func ends(raw []byte, most int) string {
	if len(raw) <= most {
		return string(raw)
	}
	half := max(most, 0) / 2
	return string(raw[:half]) + string(raw[len(raw)-half:])
}

func newToolNames(conn int) *toolNames {
	return &toolNames{conn: conn, known: map[[2]string]toolName{}}
}

// observe records the tool calls in a transcript entry. It is called by the transcript and must not call the
// transcript.
func (n *toolNames) observe(f transcript.Entry) {
	if f.Conn != n.conn || f.Source != transcript.Agent {
		return
	}
	if kind := acpframe.Update(f); kind != "tool_call" && kind != "tool_call_update" {
		return
	}
	update := f.JSON().Get("params").Get("update")
	key := [2]string{f.Session, update.Get("toolCallId").Str()}
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.known[key]
	if !ok && len(n.known) >= mostTools {
		return
	}
	if v := update.Get("kind"); v.Kind() == wire.String {
		name.kind = strings.Clone(v.Str())
	}
	if v := update.Get("title"); v.Kind() == wire.String {
		name.title = wire.Clip(strings.Clone(v.Str()), 1000)
	}
	name.said += ends(update.Raw(), mostSaid-len(name.said))
	n.known[key] = name
}

func (n *toolNames) of(session, id string) toolName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[[2]string{session, id}]
}
