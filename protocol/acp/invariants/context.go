package invariants

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// modelContext checks that the model gets the user's words: each block of a prompt during its turn, and earlier turns
// in later requests, also after a load. A model request must contain nothing from another session. The agent chooses
// how to word and wrap the text. The specification does not mention earlier tool calls or the prompts of cancelled
// turns, so the points about these are lints.
func modelContext(of *watch) {
	w := &contextWatch{watch: of, open: map[int]*given{}, past: map[string][]*spoken{}, given: map[string][]*given{},
		cancelled: map[string][]*spoken{}, spoken: map[string][]string{}, called: map[string]callSet{},
		before: map[string]int{}, vague: map[string]bool{}, gates: of.version.gates("ContentBlock"),
		results: map[string]map[string]string{}, forks: map[int]source{}, around: map[string]aroundCalls{}}
	w.On(w.prompted, asked(prompt))
	w.On(w.restored, setUps(asked)...)
	w.onEnd(w.ended)
	w.On(w.model, modelEvent)
	w.On(func(ev *event) { w.vague[ev.Session] = true }, compactionUpdate, asked(deleteSession))
	w.On(w.forking, asked(forkSession))
	w.On(w.forked, answered(forkSession))
	w.On(func(ev *event) { w.vague[ev.update.Get("sessionId").Str()] = true }, subagentUpdate)
}

type contextWatch struct {
	*watch
	open      map[int]*given       // prompts of open turns, by Seq of the prompt
	past      map[string][]*spoken // earlier messages that the model must get, by session, over all connections
	given     map[string][]*given  // earlier prompts with attachments, by session
	cancelled map[string][]*spoken // prompts of cancelled turns that had reached the model, by session
	spoken    map[string][]string  // texts of all prompts, by session
	called    map[string]callSet   // earlier tool calls that the model must get, by session
	before    map[string]int       // number of those calls before the session was restored
	vague     map[string]bool      // sessions whose history may be shortened or partly unknown
	gates     map[string]string    // required agent capability, by type of content block
	// results has the results of tool calls in model requests, by session and call, and resultBytes their size.
	results     map[string]map[string]string
	resultBytes int
	// forks has the history that the fork of an open session/fork must have, by Seq of the request.
	forks map[int]source
	// around has, by session, the texts next to the tool calls in the latest model request.
	around map[string]aroundCalls
	bytes  int
}

// prompted remembers a prompt.
func (w *contextWatch) prompted(ev *event) {
	text := bare(readPrompt(ev.params))
	w.bytes += len(ev.Raw)
	if ev.session == nil || len(ev.Redacted) > 0 || len(ev.Raw) > rememberedText || w.bytes > 16*rememberedText {
		w.vague[ev.Session] = true
		return
	}
	if len(w.spoken) < rememberedSessions {
		w.spoken[ev.Session] = append(w.spoken[ev.Session], text)
	}
	g := &given{seq: ev.Seq}
	for b := range ev.params.Get("prompt").Items() {
		w.add(g, ev.conn, b)
	}
	g.apart()
	for i := range g.blocks {
		b := &g.blocks[i]
		b.told = slices.ContainsFunc(w.given[ev.Session], func(before *given) bool { return before.has(b) })
	}
	w.open[ev.Seq] = g
}

// model handles a model request or a piece of a model reply.
func (w *contextWatch) model(ev *event) {
	if ev.Kind == transcript.ModelChunk {
		w.hear(ev)
		return
	}
	t := w.state.turnOf(ev)
	if t == nil {
		return
	}
	g := w.open[t.started]
	switch ev.Kind {
	case transcript.ModelRequest:
		if a, ok := ev.askedOfModel(); ok && g != nil {
			w.told(ev, t, g, a)
		}
	case transcript.ModelFault, transcript.ModelDone:
		w.failed(ev, t, g)
	}
}

// failed handles the end or the failure of a model reply. The agent need not keep a turn in which the model failed.
// After a conversation that the model refuses or finds too long, the agent may send less history.
func (w *contextWatch) failed(ev *event, t *turn, g *given) {
	status, _ := ev.body.Get("status").Int()
	if g != nil && (ev.Kind == transcript.ModelFault || status >= 400) {
		g.failed = true
	}
	if status == 400 || status == 413 {
		w.vague[t.session.id] = true
	}
}

// hear adds a piece of a model reply to the turn whose model request is being answered. Several turns may be open at
// the same time.
func (w *contextWatch) hear(ev *event) {
	for _, g := range w.open {
		if g.latest == ev.number() && ev.body.Get("says").Is("text") && g.said.Len() < rememberedText {
			g.said.WriteString(bare(fakellm.ChunkText(ev.body)))
		}
	}
}

