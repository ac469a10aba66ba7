// Package hearing compares the model's text in a turn with the text that the agent showed to the user. The text must
// be complete, must come once, and must be in order. White space is ignored. An agent may cut the text anywhere, and
// may add text of its own.
package hearing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Remembered is the maximum size of a turn, in bytes: its texts, and perPiece for each text. Longer turns are not
// judged.
const Remembered = 64 << 10

// perPiece is added to the length of each text, so that a turn of many small pieces also reaches the limit.
const perPiece = 16

// reply is the model's reply to one request.
type reply struct {
	seq, ended int             // Seqs of the request and of the end of the reply; ended is 0 while the reply runs
	place      string          // place of the request in the conversation; a repeated request has the same place
	text       strings.Builder // as returned by Bare
	raw        strings.Builder // text with its white space
	thought    strings.Builder
	tools      bool // the reply has a tool call
	broken     bool // a fault ended the reply, or the agent hung up
	foreign    bool // the reply has text that an agent may change or must not show
}

// Turn has the text of one turn, as the model sent it and as the agent showed it. The zero value has no text.
type Turn struct {
	// Unclear says that the shown text cannot be attributed to the model or the agent. Such a turn must not be judged.
	Unclear   bool
	bytes     int
	replies   []*reply
	byN       map[int64]*reply
	pieces    []string        // chunks of messages, as returned by Bare
	ids       []string        // ids of the messages of these chunks; "" without an id
	raw       strings.Builder // the same chunks with their white space, and a line end between two messages
	id        string          // id of the last chunk in raw
	apart     bool            // something else came after the last chunk in raw
	replaced  bool            // raw has chunks that a complete message replaced
	twice     map[string]bool // pieces that came twice in a row; nil until the first call of stammers
	late      []string        // pieces that came after a cancel
	elsewhere strings.Builder // text in thoughts and tool calls, as returned by Bare
	thoughts  strings.Builder // text in thoughts, as returned by Bare
}

// Clear reports whether the turn can be judged.
func (t *Turn) Clear() bool { return !t.Unclear && t.bytes <= Remembered }

// Ask records a model request of the turn. body is the content of the entry.
func (t *Turn) Ask(e transcript.Entry, body wire.Value) {
	x := &reply{seq: e.Seq, place: fmt.Sprintf("%s/%s", body.Get("prompt").Raw(), body.Get("step").Raw())}
	if !t.countText("") {
		return
	}
	t.replies = append(t.replies, x)
	if t.byN == nil {
		t.byN = map[int64]*reply{}
	}
	n, _ := body.Get("n").Int()
	t.byN[n] = x
}

// Say records an entry of a model reply.
func (t *Turn) Say(e transcript.Entry, body wire.Value) {
	n, _ := body.Get("n").Int()
	x := t.byN[n]
	if x == nil {
		return
	}
	switch e.Kind {
	case transcript.ModelFault, transcript.ModelAborted:
		x.broken = true
	case transcript.ModelDone:
		x.ended = e.Seq
	case transcript.ModelChunk:
		if text := fakellm.ChunkText(body); t.countText(text) {
			x.say(text, body.Get("says").Str(), len(e.Redacted) > 0)
		}
	}
}

// countText counts the bytes of a text. It reports whether the turn is still short enough to be judged.
func (t *Turn) countText(text string) bool {
	t.bytes += len(text) + perPiece
	return t.bytes <= Remembered
}

// Show records a chunk of the message with the given id. late says that the chunk came after a cancel.
func (t *Turn) Show(piece, id string, late bool) {
	if !t.countText(piece) {
		return
	}
	if t.apart || id != t.id {
		t.raw.WriteByte('\n')
	}
	t.id, t.apart = id, false
	t.raw.WriteString(piece)
	text := Bare(piece)
	if text == "" {
		return
	}
	if t.pieces, t.ids = append(t.pieces, text), append(t.ids, id); late {
		t.late = append(t.late, text)
	}
}

// ShowWhole records a complete message, which replaces the chunks of the message with the same id.
func (t *Turn) ShowWhole(message, id string, late bool) {
	at := slices.Index(t.ids, id)
	if at < 0 {
		t.Show(message, id, late)
		return
	}
	if !t.countText(message) {
		return
	}
	t.pieces[at], t.replaced = Bare(message), true
	for i := len(t.ids) - 1; i >= at; i-- {
		if t.ids[i] == id && (i > at || t.pieces[i] == "") {
			t.pieces, t.ids = slices.Delete(t.pieces, i, i+1), slices.Delete(t.ids, i, i+1)
		}
	}
}

