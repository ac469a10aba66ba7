package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// userEcho checks that the agent does not send the prompt of an open turn back to the editor.
func userEcho(w *watch) {
	w.inTurn(func(ev *event, t *turn) {
		if ev.session.window != nil {
			return
		}
		if text := ev.text(); strings.TrimSpace(text) != "" && strings.Contains(t.text, text) {
			w.find("echo", ev, "", []int{t.started},
				"The agent sent the user's prompt back as user_message_chunk; clients show it twice.")
		}
	}, userChunk)
	w.On(func(*event) { w.Saw("echo") }, answered(prompt))
}

// msgRuns checks that no other message interrupts the chunks of a message.
func msgRuns(w *watch) {
	x := &messageIDs{watch: w, of: map[*session]*ids{}, says: map[*turn]*saying{}, earlier: earlierIDs{
		replayed: w.version.states, said: map[*session]saidIDs{}, replays: map[*session]saidIDs{},
		latest: map[string]*session{}, mixed: map[string]bool{}}}
	if !w.version.states {
		w.On(x.model, modelEvent)
		w.onEnd(func(ev *event) { delete(x.says, ev.turn) })
	}
	w.On(func(ev *event) { delete(x.of, ev.session) }, asked(loadSession), answered(loadSession), asked(resumeSession))
	w.On(x.earlier.loads, asked(loadSession))
	w.On(x.earlier.resumes, asked(resumeSession))
	w.On(x.earlier.loaded, answered(loadSession))
	w.On(x.earlier.made, answered(newSession), answered(deleteSession))
	w.onEnd(x.earlier.turnEnded)
	w.inSession(x.chunk, messages()...)
	w.inSession(func(ev *event, s *session) {
		if m := x.of[s]; m != nil && !isMessage(ev.topic) {
			m.other = ev.Seq
		}
	}, allUpdates()...)
}

type messageIDs struct {
	*watch
	of      map[*session]*ids
	says    map[*turn]*saying // by turn, the model's latest reply
	earlier earlierIDs
}

// saying is a reply of the model: the number of its texts, what it has said without white space, how many bytes of that
// the agent has sent, and the latest chunk with a part of that. former has what earlier replies of the turn said: their
// chunks may come late.
type saying struct {
	n      int // number of the model request
	texts  int
	said   strings.Builder
	sent   int
	former string
	id     string
	seq    int
	line   bool // that chunk ends a line
}

// formerText is how many bytes of earlier replies are remembered.
const formerText = 64 << 10

// model handles a model request or a piece of a model reply.
func (x *messageIDs) model(ev *event) {
	t := x.state.turnOf(ev)
	if t == nil {
		return
	}
	switch m := x.says[t]; {
	case ev.Kind == transcript.ModelRequest:
		if !ev.converses() || ev.Session != t.session.id {
			return
		}
		next := &saying{n: ev.number()}
		if m != nil {
			next.former = m.former + m.said.String()
			next.former = next.former[max(0, len(next.former)-formerText):]
		}
		rules.Remember(x.says, rememberedRequests, t, next)
	case m == nil || ev.number() != m.n:
	case ev.Kind == transcript.ModelAnswer:
		for s := range ev.body.Get("steps").Items() {
			if strings.HasPrefix(s.Str(), "text:") || strings.HasPrefix(s.Str(), "refusal:") {
				m.texts++
			}
		}
	case ev.Kind == transcript.ModelChunk && ev.body.Get("says").Is("text") && m.said.Len() < rememberedText:
		m.said.WriteString(bare(fakellm.ChunkText(ev.body)))
	}
}

