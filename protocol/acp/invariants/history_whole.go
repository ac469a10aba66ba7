package invariants

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// rememberedText is how many bytes of text are remembered per session. Text beyond this limit is not checked.
const rememberedText = hearing.Remembered

// longPrompt is the size in bytes of a request with a prompt that a replay must show. An agent may replay the name of a
// longer text.
const longPrompt = 128 << 10

// tellsApart is the length in bytes of texts that are not part of another message by chance.
const tellsApart = 8

// loadWhole checks that a replay is complete. The replay must show the messages and thoughts of the turns in this
// transcript, in their order, and the tool calls with their final status. White space and the cutting into chunks do
// not matter. The specification does not say whether a replay must have thoughts and the agent's own notices.
func loadWhole(w *watch) {
	model, raw, gates := w.modelWords(), w.modelTexts(), w.version.gates("ContentBlock")
	talks := map[string]*talk{} // by session id
	of := func(id string) *talk {
		if talks[id] == nil {
			rules.Remember(talks, rememberedSessions, id, &talk{ends: map[string]end{}, shown: map[string]*shownCall{}})
		}
		return talks[id]
	}
	w.On(func(ev *event) { delete(talks, ev.Session) }, asked(deleteSession), compactionUpdate)
	w.On(func(ev *event) {
		if ev.session == nil || !ev.succeeded() {
			return
		}
		if k := of(ev.session.id); k != nil { // nil if too many sessions are remembered
			k.whole = true
		}
	}, answered(newSession))
	w.On(func(ev *event) { of(ev.Session).ask(ev, gates) }, asked(prompt))
	w.On(func(ev *event) {
		if from := talks[ev.request.session.name()]; from != nil && len(talks) < rememberedSessions {
			talks[ev.result.Get("sessionId").Str()] = &talk{past: slices.Clone(from.past), given: slices.Clone(from.given),
				ends: maps.Clone(from.ends), shown: map[string]*shownCall{}}
		}
	}, answered(forkSession))
	w.On(func(ev *event) {
		if s := ev.session; ev.speaksAlone() && s.window == nil {
			of(ev.Session).hear(ev)
		}
	}, contentUpdates()...)
	w.On(func(ev *event) { talks[ev.Session].shows(ev) }, toolCall, toolUpdate)
	w.On(func(ev *event) {
		if k := talks[ev.Session]; k != nil {
			k.unclear = true // a replay may show what the user filled in
		}
	}, asked(elicit))
	w.onEnd(func(ev *event) {
		if k, t := talks[ev.Session], ev.turn; k != nil && t != nil {
			k.end(t, t.leavesHistory(ev.stop) && !t.concurrent && !t.mixed)
		}
	})
	eachReplay(w, func(r *replayed, ev *event) {
		if r.hear(ev); w.version.states && isMessage(ev.topic) {
			id := ev.update.Get("messageId").Str()
			r.ids = append(r.ids, id)
			r.renamed = r.renamed || !w.state.shown[ev.Session][id].live
		}
	}, func(r *replayed, ev *event) {
		// LOAD-WINDOW reports a replay without content of the agent.
		if k := talks[ev.Session]; k != nil && r.answered && r.all.Len() < 8*rememberedText {
			w.compare(k, r, ev, model.String(), raw.String(), talks)
		}
	})
}

// modelWords returns a builder that receives, while the transcript is read, each text of the model without white
// space.
func (w *watch) modelWords() *strings.Builder {
	var words strings.Builder
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelChunk && words.Len() < 4*rememberedText {
			words.WriteString(bare(fakellm.ChunkText(ev.body)))
		}
	}, modelEvent)
	return &words
}

// replayed is what the agent sent during a replay.
type replayed struct {
	user, said, thought, all strings.Builder
	asked, told              strings.Builder // user and said with white space, and a line end between two messages
	given                    strings.Builder // the user's content blocks, as returned by worded
	media                    map[string]int  // by type, how many pictures and sounds the user's blocks show or mention
	ids                      []string        // message ids, in version 2
	asks                     map[string]bool // message ids of the user's messages
	renamed                  bool            // some message has a new id, which V2-RESUME reports
	topic                    topic           // topic of the latest piece
	latest                   topic           // topic of the latest update
	id                       string          // message id of the latest update
	prompted                 bool            // the replay has content of the user
	calls                    int
	shown                    map[string]*shownCall // tool calls, by id
	answered                 bool                  // the replay has content of the agent
}

func (r *replayed) of(t topic) *strings.Builder {
	return map[topic]*strings.Builder{userChunk: &r.user, agentChunk: &r.said, thoughtChunk: &r.thought}[t]
}

