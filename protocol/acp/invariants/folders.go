package invariants

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// folders has the folders of all sessions so far, and the text of each session in which a path may be named.
type folders struct {
	*watch
	all  []string
	said map[string]string // prompts and the model's tool calls, by session, up to mostSaid bytes each
	// roots has the additional folders of each session that a model request named in its system text. system has the
	// latest system text of a session that had such folders.
	roots  map[string][]string
	system map[string]string
}

// mostSaid is how many bytes of text are kept per session.
const mostSaid = 256 << 10

// otherFolder checks that a session does not work in another session's folder, nor in the folder that it had before a
// load. Paths that the user or the model named are allowed.
func otherFolder(w *watch) func(ev *event, path string) {
	f := &folders{watch: w, said: map[string]string{}, roots: map[string][]string{}, system: map[string]string{}}
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
	w.On(func(ev *event) {
		for b := range ev.params.Get("prompt").Items() {
			say(ev.Session, strings.Join([]string{b.Get("text").Str(), b.Get("uri").Str(), b.Get("name").Str(),
				b.Path("resource.uri").Str(), b.Path("resource.text").Str()}, "\n"))
		}
	}, asked(prompt))
	w.On(func(ev *event) {
		if ev.Kind == transcript.ModelChunk && ev.body.Get("says").Is("tool") {
			say(ev.Session, ev.body.Get("data").Str())
		}
		if ev.Kind == transcript.ModelRequest && ev.converses() {
			f.told(ev)
		}
	}, modelEvent)
	return f.judge
}

// runFolder matches the folder of a session that a run of the scenario suites created. Runs that share an agent
// process have folders that differ only in the number.
var runFolder = lazy.Regexp(`^(.*/acp-test-run-)[0-9]+(/work)$`)

// told checks that a model request names the session's own folder, and not another session's folder instead. The other
// session may belong to an earlier run in the same process.
func (f *folders) told(ev *event) {
	t := f.state.turnOf(ev)
	if t == nil || t.session == nil || t.session.id != ev.Session || t.session.child() || !asks(ev, t) {
		return
	}
	a, ok := ev.askedOfModel()
	s := t.session
	if !ok || s.cwd == "" {
		return
	}
	if s.window == nil && t.started > s.restSeq {
		f.former(ev, s, a)
	}
	if bytes.Contains(ev.Raw, []byte(s.cwd)) {
		return
	}
	system, all := a.System(), f.all
	if m := runFolder().FindStringSubmatch(s.cwd); m != nil && strings.Contains(system, m[1]) {
		others := regexp.MustCompile(regexp.QuoteMeta(m[1]) + "[0-9]+" + regexp.QuoteMeta(m[2]))
		all = append(slices.Clone(all), others.FindAllString(system, 3)...)
	}
	for _, dir := range all {
		if under(s.cwd, dir) || under(dir, s.cwd) || slices.Contains(s.roots, dir) || strings.Contains(f.said[s.id], dir) {
			continue
		}
		f.watch.judge("told-folder", namesFolder(system, dir), ev, dir, nil,
			"The model request names the folder %q of another session, but not the session's own folder %q.",
			dir, s.cwd)
	}
}

// former checks that the system text no longer names an additional folder that a load or resume has taken away.
func (f *folders) former(ev *event, s *session, a fakellm.Asked) {
	if len(s.roots)+len(f.roots[s.id]) == 0 {
		return
	}
	// An agent may keep its former instructions in the history, and add new ones behind them.
	system, before := a.System(), f.system[s.id]
	added := len(system) > len(before) && strings.HasPrefix(system, before)
	for _, dir := range f.roots[s.id] {
		near := func(root string) bool { return under(dir, root) || under(root, dir) }
		gone := !near(s.cwd) && !slices.ContainsFunc(s.roots, near) && !strings.Contains(f.said[s.id], dir)
		f.watch.judge("kept-folder", gone && !added && namesFolder(system, dir), ev, dir, nil, "The session was opened "+
			"again without the additional folder %q, but the model request still names the folder.", dir)
	}
	if len(s.roots) > 0 && len(system) < mostSaid {
		rules.Remember(f.system, rememberedSessions, s.id, system)
	}
	for _, dir := range s.roots {
		if !slices.Contains(f.roots[s.id], dir) && namesFolder(system, dir) {
			rules.Remember(f.roots, rememberedSessions, s.id, append(f.roots[s.id], dir))
		}
	}
}

// namesFolder reports whether a text names dir itself, and not only a folder whose name begins with the name of dir.
func namesFolder(text, dir string) bool {
	for _, behind, found := strings.Cut(text, dir); found; _, behind, found = strings.Cut(behind, dir) {
		next, _ := utf8.DecodeRuneInString(behind)
		if !unicode.IsLetter(next) && !unicode.IsDigit(next) && !strings.ContainsRune("-_", next) {
			return true
		}
	}
	return false
}

func (f *folders) judge(ev *event, at string) {
	s := ev.session
	// A replay shows paths in the folder that the session had before.
	if s == nil || s.cwd == "" || len(f.all) < 2 || s.child() || s.window != nil {
		return
	}
	own := func(dir string) bool { return under(at, dir) }
	for _, dir := range f.all {
		if under(at, dir) && !under(s.cwd, dir) && !own(s.cwd) && !slices.ContainsFunc(s.roots, own) {
			f.watch.judge("other-folder", !strings.Contains(f.said[s.id], at), ev, at, nil,
				"The path %q lies in %q, the folder of another session or this session's old one, and not in %q.",
				at, dir, s.cwd)
			return
		}
	}
}