// inPieces checks that a single text of a model reply has a single message id. before is the Seq of the session's
// message chunk before this one. An agent may have a reason to begin a message behind a long text, at a new line, or
// behind another update.
func (x *messageIDs) inPieces(ev *event, id string, before, other int) {
	const long = 4000 // bytes
	m := x.says[ev.turn]
	if m == nil || m.texts != 1 || !ev.turn.alone() {
		return
	}
	text := bare(ev.text())
	if text == "" || !strings.HasPrefix(m.said.String()[m.sent:], text) ||
		m.sent == 0 && strings.Contains(m.former, text) {
		return // MODEL-TEXT reports a text that comes twice
	}
	reason := m.sent >= long || m.line || other > m.seq || strings.HasPrefix(ev.text(), "\n")
	m.sent += len(text)
	x.judge(pick(reason, "parted", "split"), m.seq > 0 && m.seq == before && m.id != id, ev, id, []int{m.seq},
		"The model's text began with messageId %q and goes on with messageId %q, so clients show two messages.", m.id, id)
	m.id, m.seq, m.line = id, ev.Seq, strings.HasSuffix(ev.text(), "\n")
}

// ids has the message ids of a session. By kind of message, began has the Seq of the first chunk with each id. ended
// has the Seq of the agent's latest chunk with each id. with is the Seq of the turn's latest chunk that has an id.
// without is the Seq of its latest chunk that has none.
type ids struct {
	began         [3]map[string]int
	ended         map[string]int
	turn          *turn
	with, without int
	latest        topic // topic of the latest chunk with an id
	chunk, user   int   // Seq of the latest chunk, and of the user's
	other         int   // Seq of the latest update that is no chunk
}

const rememberedIDs = 1 << 12

// chunk checks the message id of a chunk.
func (x *messageIDs) chunk(ev *event, s *session) {
	if ev.turn != nil && ev.turn.mixed || ev.wholeMessage() || len(s.behind) > 0 {
		return
	}
	m := rules.Entry(x.of, s)
	before := m.chunk
	m.chunk = ev.Seq
	if ev.topic == userChunk {
		m.user = ev.Seq
	}
	id := ev.update.Get("messageId")
	x.alike(ev, m, id.Kind() == wire.String)
	if id.Kind() != wire.String {
		return
	}
	text, kind := id.Str(), int(ev.topic-userChunk)
	x.Saw("id-returns")
	resumes := kind == 0 && s.window != nil && m.latest > userChunk
	m.latest = ev.topic
	if kind > 0 {
		x.ofAgent(ev, m, text)
	}
	if ev.topic == agentChunk && ev.turn != nil {
		x.inPieces(ev, text, before, m.other)
	}
	if id.Is(s.messages[kind]) && m.began[kind] != nil {
		x.judge("next-turn", resumes, ev, text, []int{m.began[kind][text]},
			"The replay has messageId %q on two messages of the user, with the agent's answer between them.", text)
		return // the chunk continues its message
	}
	if at := m.began[kind][text]; at > 0 {
		x.find("id-returns", ev, text, []int{at}, "The agent reused messageId %q after starting another message.", text)
	}
	x.otherKind(ev, m, text)
	if m.began[kind] == nil || len(m.began[kind]) >= rememberedIDs {
		m.began[kind] = map[string]int{}
	}
	m.began[kind][text] = ev.Seq
}

// otherKind checks that no message of another kind has the id of the chunk's message. A thought and a message of the
// agent may belong to one reply of the model.
func (x *messageIDs) otherKind(ev *event, m *ids, id string) {
	kind, replay := int(ev.topic-userChunk), ev.session.window != nil && ev.turn == nil
	if replay {
		x.Saw("shared")
	}
	for other := range m.began {
		at := m.began[other][id]
		switch {
		case at == 0 || other == kind:
		case replay && other*kind == 0:
			x.find("shared", ev, id, []int{at},
				"The replay has messageId %q on a message of the user and on one of the agent.", id)
		default:
			x.find("two-kinds", ev, id, []int{at}, "The messageId %q names messages of two kinds.", id)
		}
	}
}

// alike checks that a turn does not mix chunks with a message id and chunks without one.
func (x *messageIDs) alike(ev *event, m *ids, has bool) {
	if t := ev.turn; t != m.turn {
		m.turn, m.with, m.without = t, 0, 0
	}
	here, elsewhere := &m.with, m.without
	if !has {
		here, elsewhere = &m.without, m.with
	}
	if *here = ev.Seq; elsewhere > 0 && m.turn != nil {
		x.find("mixed", ev, "", []int{elsewhere}, "Some chunks of the turn have a messageId, but others have none.")
	}
}