// raw returns the texts of the user's or the agent's messages with their white space.
func (r *replayed) raw(t topic) *strings.Builder {
	return pick(t == userChunk, &r.asked, &r.told)
}

func (r *replayed) hear(ev *event) {
	r.answered, r.prompted = r.answered || ev.topic != userChunk, r.prompted || ev.topic == userChunk
	if ev.topic == toolCall || ev.topic == toolUpdate && ev.tool == nil {
		r.calls++
	}
	if ev.topic == toolCall || ev.topic == toolUpdate {
		r.shows(ev)
	}
	b, id := r.of(ev.topic), ev.update.Get("messageId").Str()
	apart := r.latest != ev.topic || r.id != id
	if r.latest, r.id = ev.topic, id; b == nil || r.all.Len() >= 8*rememberedText {
		return
	}
	if r.topic != ev.topic {
		r.all.WriteByte(0)
	}
	if ev.topic != thoughtChunk {
		r.raw(ev.topic).WriteString(pick(apart, "\n", "") + ev.text())
	}
	r.topic = ev.topic
	if r.topic == userChunk && id != "" {
		if r.asks == nil {
			r.asks = map[string]bool{}
		}
		r.asks[id] = true
	}
	if ev.topic == userChunk && r.given.Len() < 8*rememberedText {
		r.gives(ev.update.Get("content"))
	}
	text := bare(ev.text())
	b.WriteString(text)
	r.all.WriteString(text)
}

// gives notes content blocks of the user.
func (r *replayed) gives(content wire.Value) {
	if content.Kind() == wire.Array {
		for block := range content.Items() {
			r.gives(block)
		}
		return
	}
	r.given.WriteString(worded(content))
	if r.media == nil {
		r.media = map[string]int{}
	}
	for _, media := range []string{"image", "audio"} {
		if content.Get("type").Is(media) {
			r.media[media]++
		} else { // the agent may tell of it in words
			r.media[media] += strings.Count(strings.ToLower(worded(content)), media)
		}
	}
}

// compare checks that a replay has everything that was said and done in the session before. model and raw have the
// texts of the model, without and with white space.
func (w *watch) compare(k *talk, r *replayed, ev *event, model, raw string, talks map[string]*talk) {
	all, at, before, said := r.all.String(), 0, 0, map[string]bool{}
	for _, x := range k.past {
		text := x.text.String()
		// LOAD-WINDOW reports a replay without prompts, and V2-RESUME reports a missing message of the user.
		if text == "" || x.topic == userChunk && (!r.prompted || w.version.states && !slices.Contains(r.ids, x.id)) {
			continue
		}
		point, what := x.name(model)
		gone := x.topic == agentChunk && x.id != "" && w.version.states && !slices.Contains(r.ids, x.id) && !r.renamed
		if w.judge(point, gone || !strings.Contains(r.of(x.topic).String(), text), ev, "", []int{x.seq, ev.request.seq},
			"%s did not replay the %s that began with #%d.", ev.Method, what, x.seq) != nil || x.topic == thoughtChunk {
			continue
		}
		i := strings.Index(all[at:], text)
		moved := i < 0 && !said[text] && strings.Count(all, text) == 1 &&
			(len(text) >= tellsApart || strings.Contains("\x00"+all+"\x00", "\x00"+text+"\x00"))
		w.judge("order", moved, ev, "", []int{before, x.seq, ev.request.seq},
			"%s replayed the %s that began with #%d too early: in the session it came after #%d.",
			ev.Method, what, x.seq, before)
		if said[text] = true; i >= 0 {
			at, before = at+i+len(text), x.seq
		}
	}
	w.compareSpaces(k, r, ev, raw)
	w.compareAsks(k, r, ev)
	w.compareOwn(k, r, ev, talks)
	w.compareGiven(k, r, ev)
	w.compareCalls(k, r, ev)
}

// compareAsks checks that a replay does not have more messages of the user than the session had prompts. In version 2,
// the rule V2-RESUME reports new message ids.
func (w *watch) compareAsks(k *talk, r *replayed, ev *event) {
	if !w.version.states {
		w.judge("split", k.whole && k.asks > 0 && len(r.asks) > k.asks, ev, "", []int{ev.request.seq},
			"%s replayed %d messages of the user. The number of prompts in the session is %d.", ev.Method, len(r.asks), k.asks)
	}
}

