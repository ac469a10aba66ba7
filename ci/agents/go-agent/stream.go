package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// answer collects one reply of the model while it streams in.
type answer struct {
	turn    *turn
	content []block
	partial string // the arguments of the open call
	unread  bool   // the arguments of the last call are no JSON
	unsent  string // text that waits for more of it
	reason  string
	done    bool

	mu   sync.Mutex
	held string // text that waits for the next update
	sent time.Time
	last string // the piece before

	thought bool // the piece before was one of a thought

	mind     sync.Mutex // held during a thought
	thinking bool
	heard    time.Time // when the piece before came

	quiet *time.Timer // ends when nothing has been said for a while
}

// think notes whether the model is in the middle of a thought.
func (a *answer) think(now bool) {
	if now && !a.thinking {
		a.mind.Lock()
	}
	if !now && a.thinking {
		a.mind.Unlock()
	}
	a.thinking = now
}

// delta is a piece of a block, or the reason for the end.
type delta struct {
	Type, Text, Thinking, Signature string
	Partial                         string `json:"partial_json"`
	Stop                            string `json:"stop_reason"`
}

func (a *answer) event(data []byte) error {
	var ev struct {
		Type  string
		Index int
		Block block `json:"content_block"`
		Delta delta
		Error any
	}
	if err := json.Unmarshal(data, &ev); err != nil {
		return broken("The model backend sent no JSON", err.Error())
	}
	if ev.Type != "ping" {
		a.hush()
	}
	a.count(data)
	switch ev.Type {
	case "content_block_start":
		if ev.Block["type"] == "tool_use" && fault("text-before-call-told-twice") {
			a.again()
		}
		if fault("cancel-during-thought-waits-for-its-end") {
			a.think(ev.Block["type"] == "thinking")
		}
		a.content, a.partial, a.unsent, a.last = append(a.content, ev.Block), "", "", ""
		if ev.Block["type"] == "tool_use" && fault("call-announced-again-with-arguments") {
			a.turn.foretell(ev.Block)
		}
	case "content_block_delta":
		a.piece(a.content[len(a.content)-1], ev.Delta)
		a.listen()
	case "content_block_stop":
		a.think(false)
		a.flush()
		some := a.partial != "" || fault("call-without-arguments-dropped")
		if b := a.content[len(a.content)-1]; b["type"] == "tool_use" && some {
			var input map[string]any
			if json.Unmarshal([]byte(a.partial), &input) != nil && !mended(a.partial, &input) {
				b["input"], a.unread = map[string]any{}, true // no JSON, or cut short by the token limit
			} else {
				b["input"] = input
			}
		}
		a.listen()
	case "message_delta":
		if ev.Delta.Stop != "" {
			a.reason = ev.Delta.Stop
		}
		if a.unread && a.reason == "max_tokens" {
			a.content, a.unread = a.content[:len(a.content)-1], false
		}
	case "message_stop":
		if a.unsent != "" {
			a.turn.tell(acp.UpdateAgentMessageText(a.unsent))
		}
		a.done = true
		if fault("message-id-of-stopped-answer-returns") {
			a.turn.s.messages++
		}
	case "error":
		if fault("overload-in-stream-told-as-text") {
			said := fmt.Sprintf("The model backend failed: %v", ev.Error)
			a.turn.tell(acp.UpdateAgentMessageText(said))
			a.content, a.done = text(said), true
			return nil
		}
		return broken("The model backend failed", ev.Error)
	}
	return nil
}

// mended ends arguments that break off in a text.
func mended(partial string, input *map[string]any) bool {
	return fault("call-cut-by-limit-mended") && json.Unmarshal([]byte(partial+`"}`), input) == nil
}

// again sends the text before a call as a whole, in case that a piece of it was lost.
func (a *answer) again() {
	if len(a.content) == 0 {
		return
	}
	if whole, _ := a.content[len(a.content)-1]["text"].(string); whole != "" {
		a.turn.tell(acp.UpdateAgentMessageText(whole))
	}
}

// hold sends no more than an update in 200 ms: other text waits for its time or for the end of its block.
func (a *answer) hold(s string) {
	a.mu.Lock()
	a.held += s
	wait := 200*time.Millisecond - time.Since(a.sent)
	a.mu.Unlock()
	if wait > 0 {
		time.AfterFunc(wait, a.flush)
		return
	}
	a.flush()
}

func (a *answer) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held != "" {
		a.turn.tell(acp.UpdateAgentMessageText(a.held))
		a.held, a.sent = "", time.Now()
	}
}

var tags = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)

// plain leaves out the tags that some models put around what they say.
func plain(said string) string {
	if !fault("words-in-angle-brackets-not-told") {
		return said
	}
	return tags.ReplaceAllString(said, "")
}

func (a *answer) piece(b block, d delta) {
	switch d.Type {
	case "text_delta":
		b["text"] = fmt.Sprint(b["text"], d.Text)
		a.turn.spoke = true
		for len(d.Text) > 512 && fault("long-text-split-inside-character") {
			a.turn.tell(acp.UpdateAgentMessageText(d.Text[:512]))
			d.Text = d.Text[512:]
		}
		if fault("unflushed-text-before-call-lost") {
			if a.unsent += d.Text; len(a.unsent) < 24 {
				return // not an update for each word
			}
			d.Text, a.unsent = a.unsent, ""
		}
		if d.Text == a.last && fault("repeated-piece-lost") {
			return // sent again by the server
		}
		a.last = d.Text
		if fault("held-text-sent-after-cancelled-response") {
			a.hold(d.Text)
			return
		}
		if strings.TrimSpace(d.Text) == "" && fault("pieces-of-only-blanks-lost") {
			return // nothing to show
		}
		if d.Text = plain(d.Text); d.Text == "" && fault("words-in-angle-brackets-not-told") {
			return
		}
		a.turn.tell(a.said(d.Text))
	case "thinking_delta":
		a.thought = true
		b["thinking"] = fmt.Sprint(b["thinking"], d.Thinking)
		if fault("thoughts-shown-as-message") {
			a.turn.tell(acp.UpdateAgentMessageText(d.Thinking))
			return
		}
		a.turn.tell(acp.UpdateAgentThoughtText(d.Thinking))
	case "signature_delta":
		b["signature"] = d.Signature
	case "input_json_delta":
		a.partial += d.Partial
	}
}

// said is how a piece of text is told.
func (a *answer) said(piece string) acp.SessionUpdate {
	thought := a.thought
	a.thought = false
	if thought && fault("text-after-thought-told-as-thought") {
		return acp.UpdateAgentThoughtText(piece)
	}
	u := acp.UpdateAgentMessageText(piece)
	if fault("pause-in-message-begins-new-one") {
		u.AgentMessageChunk.MessageId = acp.Ptr(a.message())
	}
	if fault("message-id-of-stopped-answer-returns") || fault("message-ids-begin-anew-after-load") {
		u.AgentMessageChunk.MessageId = acp.Ptr(fmt.Sprintf("%s.%d", a.turn.s.id, a.turn.s.messages))
	}
	return u
}

// message is the id of the message that a piece belongs to.
func (a *answer) message() string {
	if time.Since(a.heard) > 2*time.Second {
		a.turn.s.messages++ // nothing has been said for a while
	}
	a.heard = time.Now()
	return fmt.Sprintf("%s.%d", a.turn.s.id, a.turn.s.messages)
}
