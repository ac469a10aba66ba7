package invariants

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// modelContext checks that the model gets the user's words: each block of a prompt during its turn, and earlier turns
// in later requests, also after a load. A model request must contain nothing from another session. The agent chooses
// how to word and wrap the text. The specification does not mention earlier tool calls or the prompts of cancelled
// turns, so the points about these are lints.
func modelContext(of *watch) {
	w := &contextWatch{watch: of, open: map[int]*given{}, past: map[string][]*spoken{}, given: map[string][]*given{},
		cancelled: map[string][]*spoken{}, spoken: map[string][]string{}, called: map[string]callSet{},
		before: map[string]int{}, vague: map[string]bool{}, gates: of.version.gates("ContentBlock"),
		results: map[string]map[string]string{}, forks: map[int]source{}}
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
	// forks has, by Seq of an open session/fork, what the source had at the time of the request.
	forks map[int]source
	bytes int
}

// given is a prompt, together with the parts of it that the model has got.
type given struct {
	seq    int
	asked  bool    // the agent sent a model request for it
	judged bool    // the history in its first model request was checked
	latest int     // number of its latest model request
	called callSet // tool calls in its latest model request
	blocks []givenBlock
	said   strings.Builder // text of the model's latest reply in this turn
}

// callSet is a set of tool calls. A key is the call's id, or name and arguments if the model's API has no ids.
type callSet map[string]bool

