package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mockclient"
)

// converse takes one prompt after the other until the input ends. A turn that does not
// end well is no end of that, unless the agent is gone.
func (t *Client) converse(ctx context.Context) (string, error) {
	t.screen.tell("help", "Enter sends, Tab completes the agent's commands, Ctrl-C cancels a turn, Ctrl-D or /exit ends")
	t.conversing.Store(true)
	for {
		text, err := t.options.Console.line(ctx, t.slashes)
		switch text = strings.TrimSpace(text); {
		case errors.Is(err, io.EOF), err == nil && text == "/exit" && !slices.Contains(t.slashes(), "/exit"):
			return "end_turn", nil
		case err != nil:
			return "", err
		case text == "":
			continue
		}
		stop, err := t.turn(ctx, text)
		var rpc *mockclient.RPCError
		switch {
		case err != nil && !errors.As(err, &rpc):
			return "", err
		case err != nil:
			stop = "failed: " + err.Error()
		case stop != "end_turn":
			stop = fmt.Sprintf("ended with %q", stop)
		default:
			stop = ""
		}
		t.screen.await(ctx, t.log.Len())
		if stop != "" {
			t.screen.tell("turn", OneLine(stop))
		}
		t.interrupted.Store(0)
		t.late.Store(false)
	}
}

// slashes are the agent's commands as the user types them, from its latest list.
func (t *Client) slashes() []string {
	var names []string
	latest := mockclient.Updated("available_commands_update")
	for after := 0; ; {
		o := t.log.Judge(after, -1, latest)
		if after = o.Entry.Seq; after == 0 {
			return names
		}
		if o.Entry.Session == t.session.ID {
			names = nil
			for c := range t.log.At(after).JSON().Path("params.update.availableCommands").Items() {
				names = append(names, "/"+OneLine(c.Get("name").Str()))
			}
		}
	}
}
