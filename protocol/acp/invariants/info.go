package invariants

import (
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// infoKept checks that an update of a session's time does not clear the session's title. A title that was cleared in
// this way and is still in the list proves that the agent did not mean to clear it.
func infoKept(w *watch) {
	type titled struct {
		seq  int
		text string
	}
	titles := map[string]titled{}  // the title of each session, with the Seq of its update
	cleared := map[string]titled{} // by session id, a title that was cleared, with the Seq of the update that did
	commanded := map[string]bool{} // whether the latest prompt of a session is a slash command
	w.On(func(ev *event) {
		delete(titles, ev.Session)
		delete(cleared, ev.Session)
	}, asked(loadSession), asked(resumeSession))
	w.On(func(ev *event) {
		delete(cleared, ev.Session)
		rules.Remember(commanded, rememberedSessions, ev.Session, isCommand(ev.params))
	}, asked(prompt))
	w.inSession(func(ev *event, _ *session) {
		title := ev.update.Get("title")
		switch {
		case title.Kind() == wire.String && title.Str() != "":
			delete(cleared, ev.Session)
			rules.Remember(titles, rememberedSessions, ev.Session, titled{ev.Seq, title.Str()})
		case title.IsNull() || title.Is(""):
			had, renews := titles[ev.Session], ev.update.Get("updatedAt").Kind() == wire.String
			if w.judge("cleared", had.seq > 0 && renews && !commanded[ev.Session], ev, "", []int{had.seq},
				"A session_info_update with a new updatedAt has the title %s, which clears the title that #%d had set.",
				pick(title.IsNull(), "null", `""`), had.seq) != nil {
				rules.Remember(cleared, rememberedSessions, ev.Session, titled{ev.Seq, had.text})
			}
			delete(titles, ev.Session)
		}
	}, infoUpdate)
	w.On(func(ev *event) {
		for item := range ev.result.Get("sessions").Items() {
			id := item.Get("sessionId").Str()
			was, known := cleared[id]
			w.judge("listed", known && ev.Ref > was.seq && item.Get("title").Is(was.text), ev, id, []int{was.seq},
				"The agent told the client that the session has no title, but its list still has the title %q.",
				clip(was.text))
		}
	}, answered(listSessions))
}
