package grammar

import (
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
)

// serversApart closes one of two sessions that each have an MCP server of the same name. The other session must keep
// its server.
func (w *writer) serversApart() {
	first, second := w.newConvo(), w.newConvo()
	for _, c := range []*convo{first, second} {
		w.sings(c)
	}
	closed, stays := first, second
	if w.one(2) {
		closed, stays = second, first
	}
	w.Add("session close %s", closed.name)
	closed.gone = true
	w.covered("servers apart", "close")
	w.between(stays, keptServers)
	w.sings(stays)
}

func (w *writer) canSplitServers() bool {
	return w.has("several") && w.ways("close") && w.asked["mcp"] == "" && w.served() && w.works("mcp") &&
		len(w.convos) <= most-2
}

func (w *writer) canLackServers() bool {
	return w.has("several") && w.asked["mcp"] == "" && w.served() && w.works("mcp") && len(w.convos) < most
}

// withoutServers opens a session without MCP servers, and one with them. The agent must not offer the tools of the
// servers in the session without servers.
func (w *writer) withoutServers() {
	bare := &convo{name: w.name("s")}
	w.Add("session new %s servers=none", bare.name)
	order := pick(w.r, bareOrders)
	if order == bareOrders[0] {
		w.plainTurn(bare)
	}
	w.sings(w.newConvo())
	w.plainTurn(bare)
	w.covered("servers apart", order)
}

// bareOrders lists the two orders of the first turns: the session without servers is prompted first, or later.
var bareOrders = []string{"none, first", "none, later"}

// endsConnecting closes the agent's input while the agent connects to an MCP server that never answers. The agent must
// exit nevertheless. No further lines may follow in the scenario.
func (w *writer) endsConnecting() {
	begun := w.name("mute")
	w.Add(`mcp run mute sh -c 'touch "$0"; cat > /dev/null' %s`,
		script.Join(script.Variable("WORK"), script.Text("/"+begun)))
	w.Add("session new %s wait=no as %s", w.name("s"), w.name("N"))
	w.Add("await file %s session=any", begun)
	w.Add("close-stdin")
	w.covered("opening", "end of input")
	w.check("STDIO-007", "leaves-a-mute-server")
	w.Add("await exit")
}

// sings writes a turn in which the model calls the session's MCP server.
func (w *writer) sings(c *convo) {
	text := w.name("lied")
	w.turn(c, reply{w.song(text)}, w.last())
	w.check("SESSION-012", "reaches-its-server")
	w.Add("canary called text=%s", text)
	w.check("", "goes-on")
	c.solid = true
}

func (w *writer) canSingAgain() bool {
	return w.has("tools") && w.asked["mcp"] == "" && w.served() && w.works("mcp")
}

// serverAgain writes a turn in which the model calls the session's MCP server, whose answer is unusual, and then
// another turn with a call. The server must get both calls.
func (w *writer) serverAgain() {
	c := w.inFirstMode()
	if !c.servers {
		c = w.newConvo()
	}
	text := pick(w.r, []string{"wrong", "fail", "silent", "picture", "files", "steps", "crash"})
	w.turn(c, reply{w.song(text)}, w.last())
	w.covered("server again", text)
	if text == "crash" { // an agent need not start the server again
		w.turn(c, reply{w.song(w.name("lied"))}, w.last())
		w.hung = true
		return
	}
	w.sings(c)
}

// song returns a step that calls the session's MCP server with a text.
func (w *writer) song(text string) fakellm.StepNode {
	return tool("mcp", object{"server": w.server, "tool": "canary_sing", "args": object{"text": text}})
}