// compareOwn checks that a replay shows no other texts of the user than the texts of the session's prompts. Only the
// transcript of a whole session without attachments shows which texts these are.
func (w *watch) compareOwn(k *talk, r *replayed, ev *event, talks map[string]*talk) {
	if !k.whole || k.unclear || k.asks == 0 || r.user.Len() >= 8*rememberedText {
		return
	}
	rest := ""
	for _, piece := range strings.Split(without(r.user.String(), k.texts), "\x00") {
		if len(piece) > len(rest) {
			rest = piece
		}
	}
	if rest == "" {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(talks)) {
		for _, text := range talks[id].texts {
			w.judge("foreign", talks[id] != k && len(text) >= 2*tellsApart && strings.Contains(rest, text), ev, id,
				[]int{ev.request.seq}, "%s replayed a prompt of session %s: %q (without white space).", ev.Method, id, clip(text))
		}
	}
	if !w.version.states {
		w.judge("more", !k.media && len(rest) >= tellsApart, ev, "", []int{ev.request.seq},
			"%s replayed a text of the user that no prompt of the session has: %q (without white space).", ev.Method, clip(rest))
	}
}

// without replaces each of the given texts in said by a NUL byte, the longest first.
func without(said string, texts []string) string {
	var pairs []string
	for _, text := range slices.SortedStableFunc(slices.Values(texts), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, text, "\x00")
	}
	return strings.NewReplacer(pairs...).Replace(said)
}

// compareGiven checks that a replay shows the user's attachments. LOAD-WINDOW reports a replay without prompts.
func (w *watch) compareGiven(k *talk, r *replayed, ev *event) {
	if !r.prompted || r.given.Len() >= 8*rememberedText {
		return
	}
	told := r.given.String() + r.user.String() // a text may come in pieces
	owed := map[string]int{}
	for _, x := range k.given {
		if x.id == "" || slices.Contains(r.ids, x.id) {
			missing := !slices.ContainsFunc(x.needles, func(s string) bool { return strings.Contains(told, s) })
			if x.media != "" {
				owed[x.media]++
				worded := strings.Contains(strings.ToLower(r.user.String()), x.media) // for one or for all of them
				missing = !worded && r.media[x.media] < owed[x.media]
			}
			w.judge("attachment", missing, ev, "", []int{x.seq, ev.request.seq},
				"%s did not replay %s of the prompt: %q.", ev.Method, x.what, clip(x.needles[0]))
		}
	}
}

// worded returns the type, text, address and names of a content block, without white space.
func worded(content wire.Value) (words string) {
	for _, path := range []string{"type", "text", "uri", "name", "title", "mimeType", "resource.uri", "resource.text"} {
		words += bare(content.Path(path).Str()) + "\x00"
	}
	return words
}

// name returns the point to report if x is missing from a replay, and a noun for x. model has all texts of the model.
func (x *spoken) name(model string) (point, what string) {
	switch x.topic {
	case thoughtChunk:
		return "thought", "thought"
	case userChunk:
		return "user", "prompt"
	}
	return pick(strings.Contains(model, x.text.String()), "message", "notice"), "message"
}

// compareCalls checks the tool calls of a replay: by their ids if the replay keeps the ids, else by their number.
func (w *watch) compareCalls(k *talk, r *replayed, ev *event) {
	kept, owed := 0, 0
	for _, before := range k.ends {
		if before.owed {
			owed++
		}
	}
	for _, t := range ev.session.order {
		before, known := k.ends[t.id]
		if !known || t.first < ev.request.seq {
			continue
		}
		if t.by == byCall && before.owed {
			kept++
		}
		// In version 1, LOAD-WINDOW judges calls that have no end.
		other := t.status != before.status && (t.status.final() && before.owed || !t.status.final() && w.version.states)
		w.judge("status", other, ev, t.id, []int{t.seq}, "Tool call %q had ended as %s, but %s replays it as %s.", t.id,
			before.status, ev.Method, t.status)
		if t.by == byCall && before.owed && !w.version.states {
			w.compareShown(k.shown[t.id], r.shown[t.id], t, ev)
		}
	}
	if r.calls == 0 && kept == 0 {
		return // the agent may replay no tool calls at all
	}
	w.judge("call", max(kept, r.calls) < owed, ev, "", []int{ev.request.seq},
		"%s replayed %s, but %d had ended before.", ev.Method, count(max(kept, r.calls), "tool call"), owed)
}

// speaksAlone reports whether all content that the session sends now belongs to one turn.
func (ev *event) speaksAlone() bool {
	s, t := ev.session, ev.turn
	return s != nil && t != nil && len(s.open) <= 1 && !t.mixed && !t.concurrent
}

// spoken is a message or thought of a turn.
type spoken struct {
	topic topic
	id    string // id of the message
	seq   int
	text  strings.Builder // as returned by bare
	raw   strings.Builder // text with its white space
}