// Think records a chunk of a thought.
func (t *Turn) Think(piece string) {
	if t.Mention(piece) {
		t.thoughts.WriteString(Bare(piece))
	}
}

// Mention records a text outside of messages that may contain the model's text, such as the title of a tool call. It
// reports whether the turn is still short enough to be judged.
func (t *Turn) Mention(text string) bool {
	if !t.countText(text) {
		return false
	}
	t.elsewhere.WriteString(Bare(text))
	t.apart = true
	return true
}

// tagged matches tags in which some models put thoughts and tool calls, and special tokens such as <|end|>.
var tagged = lazy.Regexp(`(?i)<(\||/?(ant)?(think|thought|reason|reflect|analysis|scratch|inner|answer|final|tool|` +
	`function|invoke|parameter|system))`)

// say records the text in one entry of a reply. It marks the reply as foreign if the text has tags that may enclose
// thoughts, or secrets, which the agent must not show unchanged.
func (x *reply) say(text, kind string, redacted bool) {
	switch kind {
	case "text":
		x.text.WriteString(Bare(text))
		x.raw.WriteString(text)
		x.foreign = x.foreign || redacted || tagged().MatchString(x.raw.String()) ||
			strings.Contains(text, "REDACTED")
	case "tool":
		x.tools = true
	case "thinking":
		x.thought.WriteString(Bare(text))
	default: // a refusal, or an old transcript that does not say what the text is
		x.foreign = true
	}
}

// OwnWords returns the first message after a cancel that neither the model nor the user said. user is the prompt. It
// returns "" if there is no such message, or if the model had said nothing.
func (t *Turn) OwnWords(user string) string {
	var said strings.Builder
	for _, x := range t.replies {
		if x.foreign {
			return ""
		}
		said.WriteString(x.text.String())
	}
	return lists.First(t.late, func(text string) bool {
		return said.Len() > 0 && !strings.Contains(said.String(), text) && !strings.Contains(Bare(user), text) &&
			!strings.Contains(t.elsewhere.String(), text)
	})
}

// owed returns the replies whose text the agent must show, in the order of their requests. If another reply follows a
// reply without a tool call, the agent has discarded the first, so it is omitted. Of the replies to a repeated
// request, only one is returned.
func (t *Turn) owed() (owed []*reply) {
	places := map[string]bool{}
	for i, x := range t.replies {
		if x.broken || x.ended == 0 || x.foreign || x.text.Len() == 0 || places[x.place] ||
			!x.tools && i < len(t.replies)-1 {
			continue
		}
		places[x.place] = true
		owed = append(owed, x)
	}
	return owed
}

const (
	longEnough = 24 // bytes; a shorter text may come again by chance
	ownMark    = 4  // bytes; a shorter piece may be the agent's own text, such as a full stop
)

// Fault is a way in which the agent shows the model's text wrongly.
type Fault int

// Missing: the text did not come, or was changed. Joined: it came without the white space between two words.
// Disordered: it came in another order. Doubled: it came more than once. Other: it came as a thought instead of a
// message, or vice versa.
const (
	Missing Fault = iota
	Joined
	Disordered
	Doubled
	Other
)

// Judge compares the model's text with the shown text. It calls tell for each fault, with the Seq of the model
// request. The text of each reply is removed from the shown text. What remains is the agent's own text, or text that
// came twice.
func (t *Turn) Judge(tell func(what Fault, request int, format string, args ...any)) {
	report := func(what Fault, of *reply, format string, args ...any) { tell(what, of.seq, format, args...) }
	owed := t.owed()
	rest, after, before := slices.Clone(t.pieces), 0, (*reply)(nil)
	var shown []*reply
	for _, x := range owed {
		text := x.text.String()
		if at, left, ok := takeOut(rest, after, text); ok {
			rest, after, before, shown = left, at, x, append(shown, x)
			continue
		}
		if _, left, ok := takeOut(rest, 0, text); ok {
			if before != nil && before.ended < x.seq {
				report(Disordered, x, "The agent sent the model's text %q before the text of its earlier reply to #%d.",
					clip(text), before.seq)
			}
			rest, shown = left, append(shown, x)
			continue
		}
		switch {
		case !x.tools && strings.Contains(t.thoughts.String(), text):
			report(Other, x, "The agent sent the model's text %q (without white space) as a thought.", clip(text))
		case !strings.Contains(t.elsewhere.String(), text):
			if len(owed) == 1 && sameLetters(text, strings.Join(t.pieces, "")) {
				report(Disordered, x, "The agent sent the pieces of the model's text %q in another order.", clip(text))
			} else {
				report(Missing, x, "The agent did not send the model's whole text %q (without white space) "+
					"before the turn ended.", clip(text))
			}
		}
	}
	t.judgeRest(shown, rest, report)
	if at := t.joined(owed); at != "" {
		report(Joined, owed[len(owed)-1], "The agent left out the white space at %q in the model's text.", clip(at))
	}
}

