package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/rules"
)

// aroundCalls has the beginnings of two kinds of texts, without white space: results are those of the tool calls in the
// latest model request, and words are the texts that the model sent before its calls. An agent may cut long texts.
type aroundCalls struct{ results, words []string }

// remark adds a text with which the model began its tool calls.
func (w *contextWatch) remark(id, text string) {
	around := w.around[id]
	if len(around.words) < rememberedIDs {
		around.words = append(around.words, strings.Clone(beginning(text)))
		rules.Remember(w.around, rememberedSessions, id, around)
	}
}

// resultsOf stores the results in the latest model request of a session.
func (w *contextWatch) resultsOf(id string, a fakellm.Asked) {
	around := w.around[id]
	around.results = nil
	for _, p := range a.Conversation() {
		if text := unescaped(p.Text); p.Who == "result" && len(text) >= tellsApart && len(around.results) < rememberedIDs {
			around.results = append(around.results, strings.Clone(beginning(text)))
		}
	}
	rules.Remember(w.around, rememberedSessions, id, around)
}

// restoredAround checks that the first model request after a load or resume has some of the results, and some of what
// the model said before its calls. An agent may leave out old results, but not all that it had sent just before.
func (w *contextWatch) restoredAround(ev *event, s *session, a fakellm.Asked) {
	var all strings.Builder
	for _, p := range a.Conversation() {
		all.WriteString(unescaped(p.Text) + "\x00")
	}
	gone := func(texts []string) bool {
		return len(texts) > 0 &&
			!slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(all.String(), text) })
	}
	around := w.around[s.id]
	w.judge("results", gone(around.results), ev, s.id, []int{s.named},
		"The model request of the restored session has tool calls, but none of their results that an earlier request had.")
	w.judge("words", gone(around.words), ev, s.id, []int{s.named},
		"The model request of the restored session has tool calls, but nothing of what the model said before them.")
}
