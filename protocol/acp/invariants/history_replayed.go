package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

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
