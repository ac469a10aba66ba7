package invariants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// modelText judges that what the model says in a turn comes to the editor in that turn, whole,
// once and in its order. How an agent cuts and spaces a text is its own affair, and so is what
// it adds.
func modelText(v *version) *rule {
	r := v.ofAgent("MODEL-TEXT", "The text of the model reaches the editor in its turn as the model said it.")
	missing := r.Fail("missing", "text of the model did not come, or came altered", "PROMPT-015")
	order := r.Fail("order", "text of the model came in another order", "PROMPT-015")
	twice := r.Lint("twice", "text of the model came twice", "MSG-008")
	kind := r.Lint("kind", "text of the model came as a thought, or a thought as a message", "MSG-010")
	own := r.Lint("own", "a cancelled turn has a message of the agent's own behind the cancel", "PROMPT-015")
	return r.Watching(func(w *watch) {
		turns := map[*turn]*hearing{}
		w.On(func(*event) {
			for _, h := range turns {
				h.unclear = true // whose text is whose
			}
		}, asked(prompt))
		w.On(func(ev *event) {
			if ev.Kind == transcript.ModelRequest {
				if t := w.state.onlyTurn(); t != nil && t.session.id == ev.Session && turns[t] == nil {
					turns[t] = &hearing{}
				}
			}
			for t, h := range turns {
				h.model(ev, t)
			}
		}, modelEvent)
		w.On(func(ev *event) {
			if h := turns[ev.turn]; h != nil {
				h.hear(ev)
			}
		}, contentUpdates()...)
		w.On(func(ev *event) {
			h, t := turns[ev.turn], ev.turn
			delete(turns, t)
			if h == nil || h.unclear || h.bytes > rememberedText || !t.alone() || t.mixed || t.command() {
				return
			}
			if t.cancel != nil && ev.stop == "cancelled" {
				text := h.ownWords(t.text)
				w.judge(own, text != "", ev, "", []int{t.cancel.seq},
					"After the cancel came the message %q (without white space), which the model never said.", clip(text))
			}
			if t.cancel != nil || ev.stop != "end_turn" {
				return
			}
			w.Saw(missing, order, twice, kind)
			points := [...]int{isMissing: missing, isDisordered: order, isDoubled: twice, isOther: kind}
			h.judge(func(what int, of *reply, format string, args ...any) {
				w.find(points[what], ev, "", []int{of.seq}, format, args...)
			})
		}, answered(prompt))
	})
}

// onlyTurn is the turn that is open, if there is one only, over all connections.
func (w *world) onlyTurn() *turn {
	var only *turn
	for _, c := range w.conns {
		for _, r := range c.open {
			if r.by != rules.OfClient || r.verb != prompt {
				continue
			}
			if only != nil {
				return nil
			}
			only = r.turn
		}
	}
	return only
}

// reply is what the model said to one request.
type reply struct {
	seq, ended int    // Seqs of the request and of its end, 0 while it runs
	place      string // of the request in the conversation; one that is repeated has the same
	text       strings.Builder
	thought    strings.Builder
	tools      bool // it calls some
	broken     bool // by a fault, or the agent has hung up
	foreign    bool // holds what an agent may take for its own, or must not show
}

// hearing is the text of one turn on both sides.
type hearing struct {
	unclear   bool // another turn was open
	bytes     int
	replies   []*reply
	byN       map[int64]*reply
	pieces    []string        // of messages, bare
	late      []string        // those of them that came after a cancel
	elsewhere strings.Builder // what thoughts and tool calls show, bare
	thoughts  strings.Builder // of them the thoughts
}

