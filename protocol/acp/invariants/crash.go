package invariants

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// crashed checks that the agent runs until its input ends. The agent must not exit with a failure, nor die of a signal
// that nobody sent. A mistake of the editor does not excuse the agent's exit.
func crashed(w *watch) {
	noise := map[*conn]int{} // Seq of the editor's latest line that is not a message
	w.On(func(ev *event) { noise[ev.conn] = ev.Seq }, editorNoise)
	w.On(func(ev *event) {
		c := ev.conn
		if ev.Kind != transcript.Exited {
			return
		}
		w.Saw("working", "idle", "garbage")
		if closed, _ := ev.JSON().Get("closed").Bool(); closed && c.initDone == 0 {
			return // the connection was never established; the recorded failure explains why
		}
		if c.closedIn > 0 || c.signalled > 0 {
			return
		}
		how := failure(ev)
		open := c.owing()
		switch {
		case how == "":
		case noise[c] > 0:
			w.find("garbage", ev, "", []int{noise[c]},
				"The agent %s after a line that is not a message; its input was still open.", how)
		case open != nil:
			w.find("working", ev, "", []int{open.seq},
				"The agent %s while the client's %s waited for an answer.", how, open.method)
		default:
			w.find("idle", ev, "", nil, "The agent %s although its input was still open.", how)
		}
	}, processEvent)
}

// failure describes how a process failed. It returns "" if the process succeeded. It also returns "" if the editor may
// have ended the process: a recorder does not see the signals that its editor sends.
func failure(ev *event) string {
	exit := ev.JSON()
	if nested := exit.Get("exit"); nested.Exists() {
		exit = nested
	}
	name := exit.Get("signal").Str()
	code, _ := exit.Get("code").Int()
	closed, _ := exit.Get("closed").Bool()
	switch {
	case closed:
		return "closed its connection"
	case slices.Contains([]string{"SIGHUP", "SIGINT", "SIGTERM", "SIGKILL", "SIGPIPE"}, name):
		return ""
	case name != "":
		return "died of " + name
	case code == 0, slices.Contains([]int64{128 + 1, 128 + 2, 128 + 9, 128 + 13, 128 + 15}, code): // same signals
		return ""
	}
	return fmt.Sprintf("exited with status %d", code)
}

// owing returns the editor's oldest request that the agent has not answered, or nil.
func (c *conn) owing() (oldest *request) {
	for _, r := range c.open {
		if r.by == rules.OfClient && (oldest == nil || r.seq < oldest.seq) {
			oldest = r
		}
	}
	return oldest
}
