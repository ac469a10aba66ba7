package scenarios

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// said returns the agent's text in a session, from the entries after from, up to and including to. See Said.
func (r *run) said(s *Session, from, to int) string {
	session, p := "", r.protocol()
	if s != nil {
		session = s.ID
	}
	return Said(r.t, session, from, to, p.Prompts, p.Said)
}

// Said returns the agent's joined text in a session, from the entries after from, up to and including to. If session
// is "", it includes all sessions. says returns the text of an entry; prompts reports whether an entry is a prompt of
// the user. Said removes text at the beginning or the end that neither the model nor the user has written, because
// the agent itself added that text, for example a greeting.
func Said(t *transcript.Transcript, session string, from, to int, prompts func(transcript.Entry) bool,
	says func(transcript.Entry) string) string {
	var said, model, others strings.Builder
	var pieces []string // pieces of the model's text, without white space
	here := func(e transcript.Entry) bool { return e.Seq > from && (session == "" || e.Session == session) }
	for e := range t.Between(1, to) {
		switch {
		case e.Kind == transcript.ModelChunk:
			answers := here(e) && e.JSON().Get("says").Is("text")
			for text := range fakellm.ChunkTexts(e.JSON()) {
				others.WriteString(text)
				pieces = append(pieces, bare(text))
				if answers {
					model.WriteString(text)
				}
			}
		case prompts(e):
			others.Write(e.Raw)
		case e.Source == transcript.Agent && here(e):
			said.WriteString(says(e))
		}
	}
	text, answer, heard := said.String(), strings.TrimSpace(model.String()), bare(others.String())
	own := func(text string) bool {
		text = bare(text)
		return text != "" && !strings.Contains(heard, text) &&
			!slices.ContainsFunc(pieces, func(piece string) bool { return len(piece) > 8 && strings.Contains(text, piece) })
	}
	if first := edge(answer, true); first != "" {
		if i := strings.Index(text, first); i >= 0 && own(text[:i]) {
			text = text[i:]
		}
	}
	if last := edge(answer, false); last != "" {
		if i := strings.LastIndex(text, last); i >= 0 && own(text[i+len(last):]) {
			text = text[:i+len(last)]
		}
	}
	return text
}

// edge returns the first or last 16 bytes of a text, which is enough to find that place again.
func edge(text string, begin bool) string {
	const enough = 16
	if len(text) <= enough {
		return text
	}
	if begin {
		return text[:enough]
	}
	return text[len(text)-enough:]
}

// bare returns a text without white space.
func bare(text string) string { return strings.Join(strings.Fields(text), "") }
