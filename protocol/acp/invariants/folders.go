package invariants

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// folders are those that sessions have or had, and what was said of paths in each session.
type folders struct {
	*watch
	all  []string
	said map[string]string // the prompts of a session, and what its model called, cut
}

// mostSaid is how much of that is kept of a session, in bytes.
const mostSaid = 256 << 10

// otherFolder judges that a session does not work in the folder of another one, or in its own of
// before a load: a path there that neither the user nor the model named is the agent's.
func otherFolder(w *watch) func(ev *event, path string) {
	f := &folders{watch: w, said: map[string]string{}}
	w.On(func(ev *event) {
		if dir := ev.params.Get("cwd").Str(); dir != "" && !slices.Contains(f.all, dir) && len(f.all) < rememberedSessions {
			f.all = append(f.all, dir)
		}
	}, asked(newSession), asked(loadSession), asked(resumeSession), asked(forkSession))
	say := func(session, text string) {
		if before := f.said[session]; len(before)+len(text) < mostSaid {
			rules.Remember(f.said, rememberedSessions, session, before+text)
		}
	}
	w.On(func(ev *event) { say(ev.Session, string(ev.params.Get("prompt").Raw())) }, asked(prompt))
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelChunk && ev.body.Get("says").Is("tool") {
			say(ev.Session, ev.body.Get("data").Str())
		}
	}, modelEvent)
	return f.judge
}

func (f *folders) judge(ev *event, path string) {
	s := ev.session
	if s == nil || s.cwd == "" || len(f.all) < 2 || s.child() {
		return
	}
	own := func(dir string) bool { return under(path, dir) }
	for _, dir := range f.all {
		if under(path, dir) && !under(s.cwd, dir) && !own(s.cwd) && !slices.ContainsFunc(s.roots, own) {
			f.watch.judge("other-folder", !strings.Contains(f.said[s.id], path), ev, path, nil,
				"The path %q lies in %q, the folder of another session or of this one before, and its folder is %q.",
				path, dir, s.cwd)
			return
		}
	}
}
