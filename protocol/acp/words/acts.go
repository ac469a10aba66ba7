package words

import (
	"context"

	"github.com/acp-test/acp-test/scenarios"
)

func actCommands() []*scenarios.Command {
	return []*scenarios.Command{{
		Name: "initialize", Group: "acts", Args: "[version=N]", Captures: true,
		Summary: "send initialize and wait for the answer",
		Detail:  "An error answer is a failure, unless the line has a name: then the script judges it.",
		Compile: compileInitialize,
	}, {
		Name: "authenticate", Group: "acts", Alone: true, Args: "METHOD", Captures: true,
		Summary: "send authenticate and wait for the answer", Compile: compileCall("authenticate", "methodId"),
	}, {
		Name: "logout", Group: "acts", Alone: true, Captures: true,
		Summary: "send logout and wait for the answer", Compile: compileCall("logout", ""),
	}, {
		Name: "session", Group: "acts", Cuts: true,
		Args: "new|load|resume|close|delete|fork NAME [of=NAME] [id=TEXT] [cwd=DIR] [add=DIR]… [meta=JSON] " +
			"[wait=no] | list [cwd=DIR] [cursor=TEXT] | list all [NAME…] [cwd=DIR]", Captures: true,
		Summary: "open, list or end a session and wait for the answer",
		Detail: "NAME is the script's name for the session. load and resume use the id the name\n" +
			"already has, or id=; id=like:NAME is an id that no session has, written like that\n" +
			"of NAME. fork opens one with the conversation of another, of=. cwd is\n" +
			"relative to the workspace. An error answer is a failure, unless the line has a\n" +
			"name: then the script judges it. wait=no only sends.\n" +
			"list all follows the cursors to the end: no cursor and no session may come\n" +
			"twice, and each NAME has to be there.",
		Compile: compileSession,
	}, {
		Name: "prompt", Group: "acts", Captures: true,
		Args:    "[NAME] TEXT [attach=FILE]… [blocks=JSON] [meta=JSON] [key=TEXT]",
		Summary: "send a prompt, and do not wait for the end of the turn",
		Detail: "Starts the agent, initializes it and opens a session with defaults unless the\n" +
			"script did. attach= adds a file of the workspace, and none outside: as an image or\n" +
			"audio block by its extension, embedded if the agent takes embedded context, else as a link. An\n" +
			"agent may look into a picture: give it a real one, as -- dot.png.base64 --.\n" +
			"blocks= gives all content blocks instead of one with the text; meta= is _meta; key= is\n" +
			"the idempotencyKey of version 2, with which send-again may repeat it.\n" +
			"Each prompt's text must be unique in the scenario: the model's turns are found by it.",
		Compile: compilePrompt,
	}, {
		Name: "cancel", Group: "acts", Cuts: true, Args: "[NAME]", Captures: true,
		Summary: "send session/cancel",
		Detail:  "Open permission requests of the session are answered cancelled, unless permit says\notherwise.",
		Compile: func(l *scenarios.Line) scenarios.Step {
			name := l.TakeSession(0, openIt)
			l.AtMost(0)
			return inSession(l, name, func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error {
				return notify(ctx, b, l, s, "session/cancel", map[string]any{"sessionId": s.ID})
			})
		},
	}, {
		Name: "send-again", Group: "acts", Args: "REF", Captures: true,
		Summary: "send a request again as it was, with a new id, and do not wait",
		Detail: "An editor does so that lost the answer. REF is the name of the line that sent it. The\n" +
			"specification allows it for all requests except session/new, session/fork, and a prompt\n" +
			"without key=.",
		Compile: compileSendAgain,
	}, {
		Name: "cancel-request", Group: "acts", Cuts: true, Args: "REF", Captures: true,
		Summary: "send $/cancel_request for a request a line above named",
		Compile: compileCancelRequest,
	}, {
		Name: "answer", Group: "acts", Args: "REF CHOICE | REF result=JSON | REF error=CODE|JSON", Captures: true,
		Summary: "answer a request of the agent that is held",
		Detail: "REF is the name of the line that awaited it. CHOICE is an option kind or\n" +
			"cancelled for a permission. Answering twice, or with what was not offered\n" +
			"(id=OPTION), breaks the protocol on purpose.",
		Compile: compileAnswer,
	}, {
		Name: "set-mode", Group: "acts", Args: "[NAME] MODE", Captures: true,
		Summary: "send session/set_mode and wait for the answer",
		Compile: compileSet("session/set_mode", "modeId", ""),
	}, {
		Name: "set-option", Group: "acts", Args: "[NAME] ID VALUE", Captures: true,
		Summary: "send session/set_config_option and wait for the answer",
		Detail:  "true and false are sent as booleans.",
		Compile: compileSet("session/set_config_option", "configId", "value"),
	}, {
		Name: "request", Group: "acts", Args: "METHOD [JSON]", Captures: true,
		Summary: "send any request, and do not wait",
		Detail:  "Name it (as R) and await response R. Variables in JSON are expanded.",
		Compile: compileRaw(true),
	}, {
		Name: "notify", Group: "acts", Args: "METHOD [JSON]", Captures: true,
		Summary: "send any notification", Compile: compileRaw(false),
	}}
}
