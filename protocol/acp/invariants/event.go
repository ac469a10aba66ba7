package invariants

import (
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// event is one entry and what the world knew of it before it came.
type event struct {
	transcript.Entry
	topic   topic
	verb    verb
	conn    *conn
	session *session
	// request is what a response answers, if that was still open.
	request *request
	// turn is the turn that a prompt's response ends, else the open turn.
	turn  *turn
	tool  *tool
	body  wire.Value
	frame wire.Frame
	// params, result and err are the parts of a frame; update is the update
	// of a session/update.
	params, result, err, update wire.Value
	options                     []option // config options in the frame
	hasOptions                  bool
	modes                       *modeState
	stop                        string
	problems                    []schema.Problem
	model                       *modelAsked
}

// modelAsked is a request of the model, once some rule has read it.
type modelAsked struct {
	fakellm.Asked
	ok bool
}

// askedOfModel returns what a request asks the model; ok is false if it asks for no answer, or cannot be read.
func (ev *event) askedOfModel() (fakellm.Asked, bool) {
	if ev.model == nil {
		a, ok := fakellm.ReadAsked(ev.Entry)
		ev.model = &modelAsked{a, ok}
	}
	return ev.model.Asked, ev.model.ok
}

// tag is the kind of a session/update, as the agent wrote it.
func (ev *event) tag() string { return ev.update.Get("sessionUpdate").Str() }

// text is the text of a piece of a message or thought, "" if it has none.
func (ev *event) text() string { return ev.update.Get("content").Get("text").Str() }

// succeeded reports whether a response is a result.
func (ev *event) succeeded() bool { return ev.result.Exists() }

// code is the code of an error response, 0 if there is none.
func (ev *event) code() int64 {
	n, _ := ev.err.Get("code").Int()
	return n
}
