package fakellm

import (
	"encoding/json"

	"github.com/acp-test/acp-test/internal/yamlfile"
)

// NewScript returns a script with these turns, one for each prompt. The error
// is a *mistake.Mistake about the script as Document.Format writes it.
func NewScript(turns ...TurnNode) (*Script, error) {
	d := Document{Turns: turns}
	return ParseScript("script", []byte(d.Format()), nil)
}

// NewTurn returns what the model says after one prompt: a reply to each request
// of the agent. After a reply that calls tools, the agent asks again.
func NewTurn(replies ...ReplyNode) TurnNode { return TurnNode{Replies: replies} }

// NewReply returns what the model says to one request.
func NewReply(steps ...StepNode) ReplyNode { return ReplyNode{Steps: steps} }

// Text returns a step that says a text, each piece in a chunk of its own.
func Text(pieces ...string) StepNode { return NewText("text", pieces...) }

// CallTool returns a step that calls a tool: a neutral one, such as write_file,
// or the agent's own. Arguments that JSON cannot hold make the script invalid.
func CallTool(name string, args map[string]any) StepNode {
	raw, err := json.Marshal(args)
	if err != nil {
		raw = yamlfile.Quote(nil, err.Error())
	}
	return NewStep("tool", string(yamlfile.Quote(nil, name)), "args: "+string(raw))
}

// HoldAt returns a step at which the stream is held until Server.Release is
// called with the gate's name.
func HoldAt(gate string) StepNode { return NewStep("gate", string(yamlfile.Quote(nil, gate))) }
