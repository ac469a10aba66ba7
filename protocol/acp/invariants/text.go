package invariants

import (
	"bytes"
	"encoding/base64"
	"hash/maphash"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// textWhole checks that text reaches the editor undamaged.
func textWhole(w *watch) {
	const longEnough = 40
	const replacement = "\uFFFD"
	type run struct {
		hash   maphash.Hash
		length int
		topic  topic
		chunks int
	}
	seed, saw := maphash.MakeSeed(), w.Seeing("replacement-character", "repeated", "empty")
	runs := map[*session]*run{}
	tainted := map[*conn]bool{} // the editor or the model sent a replacement character
	w.On(func(ev *event) {
		if bytes.Contains(ev.Raw, []byte(replacement)) || bytes.Contains(ev.Raw, []byte(`\ufffd`)) ||
			bytes.Contains(ev.Raw, []byte(`\uFFFD`)) {
			tainted[ev.conn] = true
		}
	}, append(append(editorRequests(), editorAnswers()...), modelEvent, terminalEvent)...)
	w.inSession(func(ev *event, s *session) {
		text := ev.update.Get("content").Get("text")
		plain, ok := text.Plain()
		if !ok {
			plain = []byte(text.Str())
		}
		r := rules.Entry(runs, ev.session)
		if r.topic != ev.topic {
			r.hash.SetSeed(seed)
			r.topic, r.length, r.chunks = ev.topic, 0, 0
		}
		saw()
		if text.Kind() == wire.String && len(plain) == 0 {
			w.find("empty", ev, "", nil, "The agent sent %s without a text.", ev.tag())
		}
		if bytes.Contains(plain, []byte(replacement)) && !text.LoneSurrogate() && !tainted[ev.conn] {
			w.find("replacement-character", ev, "", nil,
				"The text of %s contains U+FFFD, which nobody sent: the agent cut a character in two.", ev.tag())
		}
		if r.chunks > 1 && len(plain) >= longEnough && len(plain) == r.length &&
			maphash.Bytes(seed, plain) == r.hash.Sum64() {
			w.find("repeated", ev, "", nil,
				"The chunk repeats the whole text of its message so far; clients show the text twice.")
		}
		r.hash.Write(plain)
		r.length += len(plain)
		r.chunks++
	}, agentChunk, thoughtChunk)
	// Any other update ends a message.
	w.On(func(ev *event) { delete(runs, ev.session) }, userChunk, toolCall, planUpdate, asked(prompt), answered(prompt))
	w.On(func(ev *event) { delete(runs, ev.conn.session(ev.update.Get("sessionId").Str())) }, subagentUpdate)
}

// contentData checks the encoded data in content blocks.
func contentData(w *watch) {
	block := func(ev *event, b wire.Value) {
		var data wire.Value
		switch kind := b.Get("type"); {
		case kind.Is("image"), kind.Is("audio"):
			data = b.Get("data")
		case kind.Is("resource"):
			data = b.Path("resource.blob")
		}
		if text := data.Str(); data.Kind() == wire.String && len(ev.Redacted) == 0 {
			w.judge("base64", !isBase64(text), ev, "", nil, "The data of a %s block is not plain base64: %q.",
				b.Get("type").Str(), text[:min(len(text), 30)])
		}
	}
	w.On(func(ev *event) { block(ev, ev.update.Get("content")) }, messages()...)
	w.On(func(ev *event) {
		for item := range ev.update.Get("content").Items() {
			block(ev, item.Get("content"))
		}
	}, toolCall, toolUpdate)
}

// isBase64 accepts base64 in the standard alphabet, padded or not.
func isBase64(text string) bool {
	_, padded := base64.StdEncoding.DecodeString(text)
	_, bare := base64.RawStdEncoding.DecodeString(text)
	return padded == nil || bare == nil
}
