package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Agent draws a scenario in which a broken or odd agent talks to an editor. The scenario is for version 2 of ACP if v2
// is set, else for version 1. The same state of r gives the same scenario. Only the rules for editors judge the run.
func Agent(r *rand.Rand, v2 bool) []byte {
	a := agentWriter{r: r, v2: v2}
	protocol := ""
	if v2 {
		protocol = "protocol acp-v2\n"
	}
	fmt.Fprintf(&a.text, "# A drawn agent.\n%srole agent\ntag drawn\n", protocol)
	if r.IntN(4) == 0 {
		a.block("on connect", func() { a.noise() })
	}
	a.block("on new nth=1", func() {
		a.some(2, a.update)
		a.line("result '{\"sessionId\":\"$SESSION\"}'")
		a.some(2, a.update)
	})
	if r.IntN(3) == 0 {
		a.block("on cancel", func() { a.some(2, a.update) })
	}
	for nth := 1; nth <= 1+r.IntN(2); nth++ {
		a.block(fmt.Sprintf("on prompt nth=%d", nth), a.turn)
	}
	return []byte(a.text.String())
}

// agentWriter writes a scenario while it is drawn.
type agentWriter struct {
	r      *rand.Rand
	v2     bool
	text   strings.Builder
	indent string
	asked  []string // names of requests whose answers the script does not await yet
	n      int      // counter for names and texts
	over   bool     // the connection has ended
}

func (a *agentWriter) line(format string, args ...any) {
	fmt.Fprintf(&a.text, a.indent+format+"\n", args...)
}

func (a *agentWriter) block(head string, do func()) {
	a.line("%s {", head)
	a.indent += "\t"
	do()
	a.indent = a.indent[1:]
	a.line("}")
}

// some calls do a drawn number of times, at most n.
func (a *agentWriter) some(n int, do func()) {
	for range a.r.IntN(n + 1) {
		do()
	}
}

// turn writes the agent's part of a turn: some acts, one end, and perhaps acts after the end.
func (a *agentWriter) turn() {
	a.asked, a.over = nil, false
	for range 1 + a.r.IntN(8) {
		switch a.r.IntN(9) {
		case 0:
			a.block(fmt.Sprintf("split %d", pick(a.r, []int{17, 1000, 65536})), func() { a.some(3, a.update) })
		case 1:
			a.noise()
		case 2, 3, 4:
			a.request()
		case 5:
			a.await()
		default:
			a.update()
		}
	}
	a.end()
	if !a.over {
		a.some(2, a.update)
		a.some(1, a.request)
		a.await()
	}
}

// end writes the end of the turn, or the exit of the agent.
func (a *agentWriter) end() {
	switch a.r.IntN(12) {
	case 0:
		a.line("%s", pick(a.r, []string{"die", "exit 0", "exit 3"}))
	case 1:
		a.line("%s", `write '{"jsonrpc":"2.0","method":"session/upd'`)
		a.line("die")
	case 2:
		a.line("close")
		a.line("await cancel within=2s")
		a.line("exit 1")
	case 3: // it hangs until it is cancelled, or for good
		a.line("await cancel within=20s")
		a.line("%s", pick(a.r, []string{"end cancelled", "exit 1"}))
		return
	case 4:
		a.line("error %s 'drawn'", pick(a.r, []string{"-32603", "-32000", "-32602", "7"}))
		return
	default:
		a.await()
		a.line("end %s", pick(a.r, []string{"end_turn", "end_turn", "end_turn", "max_tokens", "refusal", "_drawn"}))
		return
	}
	a.over = true
}

// await writes lines that wait for most of the open answers.
func (a *agentWriter) await() {
	for _, name := range a.asked {
		if a.r.IntN(4) > 0 {
			a.line("await %s within=5s", name)
		}
	}
	a.asked = nil
}

