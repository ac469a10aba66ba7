package invariants

import (
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// infoKept checks that an update that only brings a new time does not clear the title of its session. SHAPE checks the
// shape of the update.
func infoKept(w *watch) {
	titles := map[string]int{}     // Seq of the update with the title, by session id
	commanded := map[string]bool{} // whether the latest prompt of a session is a slash command
	w.On(func(ev *event) { delete(titles, ev.Session) }, asked(loadSession), asked(resumeSession))
	w.On(func(ev *event) {
		rules.Remember(commanded, rememberedSessions, ev.Session, isCommand(ev.params))
	}, asked(prompt))
	w.inSession(func(ev *event, _ *session) {
		title := ev.update.Get("title")
		switch {
		case title.Kind() == wire.String && title.Str() != "":
			rules.Remember(titles, rememberedSessions, ev.Session, ev.Seq)
		case title.IsNull():
			at, renews := titles[ev.Session], ev.update.Get("updatedAt").Kind() == wire.String
			w.judge("cleared", at > 0 && renews && !commanded[ev.Session], ev, "", []int{at},
				"A session_info_update with a new updatedAt has the title null, which clears the title that #%d had set.", at)
			delete(titles, ev.Session)
		}
	}, infoUpdate)
}