// talk has the messages, attachments and ends of tool calls of a session.
type talk struct {
	turn  []*spoken      // messages of the open turn
	past  []*spoken      // messages of ended turns
	asked []attached     // attachments in the prompt of the open turn
	given []attached     // attachments in the prompts of ended turns
	ends  map[string]end // ends of the tool calls, by id
	shown map[string]*shownCall
	bytes int
	// shownBytes is the size of the updates that went into shown.
	shownBytes int
	// whole says that this transcript has the session from its beginning. asks is the number of its prompts.
	whole bool
	asks  int
	// texts has the texts of all prompts. unclear says that the transcript does not show all of them, and media that some
	// prompt had other blocks, which a replay may show as text.
	texts          []string
	unclear, media bool
}

// attached is an attachment of a prompt. Each of its needles is enough to recognize it. Pictures and sounds are
// counted.
type attached struct {
	seq     int
	id      string // id of the message
	what    string
	needles []string
	media   string // type of a picture or sound
}

// end is the final status of a tool call. owed says that a replay must show the call with this status.
type end struct {
	status status
	owed   bool
}

// ask stores the user's texts and attachments. gates has the capability that an agent needs for each type of block.
func (k *talk) ask(ev *event, gates map[string]string) {
	if k != nil {
		k.asks++
	}
	if k == nil || len(ev.Redacted) > 0 || len(ev.Raw) > longPrompt || k.bytes > rememberedText {
		if k != nil {
			k.unclear = true
		}
		return
	}
	k.bytes += min(len(ev.Raw), promptText)
	k.unclear = k.unclear || isCommand(ev.params) || len(ev.Raw) > promptText
	for block := range ev.params.Get("prompt").Items() { // a replay may turn attachments into text
		if block.Get("type").Is("text") {
			text := bare(block.Get("text").Str())
			k.turn = append(k.turn, newSpoken(userChunk, ev.Seq, text))
			k.turn[len(k.turn)-1].raw.WriteString(block.Get("text").Str())
			if text != "" && !slices.Contains(k.texts, text) {
				k.texts = append(k.texts, text)
			}
			continue
		}
		k.media = true
		a := attached{seq: ev.Seq}
		switch kind := block.Get("type").Str(); {
		case kind == "resource_link":
			a.what, a.needles = "a link", names(block)
		case !ev.conn.has(rules.OfAgent, gates[kind]):
		case kind == "resource":
			a.what, a.needles = "an embedded file", append(names(block.Get("resource")), bare(block.Path("resource.text").Str()))
		case kind == "image", kind == "audio":
			a.what, a.needles, a.media = "a picture or sound", []string{kind}, kind
		}
		a.needles = slices.DeleteFunc(a.needles, func(s string) bool { return s == "" || s == "." })
		if len(a.needles) > 0 {
			k.asked = append(k.asked, a)
		}
	}
}

// end closes the open turn. kept says that the turn belongs to the history that a replay must show.
func (k *talk) end(t *turn, kept bool) {
	k.unclear = k.unclear || t.stopped() // a replay may say that the user interrupted the turn
	for _, x := range k.turn {
		if x.topic == userChunk && x.seq == t.started {
			x.id = t.message
		}
		if kept && (x.topic != userChunk || x.seq == t.started) {
			k.past = append(k.past, x)
		}
	}
	for _, x := range k.asked {
		if x.id = t.message; kept && x.seq == t.started {
			k.given = append(k.given, x)
		}
	}
	k.asked = nil
	for _, c := range t.tools {
		if c.status.final() && len(k.ends) < rememberedTools {
			k.ends[c.id] = end{c.status, kept}
		}
	}
	k.turn = nil
}

// hear adds a chunk or a tool call to the open turn.
func (k *talk) hear(ev *event) {
	if k == nil || k.bytes > rememberedText || ev.topic == userChunk { // an agent that repeats the prompt
		return
	}
	raw := ""
	if isMessage(ev.topic) { // a tool call has no text, but separates the messages before and after it
		raw = ev.text()
	}
	text := bare(raw)
	k.bytes += len(text)
	id := ev.update.Get("messageId").Str()
	last := len(k.turn) - 1
	if ev.wholeMessage() { // a whole message replaces its pieces
		k.turn = slices.DeleteFunc(k.turn, func(x *spoken) bool {
			return x.topic == ev.topic && x.id == id && ev.update.Get("content").Exists()
		})
		last = len(k.turn) - 1
	}
	if last < 0 || k.turn[last].topic != ev.topic || k.turn[last].id != id {
		k.turn, last = append(k.turn, &spoken{topic: ev.topic, id: id, seq: ev.Seq}), last+1
	}
	k.turn[last].text.WriteString(text)
	k.turn[last].raw.WriteString(raw)
}