// model takes in what the model's side did during the turn.
func (h *hearing) model(ev *event, t *turn) {
	n, _ := ev.body.Get("n").Int()
	if ev.Kind == transcript.ModelRequest {
		// The request of a turn that was cancelled may come when the next one runs.
		if !asks(ev, t) {
			h.unclear = true
		}
		if ev.Session == t.session.id && ev.body.Get("lane").Is("main") {
			x := &reply{seq: ev.Seq, place: fmt.Sprintf("%s/%s", ev.body.Get("prompt").Raw(), ev.body.Get("step").Raw())}
			h.replies = append(h.replies, x)
			if h.byN == nil {
				h.byN = map[int64]*reply{}
			}
			h.byN[n] = x
		}
		return
	}
	x := h.byN[n]
	if x == nil {
		return
	}
	switch ev.Kind {
	case transcript.ModelFault, transcript.ModelAborted:
		x.broken = true
	case transcript.ModelDone:
		x.ended = ev.Seq
	case transcript.ModelChunk:
		if h.remembers(ev) {
			x.say(ev)
		}
	}
}

// asks reports whether a request holds the beginning of a turn's prompt as what the user said
// last, if the log has that.
func asks(ev *event, t *turn) bool {
	const enough = 40
	said, text := ev.body.Get("user"), bare(t.text)
	return !said.Exists() || strings.Contains(bare(said.Str()), text[:min(len(text), enough)])
}

// remembers counts the bytes of an event, and reports whether they are not too many yet: a
// turn of more is not judged, and takes no more memory.
func (h *hearing) remembers(ev *event) bool {
	h.bytes += len(ev.Raw)
	return h.bytes <= rememberedText
}

// say takes in what left together. Text with tags may be thoughts, and a secret is not shown as it was.
func (x *reply) say(ev *event) {
	text := fakellm.ChunkText(ev.body)
	switch says := ev.body.Get("says").Str(); says {
	case "text":
		x.text.WriteString(bare(text))
		x.foreign = x.foreign || len(ev.Redacted) > 0 || strings.Contains(text, "<") || strings.Contains(text, "REDACTED")
	case "tool":
		x.tools = true
	case "thinking":
		x.thought.WriteString(bare(text))
	default: // a refusal, or a transcript that does not tell
		x.foreign = true
	}
}

// hear takes in what the editor got.
func (h *hearing) hear(ev *event) {
	if !h.remembers(ev) {
		return
	}
	h.unclear = h.unclear || len(ev.Redacted) > 0
	if ev.topic == agentChunk {
		if text := bare(ev.text()); text != "" {
			h.pieces = append(h.pieces, text)
			if ev.turn.cancel != nil {
				h.late = append(h.late, text)
			}
		}
		return
	}
	if ev.topic == thoughtChunk {
		h.thoughts.WriteString(bare(ev.text()))
	}
	h.elsewhere.WriteString(bare(ev.text() + ev.update.Get("title").Str()))
	for item := range ev.update.Get("content").Items() {
		h.elsewhere.WriteString(bare(item.Get("content").Get("text").Str()))
	}
}

// ownWords is the first message after a cancel that neither the model nor the user said; ""
// without one, and where the model had said nothing.
func (h *hearing) ownWords(user string) string {
	var said strings.Builder
	for _, x := range h.replies {
		if x.foreign {
			return ""
		}
		said.WriteString(x.text.String())
	}
	for _, text := range h.late {
		if said.Len() > 0 && !strings.Contains(said.String(), text) && !strings.Contains(bare(user), text) &&
			!strings.Contains(h.elsewhere.String(), text) {
			return text
		}
	}
	return ""
}

// owed are the replies whose text the turn had to show, in the order of their requests. A
// reply without a call that another one follows was not what the agent wanted, and of a
// request that is repeated one answer is enough.
func (h *hearing) owed() (owed []*reply) {
	places := map[string]bool{}
	for i, x := range h.replies {
		if x.broken || x.ended == 0 || x.foreign || x.text.Len() == 0 || places[x.place] ||
			!x.tools && i < len(h.replies)-1 {
			continue
		}
		places[x.place] = true
		owed = append(owed, x)
	}
	return owed
}

const longEnough = 24 // bytes that do not come again by chance

// What judge reports.
const (
	isMissing = iota
	isDisordered
	isDoubled
	isOther
)