// judgeRest judges rest, the shown text that remains after the text of the replies in shown was removed.
func (t *Turn) judgeRest(shown []*reply, rest []string,
	report func(what Fault, of *reply, format string, args ...any)) {
	left := strings.Join(rest, "")
	for _, x := range shown {
		if text := x.text.String(); len(text) >= longEnough && strings.Contains(left, text) && !t.saidElsewhere(x, text) {
			report(Doubled, x, "The agent sent the model's text %q more often than the model said it.", clip(text))
			continue
		}
		for _, p := range rest {
			if (len(p) >= longEnough/2 || t.stammers(p)) && strings.Contains(x.text.String(), p) && !t.saidElsewhere(x, p) {
				report(Doubled, x, "The agent sent the piece %q more often than the model said it.", clip(p))
				break
			}
		}
	}
	for _, x := range t.replies {
		if text := x.thought.String(); len(text) >= longEnough/2 && !x.foreign && strings.Contains(left, text) {
			report(Other, x, "The agent sent the model's thought %q (without white space) as a message.", clip(text))
		}
	}
}

// JudgeCut is like Judge, but for a turn that was stopped. The shown text must be the beginning of the model's text,
// or all of it. Only turns with one reply are judged, because an agent may omit any text between two replies.
func (t *Turn) JudgeCut(tell func(what Fault, request int, format string, args ...any)) {
	said := lists.Where(t.replies, func(x *reply) bool { return x.text.Len() > 0 })
	if len(said) != 1 || said[0].foreign {
		return
	}
	x, text := said[0], said[0].text.String()
	own, rest := []string(nil), text
	for _, p := range t.pieces {
		next := strings.HasPrefix(rest, p)
		if next {
			rest = rest[len(p):]
		}
		if next || len(p) >= ownMark && strings.Contains(text, p) {
			own = append(own, p)
		}
	}
	came, thoughts := strings.Join(own, ""), t.thoughts.String()
	switch {
	case came == "" && len(thoughts) >= longEnough/2 && strings.Contains(text, thoughts) && x.thought.Len() == 0:
		tell(Other, x.seq, "The agent sent the model's text %q (without white space) as a thought.", clip(thoughts))
	case strings.HasPrefix(text, came) || thoughts != "":
	case slices.ContainsFunc(own, t.stammers):
		tell(Doubled, x.seq, "The agent sent a piece of the model's text %q twice in a row.", clip(text))
	case !strings.Contains(text, came) && len(came) <= len(text):
		tell(Disordered, x.seq, "Until the stop the agent sent %q, which is not in the order of the model's text %q.",
			clip(came), clip(text))
	case len(came) >= longEnough/2:
		tell(Missing, x.seq, "Until the stop the agent sent %q, which is not the beginning of the model's text %q.",
			clip(came), clip(text))
	}
}

// JudgeFailed is like Judge, but for a turn that ended with an error. Only the text of replies with tool calls must
// have come, if the agent went on after them.
func (t *Turn) JudgeFailed(tell func(what Fault, request int, format string, args ...any)) {
	for _, x := range t.owed() {
		text := x.text.String()
		if !x.tools || x.place == t.replies[len(t.replies)-1].place || strings.Contains(t.elsewhere.String(), text) {
			continue
		}
		if _, _, ok := takeOut(t.pieces, 0, text); !ok {
			tell(Missing, x.seq, "The turn failed after a later model request, and the agent had not sent the whole text %q "+
				"(without white space) that the model said before.", clip(text))
		}
	}
}

// stammers reports whether a piece came twice in a row. Call it only after the last piece: it caches its result.
func (t *Turn) stammers(piece string) bool {
	if t.twice == nil {
		t.twice = map[string]bool{}
		for i := 1; i < len(t.pieces); i++ {
			if t.pieces[i] == t.pieces[i-1] {
				t.twice[t.pieces[i]] = true
			}
		}
	}
	return t.twice[piece]
}

// saidElsewhere reports whether a reply other than x contains the text, so that the text may be shown twice.
func (t *Turn) saidElsewhere(x *reply, text string) bool {
	return slices.ContainsFunc(t.replies, func(y *reply) bool {
		return y != x && strings.Contains(y.text.String(), text)
	})
}

var escapes = strings.NewReplacer(`"`, "", `\`, "", `u003c`, "<", `u003e`, ">", `u0026`, "&")