// update writes one session update.
func (a *agentWriter) update() {
	a.n++
	id := fmt.Sprintf("call-%d", a.r.IntN(3))
	session := pick(a.r, []string{"", "", "", "", " session=session-2", " session=nobody"})
	switch a.r.IntN(12) {
	case 0:
		a.line("tool %s 'Tool %d' kind=%s status=%s", id, a.n,
			pick(a.r, []string{"read", "edit", "execute", "other", "_brew"}),
			pick(a.r, []string{"pending", "in_progress", "completed", "failed"}))
	case 1:
		a.line("tool-update %s status=%s text='part %d'", id, pick(a.r, []string{"in_progress", "completed", "failed"}), a.n)
	case 2:
		a.line("thought 'Thought %d.'", a.n)
	case 3:
		a.line("large %d", pick(a.r, []int{4096, 70000, 1 << 20, 3 << 20}))
	case 4:
		a.line("notify %s '{\"n\":%d}'", pick(a.r, []string{"_drawn/progress", "no/such_method"}), a.n)
	case 5:
		a.line("update '{\"sessionUpdate\":%q,\"n\":[%d,null,{}]}'%s",
			pick(a.r, []string{"_drawn", "of_the_future"}), a.n, session)
	case 6:
		a.line(`update '{"sessionUpdate":"available_commands_update",`+
			`"availableCommands":[{"name":"c%d","description":"d"}]}'%s`, a.n, session)
	case 7:
		a.line(`update '{"sessionUpdate":"agent_message_chunk","messageId":"m-%d","content":{"type":"text","text":"%s"},`+
			`"_meta":{"drawn":true}}'%s`, a.n, pick(a.r, []string{"", "é☃", "\\n", "*bold*", "x"}), session)
	default:
		a.line("text 'Text %d. '", a.n)
	}
}

// works has requests about files and terminals. No editor can carry out some of them.
var works = [][2]string{
	{"fs/read_text_file", `"path":"$WORK/drawn.txt"`},
	{"fs/read_text_file", `"path":"$WORK"`},
	{"fs/write_text_file", `"path":"$WORK/drawn.txt","content":"drawn"`},
	{"fs/write_text_file", `"path":"$WORK","content":"drawn"`},
	{"terminal/create", `"command":"acp-test-no-such-program"`},
	{"terminal/create", `"command":"true","cwd":"$WORK/no-such-folder"`},
	{"terminal/output", `"terminalId":"nobody"`},
}

// request writes a request to the editor, with an id of any type.
func (a *agentWriter) request() {
	a.n++
	name := fmt.Sprintf("R%d", a.n)
	a.asked = append(a.asked, name)
	id := pick(a.r, []string{"", "", fmt.Sprintf(` id='"%d-0c6f2b1e-8f5d"'`, a.n), fmt.Sprintf(" id=%d", a.n),
		fmt.Sprintf(" id=-%d", a.n), fmt.Sprintf(" id=%d", int64(1)<<53-int64(a.n)), fmt.Sprintf(` id='"%d"'`, a.n)})
	call := fmt.Sprintf("call-%d", a.r.IntN(3))
	switch options := pick(a.r, []string{"allow_once:yes reject_once:no", "reject_once:a reject_always:b",
		"allow_once:yes",
		"allow_always:7 allow_once:8 reject_once:9"}); a.r.IntN(8) {
	case 0, 1, 2:
		a.line("permission %s %s title='Ask %d' as %s", call, options, a.n, name)
	case 3:
		a.line(`request session/request_permission '{"sessionId":"$SESSION",%s"options":[{"optionId":"y","name":"Yes",`+
			`"kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}'%s as %s`, a.subject(call), id, name)
	case 4:
		a.line("request %s '{\"n\":%d}'%s as %s", pick(a.r, []string{"_drawn/ask", "no/such_method"}), a.n, id, name)
	default:
		work := pick(a.r, works)
		a.line(`request %s '{"sessionId":"$SESSION",%s}'%s as %s`, work[0], work[1], id, name)
	}
}

// subject returns the members of a permission request that identify the tool call.
func (a *agentWriter) subject(call string) string {
	tool := fmt.Sprintf(`"toolCall":{"toolCallId":%q,"title":"T"}`, call)
	if a.v2 {
		return fmt.Sprintf(`"title":"T","subject":{"type":"tool_call",%s},`, tool)
	}
	return tool + ","
}

// noise writes output that is not a message.
func (a *agentWriter) noise() {
	a.line("%s", pick(a.r, []string{`write '\n\n'`, `write 'Drawn agent, version 1\n'`, `write '"a string"\n'`,
		"stderr 'drawn' bytes=9000"}))
}