type givenBlock struct {
	point   string
	what    string
	needles []string // texts that identify the block; one of them is enough
	reached bool
	escaped bool // it reached the model only with entities for some characters
	// told says that an earlier prompt had the same block. stale says that the first model request of the turn has it
	// only before the model's latest reply to an earlier prompt.
	told, stale bool
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

// source is what is known of a session that is forked.
type source struct {
	past   []*spoken
	given  []*given
	spoken []string
	vague  bool
}

// forking remembers what the source of a fork has when the fork is requested.
func (w *contextWatch) forking(ev *event) {
	id := ev.Session
	_, known := w.past[id]
	rules.Remember(w.forks, rememberedRequests, ev.Seq, source{slices.Clone(w.past[id]), slices.Clone(w.given[id]),
		slices.Clone(w.spoken[id]), w.vague[id] || !known || ev.session == nil || len(ev.session.open) > 0})
}

// forked takes what is known of a session over to its fork.
func (w *contextWatch) forked(ev *event) {
	from, asked := w.forks[ev.Ref]
	delete(w.forks, ev.Ref)
	id := ev.result.Get("sessionId").Str()
	switch {
	case !ev.succeeded():
	case !asked || from.vague || len(w.past) >= rememberedSessions:
		w.vague[id] = true
	default:
		w.past[id], w.given[id], w.spoken[id] = from.past, from.given, from.spoken
	}
}

// has reports whether a prompt has a block like b that reached the model.
func (g *given) has(b *givenBlock) bool {
	return slices.ContainsFunc(g.blocks, func(x givenBlock) bool {
		return x.reached && x.point == b.point && !x.media() && x.needles[0] == b.needles[0]
	})
}

// repeats records which blocks that an earlier prompt had are missing behind the model's latest reply.
func (w *contextWatch) repeats(g *given, s *session, a fakellm.Asked, all string) {
	past := w.past[s.id]
	if g.judged || a.Partial || w.vague[s.id] || w.version.states || len(past) == 0 ||
		past[len(past)-1].topic != agentChunk {
		return // version 2 does not say which reply ends a turn
	}
	text := past[len(past)-1].text.String()
	at := strings.LastIndex(all, text)
	if at < 0 || len(text) < tellsApart {
		return
	}
	for i := range g.blocks {
		if b := &g.blocks[i]; b.told {
			b.stale = b.in(all[at+len(text):], "") < 0
		}
	}
}

// keepsResults checks that a model request does not have, for an earlier call, the result of another call. A model
// server may use an id for several calls. An agent may shorten or clear results.
func (w *contextWatch) keepsResults(ev *event, s *session, a fakellm.Asked) {
	if a.Partial || w.vague[s.id] {
		return
	}
	if w.results[s.id] == nil {
		rules.Remember(w.results, rememberedSessions, s.id, map[string]string{})
	}
	known, nth := w.results[s.id], map[string]int{}
	for _, p := range a.Conversation() {
		if p.Who != "result" || p.Call == "" {
			continue
		}
		nth[p.Call]++
		key, text := fmt.Sprint(p.Call, " ", nth[p.Call]), bare(p.Text)
		if len(text) > wholeText || len(text) < tellsApart { // short results are often equal
			continue
		}
		before, found := known[key]
		if w.Saw("result"); found && before != text && slices.Contains(slices.Collect(maps.Values(known)), text) {
			w.find("result", ev, s.id, nil,
				"The model request has the result %q for tool call %s, but that is the result of another call. The request "+
					"before had %q (without white space).", clip(text), p.Call, clip(before))
		}
		if w.resultBytes < 4*rememberedText && known != nil && !found {
			w.resultBytes += len(text)
			known[key] = text
		}
	}
}

// wholeText is how many bytes an embedded text may have that every agent has to pass on whole. An agent may shorten a
// longer one.
const wholeText = 2 << 10

// add adds a content block to g if the agent supports its type.
func (w *contextWatch) add(g *given, of *conn, b wire.Value) {
	takes := func(kind string) bool { return of.has(rules.OfAgent, w.gates[kind]) }
	var block givenBlock
	switch kind := b.Get("type").Str(); {
	case kind == "text":
		block = givenBlock{point: "text", what: "the text", needles: []string{bare(b.Get("text").Str())}}
	case kind == "resource_link":
		block = givenBlock{point: "link", what: "the link", needles: names(b)}
	case kind == "resource" && takes(kind):
		text := bare(b.Path("resource.text").Str())
		point := pick(len(text) > wholeText, "long-resource", "resource")
		block = givenBlock{point: point, what: "the embedded text", needles: []string{text}}
	case kind == "image" && takes(kind):
		block = givenBlock{point: "image", what: "the image", needles: []string{head(b.Get("data").Str()), "image"}}
	case kind == "audio" && takes(kind):
		block = givenBlock{point: "audio", what: "the recording", needles: []string{head(b.Get("data").Str()), "audio"}}
	}
	block.needles = slices.DeleteFunc(block.needles, func(s string) bool { return s == "" })
	if len(block.needles) > 0 {
		g.blocks = append(g.blocks, block)
	}
}

// apart removes needles that several links of the prompt share, such as a common name. A link keeps its needles if it
// shares all of them.
func (g *given) apart() {
	seen := map[string]int{}
	for _, b := range g.links() {
		for text := range lists.Set(b.needles) {
			seen[text]++
		}
	}
	for _, b := range g.links() {
		if own := lists.Where(b.needles, func(text string) bool { return seen[text] == 1 }); len(own) > 0 {
			b.needles = own
		}
	}
}

// links returns the links among the blocks.
func (g *given) links() (all []*givenBlock) {
	for i := range g.blocks {
		if g.blocks[i].point == "link" {
			all = append(all, &g.blocks[i])
		}
	}
	return all
}

// names returns the texts that identify a link: its URI, the last part of the URI, its name and its title.
func names(b wire.Value) []string {
	uri := b.Get("uri").Str()
	return []string{bare(uri), bare(path.Base(uri)), bare(b.Get("name").Str()), bare(b.Get("title").Str())}
}

// head returns the first 64 bytes of encoded data, which identify the data. An agent that scales a picture changes
// them.
func head(data string) string { return data[:min(len(data), 64)] }

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
	case transcript.ModelFault:
		w.vague[t.session.id] = true // after a fault, the agent may send less history
	case transcript.ModelDone:
		if status, _ := ev.body.Get("status").Int(); status >= 400 {
			w.vague[t.session.id] = true
		}
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
	if !ev.body.Get("lane").Is("main") {
		for _, p := range w.past[s.id] { // the agent may summarize and replace these messages
			if p.topic == agentChunk && strings.Contains(all.String(), p.text.String()) {
				w.vague[s.id] = true
			}
		}
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
	w.repeats(g, s, a, all.String())
	w.keepsResults(ev, s, a)
	former := g.said.String()
	g.said.Reset()
	if a.Partial || w.vague[s.id] || t.command() {
		return
	}
	if w.recalls(ev, s, g, a) && t.alone() && len(former) >= tellsApart && !strings.ContainsAny(former, "<>") {
		w.judge("words", !strings.Contains(all.String(), unescaped(former)), ev, s.id, nil,
			"The model request lacks what the model said before its tool calls: %q (without white space).", clip(former))
	}
	if g.judged {
		return
	}
	g.judged = true
	w.remembers(ev, s, all.String())
	w.keeps(ev, s, all.String(), string(ev.body.Get("body").Raw()))
	w.isolated(ev, s, said.String())
}

// restored replaces the tool calls known of a session by their number. After a restore, the agent may send the model
// new ids, or text instead of some calls, but must send at least one call.
func (w *contextWatch) restored(ev *event) {
	if n := len(w.called[ev.Session]); n > 0 {
		w.before[ev.Session] = n
	}
	delete(w.called, ev.Session)
	delete(w.results, ev.Session)
}

// reach marks the blocks that a model request contains.
func (w *contextWatch) reach(g *given, said, raw string) {
	for i := range g.blocks {
		b := &g.blocks[i]
		at := b.in(said, raw)
		if b.reached = b.reached || at >= 0; at == 0 && b.media() {
			b.needles = b.needles[:1] // the data arrived unchanged, so later requests must have the data too
		}
	}
}

// entities writes the characters that markup needs as entities.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapes records which embedded texts a model request has only with entities.
func (g *given) escapes(a fakellm.Asked) {
	var plain strings.Builder
	for i := range g.blocks {
		b := &g.blocks[i]
		if b.point != "resource" && b.point != "long-resource" {
			continue
		}
		if plain.Len() == 0 {
			for _, p := range a.Conversation() {
				plain.WriteString(bare(p.Text))
			}
		}
		text := b.needles[0]
		b.escaped = !strings.Contains(plain.String(), text) && strings.Contains(plain.String(), entities.Replace(text))
	}
}

func (b *givenBlock) media() bool { return b.point == "image" || b.point == "audio" }

// in returns the index of the first needle that a request contains, or -1. It looks for pictures and sounds in the raw
// request, and for other blocks in the request's texts.
func (b *givenBlock) in(said, raw string) int {
	in := pick(b.media(), raw, said)
	return slices.IndexFunc(b.needles, func(s string) bool {
		return strings.Contains(in, s) || strings.Contains(in, unescaped(s))
	})
}

// keeps checks that a model request contains the attachments of earlier prompts.
func (w *contextWatch) keeps(ev *event, s *session, said, raw string) {
	for _, g := range w.given[s.id] {
		for _, b := range g.blocks {
			if !b.reached || b.point == "text" || w.vague[s.id] {
				continue
			}
			if w.Saw("attachment"); b.in(said, raw) < 0 {
				w.find("attachment", ev, s.id, []int{g.seq},
					"The model request lacks %s of an earlier prompt, which an earlier request had: %q.",
					b.what, clip(b.needles[0]))
				w.vague[s.id] = true // report once per session
			}
		}
	}
}

// remembers checks that a model request contains the earlier turns of the session.
func (w *contextWatch) remembers(ev *event, s *session, all string) {
	for _, p := range w.cancelled[s.id] {
		if p.seq > s.named {
			w.judge("after-cancel", !strings.Contains(all, p.text.String()), ev, s.id, []int{p.seq},
				"The model request lacks the prompt of the cancelled turn: %q (without white space).",
				clip(p.text.String()))
		}
	}
	past := w.past[s.id]
	if len(past) == 0 {
		return
	}
	point := "forgotten"
	switch {
	case past[len(past)-1].seq > s.named: // the latest message is newer than the load
	case s.resumed:
		point = "not-resumed"
	case s.restSeq > 0:
		point = "not-loaded"
	}
	w.Saw(point)
	for _, p := range past {
		if !strings.Contains(all, p.text.String()) {
			what := pick(p.topic == userChunk, "the user", "the model")
			w.find(point, ev, s.id, []int{p.seq},
				"The model request lacks a message of %s from an earlier turn of the session: %q (without white "+
					"space).", what, clip(p.text.String()))
			w.vague[s.id] = true // report once per session
			return
		}
	}
}

// recalls checks that a model request contains the tool calls of earlier requests, and reports whether it has all of
// them and a new one. The model's API checks that each call has its result.
func (w *contextWatch) recalls(ev *event, s *session, g *given, a fakellm.Asked) bool {
	now := callSet{}
	for _, p := range a.Conversation() {
		if p.Calls {
			now[cmp.Or(p.Call, p.Name+" "+p.Text)] = true
		}
	}
	if n := w.before[s.id]; n > 0 {
		delete(w.before, s.id)
		w.judge("calls", len(now) == 0, ev, s.id, []int{s.named},
			"The model request of the restored session has no tool call, although %d were made before.",
			n)
	}
	if g.called == nil {
		g.called = maps.Clone(w.called[s.id])
	}
	for _, call := range slices.Sorted(maps.Keys(g.called)) {
		if w.Saw("calls"); !now[call] {
			w.find("calls", ev, s.id, nil,
				"The model request lacks a tool call that an earlier request of the session had: %s.", clip(call))
			w.vague[s.id] = true // report once per session
			return false
		}
	}
	more := len(now) > len(g.called)
	g.called = now
	return more
}

// isolated checks that a model request contains no prompt of another session.
func (w *contextWatch) isolated(ev *event, s *session, said string) {
	const longEnough = 16 // bytes; shorter texts may match by chance
	own := strings.Join(w.spoken[s.id], "\n")
	for _, id := range slices.Sorted(maps.Keys(w.spoken)) {
		if id == s.id || w.vague[id] {
			continue
		}
		w.Saw("foreign")
		for _, text := range w.spoken[id] {
			if len(text) >= longEnough && strings.Contains(said, text) && !strings.Contains(own, text) {
				w.find("foreign", ev, id, nil,
					"The model request of session %s contains a prompt of session %s: %q (without white space).",
					s.id, id, clip(text))
			}
		}
	}
}

// ended checks, at the end of a turn, which blocks of its prompt the model got.
func (w *contextWatch) ended(ev *event) {
	t := ev.turn
	if t == nil {
		return
	}
	g := w.open[t.started]
	delete(w.open, t.started)
	if g == nil || !g.asked || !t.alone() || t.mixed || t.command() {
		return
	}
	if t.stopped() && ev.stop == "cancelled" {
		w.cancelled[t.session.id] = append(w.cancelled[t.session.id], w.texts(g)...)
	}
	if ev.stop != "end_turn" && ev.stop != "max_tokens" || t.stopped() {
		delete(w.results, t.session.id) // the agent may forget the turn, and a model server may use its ids again
		return
	}
	for _, b := range g.blocks {
		w.judge(b.point, !b.reached, ev, fmt.Sprint(g.seq), []int{g.seq},
			"No model request of the turn contains %s of the prompt: %q.", b.what, clip(b.needles[0]))
		w.judge("again", b.reached && b.stale, ev, fmt.Sprint(g.seq), []int{g.seq},
			"The first model request of the turn has %s of the prompt only where an earlier prompt had it: %q.", b.what,
			clip(b.needles[0]))
		w.judge("escaped", b.escaped, ev, fmt.Sprint(g.seq), []int{g.seq},
			"The model gets %s of the prompt with entities such as &lt; for its characters: %q.", b.what, clip(b.needles[0]))
	}
	id := t.session.id
	w.called[id] = g.called
	if len(w.past) >= rememberedSessions && w.past[id] == nil {
		return
	}
	w.past[id] = append(w.past[id], w.texts(g)...)
	if slices.ContainsFunc(g.blocks, func(b givenBlock) bool { return b.point != "text" }) {
		w.given[id] = append(w.given[id], g)
	}
	if said := g.said.String(); said != "" && t.reply.seq > 0 && !strings.ContainsAny(said, "<>") {
		w.past[id] = append(w.past[id], newSpoken(agentChunk, g.seq, unescaped(said)))
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
