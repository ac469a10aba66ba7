package invariants

import (
	"path"
	"regexp"
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
		if ev.Kind == transcript.ModelRequest && ev.body.Get("lane").Is("main") {
			f.told(ev)
		}
	}, modelEvent)
	return f.judge
}

// told judges the instructions of a request: they do not tell the model the folder of another session as its own.
// An agent's process may have had sessions of other runs, whose folders are beside this one's.
func (f *folders) told(ev *event) {
	t := f.state.onlyTurn()
	if t == nil || t.session == nil || t.session.id != ev.Session || t.session.child() || !asks(ev, t) {
		return
	}
	a, ok := ev.askedOfModel()
	s := t.session
	if !ok || s.cwd == "" {
		return
	}
	said, all := a.System(), f.all
	for _, part := range a.Conversation() {
		if part.Who == "user" {
			said += "\n" + part.Text
		}
	}
	if base, leaf := path.Dir(path.Dir(s.cwd)), path.Base(s.cwd); base != "/" && base != "." {
		beside := regexp.MustCompile(regexp.QuoteMeta(base) + "/[^/\\s]+/" + regexp.QuoteMeta(leaf))
		all = append(slices.Clone(all), beside.FindAllString(a.System(), 3)...)
	}
	for _, dir := range all {
		if under(s.cwd, dir) || under(dir, s.cwd) || slices.Contains(s.roots, dir) || strings.Contains(f.said[s.id], dir) {
			continue
		}
		f.watch.judge("told-folder", strings.Contains(a.System(), dir) && !strings.Contains(said, s.cwd), ev, dir, nil,
			"The model is told of the folder %q, which is another session's, and not of the session's own, %q.", dir, s.cwd)
	}
}

func (f *folders) judge(ev *event, at string) {
	s := ev.session
	if s == nil || s.cwd == "" || len(f.all) < 2 || s.child() {
		return
	}
	own := func(dir string) bool { return under(at, dir) }
	for _, dir := range f.all {
		if under(at, dir) && !under(s.cwd, dir) && !own(s.cwd) && !slices.ContainsFunc(s.roots, own) {
			f.watch.judge("other-folder", !strings.Contains(f.said[s.id], at), ev, at, nil,
				"The path %q lies in %q, the folder of another session or of this one before, and its folder is %q.",
				at, dir, s.cwd)
			return
		}
	}
}