// told judges the history in one model request.
func (w *contextWatch) told(ev *event, t *turn, g *given, a fakellm.Asked) {
	var all, said strings.Builder
	for _, p := range a.Conversation() {
		text := unescaped(p.Text)
		if all.WriteString(text); p.Who != "result" {
			said.WriteString(text)
		}
	}
	w.reach(g, all.String(), string(ev.body.Get("body").Raw()))
	g.escapes(a)
	s := t.session
	if !ev.converses() {
		w.summed(s, all.String())
		return
	}
	if ev.Session == "" &&
		slices.ContainsFunc(g.blocks, func(b givenBlock) bool { return b.point == "text" && b.reached }) {
		g.asked = true // the model got the prompt in a request that the log assigns to no session
	}
	if ev.Session != s.id || !asks(ev, t) {
		return
	}
	g.asked = true
	g.latest = ev.number()
	if g.failed {
		// An agent that sends less after a failure has found that the conversation is too long.
		w.vague[s.id] = w.vague[s.id] || !a.Partial && w.lacks(s, all.String())
		return
	}
	w.repeats(g, s, a, all.String())
	w.keepsResults(ev, s, a)
	former := g.said.String()
	g.said.Reset()
	if a.Partial || w.vague[s.id] || t.command() {
		return
	}
	if w.recalls(ev, s, g, a) && t.alone() {
		w.keepsWords(ev, s, former, all.String())
	}
	w.resultsOf(s.id, a)
	if g.judged {
		return
	}
	g.judged = true
	w.remembers(ev, s, all.String())
	w.keeps(ev, s, all.String(), string(ev.body.Get("body").Raw()))
	w.isolated(ev, s, said.String())
}

// keepsWords checks that a model request repeats the text that the model sent before its tool calls.
func (w *contextWatch) keepsWords(ev *event, s *session, former, all string) {
	if len(former) < tellsApart || strings.ContainsAny(former, "<>") {
		return
	}
	text := unescaped(former)
	if w.judge("words", !strings.Contains(all, text), ev, s.id, nil,
		"The model request lacks what the model said before its tool calls: %q (without white space).",
		clip(former)) == nil {
		w.remark(s.id, text)
	}
}

// summed handles a side request. If it has messages of the session, the agent may summarize and replace them.
func (w *contextWatch) summed(s *session, all string) {
	for _, p := range w.past[s.id] {
		if p.topic == agentChunk && strings.Contains(all, p.text.String()) {
			w.vague[s.id] = true
		}
	}
}

// ended handles the end of a turn. It checks that the model got the prompt, and stores the turn for the checks of later
// turns.
func (w *contextWatch) ended(ev *event) {
	t := ev.turn
	if t == nil {
		return
	}
	g := w.open[t.started]
	delete(w.open, t.started)
	if g != nil && t.command() {
		w.vague[t.session.id] = true // commands of the agent may clear or change the history
	}
	if t.stopped() {
		delete(w.around, t.session.id)
	}
	if g == nil || !g.asked || !t.alone() || t.mixed || t.command() {
		return
	}
	if t.stopped() && ev.stop == "cancelled" && !g.failed {
		w.cancelled[t.session.id] = append(w.cancelled[t.session.id], w.texts(g)...)
	}
	if ev.stop != "end_turn" && ev.stop != "max_tokens" || t.stopped() {
		delete(w.results, t.session.id) // the agent may forget the turn, and a model server may use its ids again
		delete(w.around, t.session.id)
		return
	}
	w.arrived(ev, g)
	id := t.session.id
	if g.failed {
		delete(w.results, id)
		delete(w.around, id)
		return
	}
	w.called[id] = g.called
	if len(w.past) >= rememberedSessions && w.past[id] == nil {
		return
	}
	w.past[id] = append(w.past[id], w.texts(g)...)
	if slices.ContainsFunc(g.blocks, func(b givenBlock) bool { return b.point != "text" }) {
		w.given[id] = append(w.given[id], g)
	}
	w.past[id] = append(w.past[id], lastSaid(g, t)...)
}

// lacks reports whether a model request lacks an earlier turn of the session.
func (w *contextWatch) lacks(s *session, all string) bool {
	return slices.ContainsFunc(w.past[s.id], func(x *spoken) bool { return !strings.Contains(all, x.text.String()) })
}

// lastSaid returns the model's last text in a turn. It returns nil if the log lacks the end of the text, or if the text
// has characters that agents escape.
func lastSaid(g *given, t *turn) []*spoken {
	said := g.said.String()
	if said == "" || t.reply.seq == 0 || strings.ContainsAny(said, "<>") {
		return nil
	}
	return []*spoken{newSpoken(agentChunk, g.seq, unescaped(said))}
}

// arrived checks which blocks of a turn's prompt the model got.
func (w *contextWatch) arrived(ev *event, g *given) {
	for _, b := range g.blocks {
		w.judge(b.point, !b.reached, ev, fmt.Sprint(g.seq), []int{g.seq},
			"No model request of the turn contains %s of the prompt: %q.", b.what, clip(b.needles[0]))
		w.judge("again", b.reached && b.stale, ev, fmt.Sprint(g.seq), []int{g.seq},
			"The first model request of the turn has %s of the prompt only where an earlier prompt had it: %q.", b.what,
			clip(b.needles[0]))
		w.judge("escaped", b.escaped, ev, fmt.Sprint(g.seq), []int{g.seq},
			"The model gets %s of the prompt with entities such as &lt; for its characters: %q.", b.what, clip(b.needles[0]))
	}
}

// texts returns the text blocks of a prompt that reached the model.
func (w *contextWatch) texts(g *given) (all []*spoken) {
	for _, b := range g.blocks {
		if b.point == "text" && b.reached {
			all = append(all, newSpoken(userChunk, g.seq, unescaped(b.needles[0])))
		}
	}
	return all
}

// unescaped returns a text without HTML entities and white space: some agents escape text that they wrap in tags.
func unescaped(text string) string { return bare(html.UnescapeString(text)) }

func newSpoken(kind topic, seq int, text string) *spoken {
	s := &spoken{topic: kind, seq: seq}
	s.text.WriteString(text)
	return s
}
