package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
)

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
