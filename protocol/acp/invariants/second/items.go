package second

import (
	"encoding/base64"
	"path"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// background judges the list of background work.
func background() *rule {
	r := newRule("V2-BACKGROUND", "Background work, once reported, is on every state, from its announcement to its end.")
	left := r.Fail("left-out", "a state has no list of background work, and one before had", "STA-002")
	early := r.Fail("not-announced", "an item is listed that was not announced", "STA-002")
	removed := r.Fail("not-ended", "an item is removed that has not ended", "STA-002")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || ev.kind != "state_update" {
			return
		}
		list := ev.u.Get("background")
		if s.reported {
			w.Saw(left)
			if list.Kind() != wire.Array {
				w.find(left, ev, "", nil, "The state has no list of background work, and one before had.")
				return
			}
		}
		now := map[string]bool{}
		for b := range list.Items() {
			k := key(b)
			now[k] = true
			w.Saw(early)
			if k != "" && !s.known(k) && s.whole && s.resume == nil {
				w.find(early, ev, k, nil, "The %s is listed as background work and was not announced.", k)
			}
		}
		for k := range s.listed {
			w.Saw(removed)
			if !now[k] && k != "" && !s.over(k) && s.resume == nil {
				w.find(removed, ev, k, nil, "The %s is no more background work and has not ended.", k)
			}
		}
	}
	return r
}

func (s *session) lookUp(k string) *item {
	if id, ok := strings.CutPrefix(k, "terminal "); ok {
		return s.terminals[id]
	}
	return s.tools[strings.TrimPrefix(k, "tool call ")]
}

func (s *session) known(k string) bool { t := s.lookUp(k); return t != nil && t.announced }

func (s *session) over(k string) bool { t := s.lookUp(k); return t == nil || t.ended > 0 }

// terminals judges what the agent tells of its terminals.
func terminals() *rule {
	r := newRule("V2-TERMINAL", "A terminal has an id of its own, an absolute folder, and output in base64.")
	base := r.Fail("base64", "a piece of output is no base64 by itself", "UPD-004")
	cwd := r.Fail("cwd", "the folder of a terminal is not absolute", "UPD-004")
	reused := r.Fail("reused", "a terminal that has ended begins again", "UPD-004")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || ev.kind != "terminal_update" && ev.kind != "terminal_output_chunk" {
			return
		}
		id := ev.u.Get("terminalId").Str()
		w.Saw(base, cwd, reused)
		for _, data := range []wire.Value{ev.u.Get("data"), ev.u.Path("output.data")} {
			if data.Kind() != wire.String {
				continue
			}
			if _, err := base64.StdEncoding.DecodeString(data.Str()); err != nil {
				w.find(base, ev, id, nil, "A piece of the output of terminal %q is no base64.", id)
			}
		}
		if dir := ev.u.Get("cwd"); dir.Kind() == wire.String && !absolute(dir.Str()) {
			w.find(cwd, ev, id, nil, "The cwd %q of terminal %q is not absolute.", dir.Str(), id)
		}
		if t := s.terminals[id]; t != nil && t.ended > 0 && ev.u.Get("command").Kind() == wire.String && s.resume == nil {
			w.find(reused, ev, id, []int{t.ended}, "Terminal %q has ended, and begins again.", id)
		}
	}
	return r
}

// absolute reports whether a path is, on any system.
func absolute(p string) bool {
	return path.IsAbs(p) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`)
}

// paths judges the paths of diffs and places.
func paths() *rule {
	r := newRule("V2-PATHS", "The paths of diffs and places are absolute.")
	diff := r.Fail("diff", "a path of a diff is not absolute", "UPD-006")
	place := r.Fail("place", "the path of a place is not absolute", "UPD-006")
	r.see = func(w *watch, ev *event) {
		call := ev.u
		if ev.agent() && ev.Method == "session/request_permission" && ev.Kind == transcript.Request {
			call = ev.params.Path("subject.toolCall")
		} else if ev.kind != "tool_call_update" {
			return
		}
		for l := range call.Get("locations").Items() {
			w.Saw(place)
			if p := l.Get("path"); p.Kind() == wire.String && !absolute(p.Str()) {
				w.find(place, ev, p.Str(), nil, "The place %q is not absolute.", p.Str())
			}
		}
		for c := range call.Get("content").Items() {
			for change := range c.Get("changes").Items() {
				for _, key := range []string{"path", "oldPath"} {
					if p := change.Get(key); p.Kind() == wire.String {
						w.Saw(diff)
						if !absolute(p.Str()) {
							w.find(diff, ev, p.Str(), nil, "The %s %q of the diff is not absolute.", key, p.Str())
						}
					}
				}
			}
		}
	}
	return r
}