// judge compares the two sides. Each text is taken out of what came: what is left is the
// agent's own, or came twice.
func (h *hearing) judge(report func(what int, of *reply, format string, args ...any)) {
	owed := h.owed()
	rest, after, before := slices.Clone(h.pieces), 0, (*reply)(nil)
	var shown []*reply
	for _, x := range owed {
		text := x.text.String()
		if at, left, ok := takeOut(rest, after, text); ok {
			rest, after, before, shown = left, at, x, append(shown, x)
			continue
		}
		if _, left, ok := takeOut(rest, 0, text); ok {
			if before != nil && before.ended < x.seq {
				report(isDisordered, x, "The text %q of the model came before that of its reply to #%d, which it said first.",
					clip(text), before.seq)
			}
			rest, shown = left, append(shown, x)
			continue
		}
		switch {
		case !x.tools && strings.Contains(h.thoughts.String(), text):
			report(isOther, x, "The model said %q (without white space), which came as a thought.", clip(text))
		case !strings.Contains(h.elsewhere.String(), text):
			if len(owed) == 1 && sameLetters(text, strings.Join(h.pieces, "")) {
				report(isDisordered, x, "The pieces of the model's text %q came in another order.", clip(text))
			} else {
				report(isMissing, x, "The model said %q (without white space), which did not come whole before the turn ended.",
					clip(text))
			}
		}
	}
	h.judgeRest(shown, rest, report)
}

// judgeRest judges what is left of what came when the texts that were shown are taken out.
func (h *hearing) judgeRest(shown []*reply, rest []string,
	report func(what int, of *reply, format string, args ...any)) {
	left := strings.Join(rest, "")
	for _, x := range shown {
		if text := x.text.String(); len(text) >= longEnough && strings.Contains(left, text) && !h.saidElsewhere(x, text) {
			report(isDoubled, x, "The text %q of the model came once more than the model said it.", clip(text))
			continue
		}
		for _, p := range rest {
			if (len(p) >= longEnough/2 || h.stammers(p)) && strings.Contains(x.text.String(), p) && !h.saidElsewhere(x, p) {
				report(isDoubled, x, "The piece %q of the model's text came once more than the model said it.", clip(p))
				break
			}
		}
	}
	for _, x := range h.replies {
		if text := x.thought.String(); len(text) >= longEnough && !x.foreign && strings.Contains(left, text) {
			report(isOther, x, "The model thought %q (without white space), which came as a message.", clip(text))
		}
	}
}

// stammers reports whether a piece came twice in a row.
func (h *hearing) stammers(piece string) bool {
	for i := 1; i < len(h.pieces); i++ {
		if h.pieces[i] == piece && h.pieces[i-1] == piece {
			return true
		}
	}
	return false
}

// saidElsewhere reports whether another reply of the turn holds the text, so that it may come twice.
func (h *hearing) saidElsewhere(x *reply, text string) bool {
	return slices.ContainsFunc(h.replies, func(y *reply) bool {
		return y != x && strings.Contains(y.text.String(), text)
	})
}

// takeOut takes a text out of pieces, behind so many bytes: as it stands, or else with
// pieces of the agent's own in between. It returns where the text ends.
func takeOut(pieces []string, after int, text string) (end int, left []string, ok bool) {
	all := strings.Join(pieces, "")
	if i := strings.Index(all[min(after, len(all)):], text); i >= 0 {
		i += after
		return i, cutOut(pieces, i, i+len(text)), true
	}
	at, rest := 0, text
	for _, p := range pieces {
		if at >= after && rest != "" && strings.HasPrefix(rest, p) {
			rest = rest[len(p):]
			end = at
		} else {
			left = append(left, p)
			at += len(p)
		}
	}
	return min(end, at), left, rest == ""
}

// cutOut removes the bytes from one place to another.
func cutOut(pieces []string, from, to int) (left []string) {
	at := 0
	for _, p := range pieces {
		a, b := min(max(from-at, 0), len(p)), min(max(to-at, 0), len(p))
		at += len(p)
		left = append(left, lists.Where([]string{p[:a], p[b:]}, func(part string) bool { return part != "" })...)
	}
	return left
}

// sameLetters reports whether two texts consist of the same characters.
func sameLetters(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
